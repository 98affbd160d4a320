from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tiny import GOAL, bench, run_bench

from sopilot.cli.main import sopilot

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None, reason="needs the extra `bench`"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three tasks by either runner, in `inspect` and `plain`, each with its answer."""
    base = tmp_path_factory.mktemp("runs")
    for runner in ("inspect", "plain"):
        choice = ("--domain", "bank", "--goal", GOAL, "--limit", "3", "--runner", runner)
        answer = bench(base, "run", *choice, "-o", str(base / runner))
        (base / f"{runner}.json").write_text(json.dumps(answer))
    return base


def answer_of(folder: Path, runner: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((folder / f"{runner}.json").read_text())
    return answer


def log_of(folder: Path) -> Path:
    (log,) = (folder / "inspect" / "logs").glob("*.eval")
    return log


def test_inspect_and_the_plain_loop_give_the_same_scores(folder: Path) -> None:
    inside, plain = answer_of(folder, "inspect"), answer_of(folder, "plain")
    assert (inside["runner"], plain["runner"]) == ("inspect", "plain")
    for key in ("n", "pass", "execute", "refuse", "reachable", "failures", "fingerprint"):
        assert inside[key] == plain[key]
    scores = [(folder / name / "scores.jsonl").read_bytes() for name in ("inspect", "plain")]
    assert scores[0] == scores[1]


def test_the_log_shows_the_run(folder: Path) -> None:
    dumped = subprocess.run(
        [sys.executable, "-m", "inspect_ai", "log", "dump", str(log_of(folder))],
        check=True,
        capture_output=True,
        text=True,
    )
    header = json.loads(dumped.stdout)
    samples = header["samples"]
    assert header["status"] == "success"
    assert header["eval"]["metadata"]["fingerprint"] == answer_of(folder, "inspect")["fingerprint"]
    assert len(samples) == 3
    for sample in samples:
        sources = {event.get("source") for event in sample["events"]}
        assert {"frame", "operation", "user"} <= sources
        assert sources & {"finding", "findings"}
        (score,) = sample["scores"].values()
        assert score["metadata"]["verdict"]["user_goal"] == GOAL
        assert sample["messages"][0]["role"] == "system"


def test_a_mistake_is_told_and_not_hidden_in_a_log(tmp_path: Path) -> None:
    choice = ("--domain", "bank", "--limit", "1", "--arm", "prose", "--runner", "inspect")
    done = run_bench(tmp_path, "run", *choice, "-o", str(tmp_path / "run"))
    assert done.returncode == 2
    assert "not on prose" in done.stderr


def test_stats_read_the_run_folder_and_its_log_alike(folder: Path) -> None:
    answers = [
        CliRunner().invoke(sopilot, ["lab", "stats", "describe", str(path), "--json"]).stdout
        for path in (
            folder / "inspect",
            log_of(folder),
            folder / "inspect" / "scores.jsonl",
        )
    ]
    assert json.loads(answers[0])["rates"][0]["judged"] == 3
    assert answers[0] == answers[1] == answers[2]
