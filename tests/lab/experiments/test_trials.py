from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sopbench_checkout import NEEDS_SOPBENCH
from sopilot_lab.experiments.entrants import Contestant, Party
from sopilot_lab.experiments.run_folder import BenchRecord
from sopilot_lab.experiments.summary import summarise
from sopilot_lab.experiments.sweep import make_configuration, run_sweep
from sopilot_lab.experiments.trial import Trial, TrialRunner
from sopilot_lab.sopbench.process import ToolList, Upstream, shared_upstream
from sopilot_lab.sopbench.reach import find_reach
from sopilot_lab.sopbench.reference import DOMAINS, TaskReference

pytestmark = NEEDS_SOPBENCH


def trial(
    task: TaskReference, arm: str = "pg", model: str = "reference", tools: ToolList = "official"
) -> Trial:
    upstream = shared_upstream()
    configuration = make_configuration(upstream, arm=arm, model=model, tools=tools)
    party = Party(Contestant(model), keep_traces=True)
    return asyncio.run(TrialRunner(configuration, upstream, party).run(task))


def first(domain: str, should: bool, goal: str | None = None) -> TaskReference:
    """A task of the class that can be passed, not at the very beginning of its domain."""
    found = [
        TaskReference(domain, name, index)
        for name, answers in shared_upstream().scoring(domain).items()
        for index, answer in enumerate(answers)
        if answer is should and goal in (None, name)
    ]
    middle = found[len(found) // 2 :]
    return next(
        each for each in middle if find_reach(each, "official", shared_upstream()).reachable
    )


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("arm", ["pg", "flat"])
@pytest.mark.parametrize("should", [True, False])
def test_the_reference_executor_passes_what_is_reachable(
    domain: str, arm: str, should: bool
) -> None:
    task = first(domain, should)
    done = trial(task, arm)
    assert done.record.passed, done.record
    assert done.record.ending == ("executed" if should else "refused")
    assert done.record.r2 == (0 if should else None)
    assert done.trace.startswith("{")


def test_the_executor_never_asks_for_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    honest = Upstream.request

    def spied(self: Upstream, verb: str, **arguments: Any) -> Any:
        asked.append(verb)
        return honest(self, verb, **arguments)

    task = first("library", True)
    trial(task)
    monkeypatch.setattr(Upstream, "request", spied)
    assert trial(task).record.passed
    assert set(asked) <= {"open", "call", "judge", "evaluate", "close"}
    assert asked.index("evaluate") > max(i for i, verb in enumerate(asked) if verb == "call")


def test_a_broken_run_is_discarded_and_made_again_under_a_new_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = shared_upstream()
    task = first("bank", True, "get_loan")
    honest = Upstream.request
    broken = iter([True])

    def breaking(self: Upstream, verb: str, **arguments: Any) -> Any:
        if verb == "call" and next(broken, False):
            assert self._process is not None
            self._process.kill()
        return honest(self, verb, **arguments)

    monkeypatch.setattr(Upstream, "request", breaking)
    configuration = make_configuration(upstream, arm="pg", model="reference", tools="official")
    seen: list[BenchRecord] = []
    sweep = run_sweep(tmp_path, configuration, [task], runner="plain", seen=seen.append)
    assert [each.discarded for each in seen] == [True, False]
    assert len({each.run_id for each in seen}) == 2
    reach = {str(task): find_reach(task, "official", upstream)}
    summary = summarise(sweep, reach)
    assert (summary["n"], summary["pass"], summary["discarded"]) == (1, 1, 1)
