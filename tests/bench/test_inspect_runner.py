from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sopbench_checkout import NEEDS_SOPBENCH

from sopilot.cli.stats import command

pytestmark = [
    *NEEDS_SOPBENCH,
    pytest.mark.skipif(
        importlib.util.find_spec("inspect_ai") is None, reason="needs the extra `bench`"
    ),
]


def bench_run(folder: Path, runner: str, *options: str) -> dict[str, Any]:
    """In a process of its own, as a person would: Inspect owns its event loop and warnings."""
    command = [sys.executable, "-m", "sopilot.cli.main", "bench", "run", "--domain", "bank"]
    choice = ["--goal", "get_loan", "--limit", "3", "--runner", runner, "--json"]
    done = subprocess.run(
        [*command, *choice, "-o", str(folder), *options],
        check=True,
        capture_output=True,
        text=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_inspect_and_the_plain_loop_give_the_same_scores_and_the_log_shows_the_run(
    tmp_path: Path,
) -> None:
    inside = bench_run(tmp_path / "inspect", "inspect")
    plain = bench_run(tmp_path / "plain", "plain")
    for key in ("n", "pass", "execute", "refuse", "reachable", "failures", "fingerprint"):
        assert inside[key] == plain[key]
    scores = [(tmp_path / name / "scores.jsonl").read_bytes() for name in ("inspect", "plain")]
    assert scores[0] == scores[1]

    (log,) = (tmp_path / "inspect" / "logs").glob("*.eval")
    dumped = subprocess.run(
        [sys.executable, "-m", "inspect_ai", "log", "dump", str(log)],
        check=True,
        capture_output=True,
        text=True,
    )
    header = json.loads(dumped.stdout)
    samples = header["samples"]
    assert header["status"] == "success"
    assert header["eval"]["metadata"]["fingerprint"] == inside["fingerprint"]
    assert len(samples) == 3
    for sample in samples:
        sources = {event.get("source") for event in sample["events"]}
        assert {"frame", "operation", "user"} <= sources
        assert sources & {"finding", "findings"}
        (score,) = sample["scores"].values()
        assert score["metadata"]["verdict"]["user_goal"] == "get_loan"
        assert sample["messages"][0]["role"] == "system"


def test_a_mistake_is_told_and_not_hidden_in_a_log(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sopilot.cli.main", "bench", "run", "--domain", "bank"]
    choice = ["--limit", "1", "--arm", "prose", "--runner", "inspect", "-o", str(tmp_path)]
    done = subprocess.run([*command, *choice], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "reads frames and programs, not prose" in done.stderr


def test_stats_read_the_run_folder_and_its_log_alike(tmp_path: Path) -> None:
    bench_run(tmp_path / "run", "inspect")
    (log,) = (tmp_path / "run" / "logs").glob("*.eval")
    answers = [
        CliRunner().invoke(command, ["accuracy", str(path), "--json"]).stdout
        for path in (tmp_path / "run", log, tmp_path / "run" / "scores.jsonl")
    ]
    assert json.loads(answers[0])["groups"][0]["judged"] == 3
    assert answers[0] == answers[1] == answers[2]
