"""Sweeps against an endpoint that fails: nothing passes by failing, nothing is left unsaid."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chat_server import Plan
from chat_server import serving as planned
from tiny import HOME, run_bench

from scripted_answers import MODEL, completion, scripted_answer
from sopilot.agent.retries import Retries
from sopilot_lab.experiments import sweep
from sopilot_lab.experiments.entrants import Contestant, Party, Patience
from sopilot_lab.experiments.run_folder import BenchRecord
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.experiments.summary import summarise
from sopilot_lab.experiments.sweep import make_configuration
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.reference import TaskReference

QUICK = ("--runner", "plain", "--most-missing", "1", "--alias", "m")
FAULTS = (
    "429", "400", "401", "500", "hang", "html", "cut-json", "empty", "filter", "wrong-schema",
    "dropped", "wrong-model",
)  # fmt: skip


class Endpoint:
    """Answers as a scripted model does, and fails with ``fault`` at this rate. Whether a request
    fails depends on what it asks and how often it was asked before, on nothing else: two sweeps
    meet the same faults, whatever the order of their tasks."""

    def __init__(self, fault: str = "", rate: float = 0.0, seed: int = 0) -> None:
        self.fault, self.rate, self.seed = fault, rate, seed
        self.asked: Counter[str] = Counter()
        self.failed = 0
        self._lock = threading.Lock()

    @property
    def requests(self) -> int:
        return self.asked.total()

    def plan(self, body: bytes) -> Plan:
        key = hashlib.sha256(body).hexdigest()
        with self._lock:
            self.asked[key] += 1
            drawn = hashlib.sha256(f"{self.seed} {self.fault} {key} {self.asked[key]}".encode())
            fails = int(drawn.hexdigest()[:8], 16) / 2**32 < self.rate
            self.failed += fails
            whole = completion(scripted_answer(json.loads(body)), self.requests)
        return failing(self.fault, whole) if fails else Plan(raw=json.dumps(whole))


def failing(fault: str, whole: dict[str, Any]) -> Plan:
    if fault.isdecimal():
        return Plan(status=int(fault))
    if fault in ("dropped", "hang"):
        return Plan(drop=True, delay=2.0 if fault == "hang" else 0.0)
    if fault == "html":
        return Plan(raw="<!doctype html><html><body>Bad gateway</body></html>")
    if fault == "cut-json":
        text = json.dumps(whole)
        return Plan(raw=text[: len(text) // 2])
    content: dict[str, Any] = {
        "empty": "", "filter": "I cannot", "wrong-schema": {"text": 5}, "wrong-model": "I refuse.",
    }  # fmt: skip
    (choice,) = whole["choices"]
    choice["message"] = {"role": "assistant", "content": content[fault]}
    if fault == "filter":
        choice["finish_reason"] = "content_filter"
    if fault == "wrong-model":
        whole["model"] = "another-model"
    return Plan(raw=json.dumps(whole))


@contextmanager
def serving(endpoint: Endpoint) -> Iterator[str]:
    """Its address, as ``--model`` takes it."""
    with planned(plan=endpoint.plan) as server:
        yield f"{server.url}#{MODEL}"


@pytest.fixture(scope="module")
def tasks(upstream: Upstream) -> Iterator[tuple[TaskReference, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "shared_upstream", lambda seed=0: upstream)
        yield select_tasks("all", upstream)


def swept(
    folder: Path, address: str, tasks: Sequence[TaskReference], *, user: str = "default",
    at_once: int | None = None, **patience: Any,
) -> tuple[dict[str, Any], list[BenchRecord]]:  # fmt: skip
    configuration = make_configuration(
        sweep.shared_upstream(), arm="flat", model="m", tools="official",
        budgets={"request_seconds": 1.0}, user=Contestant(user).label,
    )  # fmt: skip
    seen: list[BenchRecord] = []
    retries = Retries(attempts=3, first_seconds=0.01)
    done = sweep.run_sweep(
        folder, configuration, tasks, runner="plain", at_once=at_once, seen=seen.append,
        party=Party(
            Contestant(address, "m", price=(1.0, 2.0)),
            Contestant(user, served="any"),
            Patience(retries, **{"most_missing": 1.0, **patience}),
        ),
    )  # fmt: skip
    return summarise(done, {}), seen


def scores(folder: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "scores.jsonl").read_text().splitlines()]
    return {row["task"]: row for row in rows}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory, tasks: tuple[TaskReference, ...]) -> Path:
    folder = tmp_path_factory.mktemp("clean") / "runs"
    with serving(Endpoint()) as address:
        summary, _ = swept(folder, address, tasks)
    assert (summary["asked"], summary["n"], summary["missing"]) == (8, 8, 0)
    return folder


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_judged_is_judged_as_ever_and_the_rest_is_named(
    fault: str, clean: Path, tmp_path: Path, tasks: tuple[TaskReference, ...]
) -> None:
    endpoint = Endpoint(fault, 0.3, seed=4)
    with serving(endpoint) as address:
        summary, seen = swept(tmp_path / "runs", address, tasks)
    assert endpoint.failed
    known, found = scores(clean), scores(tmp_path / "runs")
    assert all(row == known[task] for task, row in found.items())
    missing = {one["task"]: one for one in summary["missing_tasks"]}
    assert missing.keys() == known.keys() - found.keys()
    assert all(one["reason"] and one["fault"] for one in missing.values())
    low, high = summary["bounds"]
    assert low <= sum(row["passed"] for row in known.values()) / 8 <= high
    lasting = {"400": "http-400", "401": "http-401", "filter": "content-filter"}
    if fault in lasting:
        assert missing
        assert {one["fault"] for one in missing.values()} <= {lasting[fault], "not-run"}
        assert lasting[fault] in {record.fault for record in seen}, "told at once"
        assert all(one["runs"] <= 1 for one in missing.values()), "never drawn again"


def test_a_wrong_key_stops_the_sweep_at_the_first_answer(
    tmp_path: Path, tasks: tuple[TaskReference, ...]
) -> None:
    endpoint = Endpoint("401", 1.0)
    with serving(endpoint) as address:
        summary, _ = swept(tmp_path / "runs", address, tasks, at_once=1)
    assert endpoint.requests == 1
    assert "every task would end so" in summary["stopped"]
    assert summary["missing_by_reason"] == {"http-401": 1, "not-run": 7}
    assert "401" in summary["missing_tasks"][-1]["reason"]


def test_too_many_missing_stop_a_sweep(tmp_path: Path, tasks: tuple[TaskReference, ...]) -> None:
    with serving(Endpoint("400", 1.0)) as address:
        summary, _ = swept(tmp_path / "runs", address, tasks, at_once=1, most_missing=0.25)
    assert "8 of 8 tasks stayed without a judged run" in summary["stopped"]
    assert summary["bounds"] == [0.0, 1.0]
    assert summary["n"] == 0


def test_what_is_missing_stands_on_the_console(tmp_path: Path) -> None:
    with serving(Endpoint("400", 0.3, seed=4)) as address:
        words = ("run", "--model", address, "--arm", "flat", *QUICK)
        done = run_bench(tmp_path, *words)
    assert done.returncode == 1
    assert "missing under `flat`: http-400 ×" in done.stdout
    assert "pass, of all asked (missing failed)" in done.stdout
    assert "bounds (missing failed, passed)" in done.stdout


def test_every_record_tells_what_was_served_and_what_it_cost(clean: Path) -> None:
    rows = [
        json.loads(line)
        for path in (clean / "records").iterdir()
        for line in path.read_text().splitlines()
    ]
    for row in rows:
        assert row["attempts"] >= len(row["requests"]) == row["agent_turns"]
        assert row["reasoning_tokens"] == 4 * row["agent_turns"]
        assert row["cost"] == pytest.approx(row["agent_turns"] * (100 + 2 * 10) / 1e6)
        for request in row["requests"]:
            assert request["finish_reason"] == "stop"
            assert request["served_model"] == "scripted-1"
            assert request["fingerprint"] == "fp-1"
            assert request["response_id"].startswith("answer-")
            assert request["seconds"] > 0
        assert row["run"] == 1
    configuration = (clean / "configuration.json").read_text()
    assert "127.0.0.1" not in configuration, "where a model is served is not recorded"
    assert '"model": "m"' in configuration


def test_an_empty_user_simulator_is_no_refusal(
    tmp_path: Path, tasks: tuple[TaskReference, ...]
) -> None:
    silent = Endpoint("empty", 1.0)
    with serving(Endpoint()) as model, serving(silent) as user:
        summary, seen = swept(tmp_path / "runs", model, tasks, user=user, redraws=0)
    assert silent.requests
    assert summary["missing_by_reason"].keys() == {"empty"}
    assert summary["used"]["simulator_tokens"] == 110 * silent.requests
    broken = [record for record in seen if record.discarded]
    assert broken
    assert all("the user" in record.reason for record in broken)


def test_one_page_of_html_does_not_end_a_sweep_of_inspects_models(tmp_path: Path) -> None:
    endpoint = Endpoint("html", 0.3, seed=4)
    with serving(endpoint) as address:
        url, _, model = address.partition("#")
        words = ("run", "--model", f"inspect:openai-api/tiny/{model}", "--arm", "flat", "--json")
        done = run_bench(tmp_path, *words, TINY_BASE_URL=url, TINY_API_KEY="k")
    assert done.returncode == 0, done.stderr
    assert endpoint.failed
    assert json.loads(done.stdout)["n"] == 8


def test_ctrl_c_leaves_a_word_and_books_no_failure(tmp_path: Path) -> None:
    endpoint = Endpoint("hang", 1.0)
    with serving(endpoint) as address:
        words = ("run", "--model", address, "--arm", "flat", "--runner", "plain")
        sweep = subprocess.Popen(
            [sys.executable, "-m", "sopilot.cli.main", "lab", *words, "-o",
             str(tmp_path / "runs")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "SOPBENCH_HOME": str(HOME), "XDG_CACHE_HOME": str(tmp_path)},
        )  # fmt: skip
        while not endpoint.requests and sweep.poll() is None:  # it waits for an answer
            time.sleep(0.05)
        sweep.send_signal(signal.SIGINT)
        _, told = sweep.communicate(timeout=30)
    assert sweep.returncode == 130, told
    assert "interrupted: 0 of 8 tasks were judged just now; the same command resumes" in told
    assert "Traceback" not in told
    assert all(not path.read_bytes() for path in tmp_path.glob("runs/records/*.jsonl"))
