"""Whole checks through the real loop: populations, budgets, resumption."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from population import SUBJECTS, Laboratory
from sopilot.agent.providers import ProviderError, Retries
from sopilot.agent.reference.executor import Reference
from sopilot.messages.errors import UserMistake
from sopilot.protocols import Model, ModelReply, ModelRequest
from sopilot.runner.qualifications import Answer, last_verdict
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.task import Task
from sopilot_lab.qualification.cases import Effort, RunRecord
from sopilot_lab.qualification.checking import (
    Allowance,
    CheckProgress,
    CheckSpending,
    Journal,
    Prices,
    Qualification,
)
from sopilot_lab.qualification.folder import CheckFolder, check_path
from sopilot_lab.qualification.paging_decision import decide
from sopilot_lab.qualification.prepared import Rehearsal
from sopilot_lab.qualification.probe import ProbeGrade

BY_NAME = {subject.name: subject for subject in SUBJECTS}


@pytest.fixture(scope="module")
def laboratory(few_cases: list[Task], rehearsal: Rehearsal) -> Laboratory:
    return Laboratory(few_cases, rehearsal, MemoryStore)


def make_check(
    cases: list[Task],
    rehearsal: Rehearsal,
    journal: Journal,
    *,
    allowance: Allowance | None = None,
    model_for: Callable[[Task, str], Model] | None = None,
    watch: Callable[[CheckProgress], None] = lambda step: None,
    parallel: int = 1,
    timeout: float = 60.0,
) -> Qualification:
    return Qualification(
        cases=cases,
        arms=("flat", "pg"),
        model_for=model_for or (lambda case, arm: Reference(case.reader)),
        rehearsal=rehearsal,
        spending=CheckSpending(allowance or Allowance()),
        journal=journal,
        store_for=MemoryStore,
        retries=Retries(attempts=1),
        watch=watch,
        parallel=parallel,
        timeout=timeout,
    )


async def test_rehearsal_estimates_what_the_reference_executor_uses(
    few_cases: list[Task], rehearsal: Rehearsal
) -> None:
    assert rehearsal.unreachable == ()
    journal = Journal()
    await make_check(few_cases[:4], rehearsal, journal).run()
    for record in journal.runs():
        assert record.requests == rehearsal.estimates[record.key[0]][record.arm].requests
    official, flat = rehearsal.of_arm("official"), rehearsal.of_arm("flat")
    assert official.requests == flat.requests
    assert official.prompt_tokens != flat.prompt_tokens
    assert min(official.prompt_tokens, flat.prompt_tokens) > 1_000 * official.requests


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("disciplined", Answer.DO_NOT_PAGE),
        ("cannot-say-where", Answer.DO_NOT_PAGE),
        ("over-verifies-paged", Answer.DO_NOT_PAGE),
        ("guesses-when-long", Answer.PAGE),
    ],
)
async def test_simulated_models_get_the_verdict_they_deserve(
    laboratory: Laboratory, name: str, answer: Answer
) -> None:
    """Twenty pairs are too few to show that nothing is lost."""
    subject = BY_NAME[name]
    if answer is Answer.PAGE:
        subject = replace(subject, anywhere=replace(subject.anywhere, return_without_evidence=0.2))
    verdict, used = await laboratory.check(subject, seed=4, count=20)
    assert verdict.answer is answer
    assert verdict.complete
    assert used > 0
    failed = {one.name for one in verdict.failed}
    assert ("quiet" in failed) is (name == "over-verifies-paged")
    assert ("oriented" in failed) is (name == "cannot-say-where")
    assert ("not-inferior" in failed) is (name != "guesses-when-long")


@pytest.mark.parametrize("calls", [0, 60, 200])
async def test_requests_never_exceed_the_budget(
    few_cases: list[Task], rehearsal: Rehearsal, calls: int
) -> None:
    journal = Journal()
    check = make_check(few_cases, rehearsal, journal, allowance=Allowance(calls=calls), parallel=3)
    await check.run()
    used = sum(one.requests for one in journal.runs())
    assert used == check.spending.used.requests <= calls
    assert check.stopped == f"the budget of {calls} requests"
    assert decide("m", journal.runs(), planned=20).page is False


async def test_money_ends_a_check(few_cases: list[Task], rehearsal: Rehearsal) -> None:
    journal = Journal()
    allowance = Allowance(money=0.000001, prices=Prices(1.0, 2.0))
    check = make_check(few_cases, rehearsal, journal, allowance=allowance)
    await check.run()
    assert check.stopped == "the budget of 1e-06 in money"
    assert journal.runs() == []


class Slow:
    name = "slow"

    async def complete(self, request: ModelRequest) -> ModelReply:
        await asyncio.sleep(60)
        raise AssertionError("nobody waits that long")


async def test_time_ends_a_check(few_cases: list[Task], rehearsal: Rehearsal) -> None:
    check = make_check(
        few_cases,
        rehearsal,
        Journal(),
        allowance=Allowance(minutes=0.003),
        model_for=lambda case, arm: Slow(),
    )
    await check.run()
    assert check.stopped == "the budget of 0.003 minutes"


class Unreliable:
    """Fails the provider's way as often as told, then works."""

    def __init__(self, model: Model, failures: list[int]) -> None:
        self._model = model
        self._failures = failures
        self.name = model.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self._failures[0]:
            self._failures[0] -= 1
            raise ProviderError("down", retryable=False)
        return await self._model.complete(request)


class Interrupted(Exception):
    """As if somebody had pressed the keys."""


async def test_an_interrupted_check_goes_on_and_ends_the_same(
    few_cases: list[Task], rehearsal: Rehearsal, tmp_path: Path
) -> None:
    cases = few_cases[:5]
    whole = Journal()
    await make_check(cases, rehearsal, whole).run()

    stops = iter(range(100))

    def stop(step: CheckProgress) -> None:
        if next(stops) in (2, 5):
            raise Interrupted

    configuration: dict[str, object] = {"model": "m"}
    rounds = 0
    while True:
        rounds += 1
        folder = CheckFolder(tmp_path / "check", configuration)
        if rounds == 2:
            with (tmp_path / "check" / "runs.jsonl").open("ab") as file:
                file.write(b'{"case": "torn')
            folder = CheckFolder(tmp_path / "check", configuration)
        ended = True
        try:
            await make_check(cases, rehearsal, folder, watch=stop).run()
        except* Interrupted:
            ended = False
        if ended:
            break
    assert rounds == 3
    lines = (tmp_path / "check" / "runs.jsonl").read_text().splitlines()
    assert len(lines) == 10  # nothing was run twice
    kept = CheckFolder(tmp_path / "check", configuration).runs()

    def timeless(journal: Journal) -> list[RunRecord]:
        return sorted((replace(one, seconds=0.0) for one in journal.runs()), key=lambda r: r.key)

    assert timeless(folder) == timeless(whole)
    assert len(kept) == 10


async def test_broken_runs_are_not_judged_and_run_again(
    few_cases: list[Task], rehearsal: Rehearsal
) -> None:
    journal = Journal()
    failures = [1]

    def model_for(case: Task, arm: str) -> Model:
        return Unreliable(Reference(case.reader), failures)

    await make_check(few_cases[:2], rehearsal, journal, model_for=model_for).run()
    assert [one.passed for one in journal.runs()].count(None) == 1
    verdict = decide("m", journal.runs(), planned=2)
    assert "1 runs were broken" in verdict.notes[-1]
    await make_check(few_cases[:2], rehearsal, journal, model_for=model_for).run()
    assert [one.passed for one in journal.runs()] == [True] * 4


@pytest.mark.parametrize("retryable", [True, False])
async def test_an_endpoint_that_never_answers_ends_the_check(
    few_cases: list[Task], rehearsal: Rehearsal, retryable: bool
) -> None:
    """HTTP errors, HTML in place of JSON, dropped connections: all come as a provider's error."""
    asked = []

    class Failing:
        name = "m"

        async def complete(self, request: ModelRequest) -> ModelReply:
            asked.append(request)
            raise ProviderError("the answer is not JSON", retryable=retryable)

    journal = Journal()
    check = make_check(few_cases, rehearsal, journal, model_for=lambda case, arm: Failing())
    await check.run()
    assert len(asked) == 3
    assert check.problem == "m: the answer is not JSON"
    verdict = decide("m", journal.runs(), planned=20, problem=check.problem)
    assert verdict.answer is Answer.BROKEN
    assert "m: the answer is not JSON" in verdict.reasons[0]


async def test_an_endpoint_that_says_nothing_is_broken_and_no_refusal(
    few_cases: list[Task], rehearsal: Rehearsal
) -> None:
    class Silent:
        name = "m"

        async def complete(self, request: ModelRequest) -> ModelReply:
            return ModelReply(" ")

    journal = Journal()
    check = make_check(few_cases, rehearsal, journal, model_for=lambda case, arm: Silent())
    await check.run()
    assert len(journal.runs()) == 3
    assert all(one.passed is None for one in journal.runs())
    assert decide("m", journal.runs(), planned=20).answer is Answer.BROKEN


async def test_an_endpoint_that_hangs_is_told_long_before_the_time_is_over(
    few_cases: list[Task], rehearsal: Rehearsal
) -> None:
    check = make_check(
        few_cases, rehearsal, Journal(), model_for=lambda case, arm: Slow(), timeout=0.1
    )
    await check.run()
    assert check.problem in ("no answer within 0.2 s", "slow: no answer within 0.1 s")


async def test_a_slow_model_is_not_taken_for_a_silent_one(
    few_cases: list[Task], rehearsal: Rehearsal
) -> None:
    class Pondering:
        def __init__(self, model: Model) -> None:
            self._model = model
            self.name = model.name

        async def complete(self, request: ModelRequest) -> ModelReply:
            await asyncio.sleep(0.05)
            return await self._model.complete(request)

    journal = Journal()
    check = make_check(
        few_cases[:1], rehearsal, journal, timeout=5.0,
        model_for=lambda case, arm: Pondering(Reference(case.reader)),
    )  # fmt: skip
    await check.run()
    assert check.stopped is None
    assert [one.passed for one in journal.runs()] == [True, True]


def test_what_was_spent_survives_an_interruption(tmp_path: Path) -> None:
    folder = CheckFolder(tmp_path, {})
    lost = RunRecord(
        case="c", domain="d", goal="g", kind="execute", arm="pg", passed=None,
        ending="infrastructure_failure", requests=4, prompt_tokens=40, completion_tokens=4,
    )  # fmt: skip
    folder.add_run(lost)
    folder.add_run(replace(lost, passed=True, ending="executed"))
    graded = ProbeGrade("c", 1, 1.0, 1.0, None, None, 1.0)
    folder.add_question(0, graded, Effort(1, 100, 10))
    folder.add_question(1, None, Effort(3, 20, 1))  # nobody answered it
    spent = sum(CheckFolder(tmp_path, {}).spent(), Effort())
    assert len(CheckFolder(tmp_path, {}).runs()) == 1
    assert CheckFolder(tmp_path, {}).graded() == {0}
    assert spent == Effort(12, 200, 19)


def test_what_found_nothing_does_not_take_the_place_of_a_finding(tmp_path: Path) -> None:
    configuration: dict[str, object] = {"model": "m"}
    folder = CheckFolder(check_path(tmp_path, "m", configuration), configuration)
    for answer, kept in [
        ("broken", "broken"),
        ("too few", "too few"),
        ("may page", "may page"),
        ("broken", "may page"),
        ("too few", "may page"),
        ("do not page", "do not page"),
    ]:
        folder.finish({"answer": answer}, "<html>")
        found = last_verdict(tmp_path, "m")
        assert found is not None
        assert found["answer"] == kept


def test_the_last_verdict_of_a_model_is_found_again(tmp_path: Path) -> None:
    assert last_verdict(tmp_path, "a/b") is None
    configuration: dict[str, object] = {"model": "a/b"}
    folder = CheckFolder(check_path(tmp_path, "a/b", configuration), configuration)
    folder.finish({"arm": "pg"}, "<html>")
    assert last_verdict(tmp_path, "a/b") == {"arm": "pg"}
    assert last_verdict(tmp_path, "a-b") is None
    assert json.loads((folder.path / "check.json").read_text()) == configuration
    for torn in ("", "[]", "{"):
        (folder.path.parent / "latest.json").write_text(torn)
        assert last_verdict(tmp_path, "a/b") is None


def test_a_damaged_check_is_said_to_be_damaged(tmp_path: Path) -> None:
    folder = CheckFolder(tmp_path, {})
    (folder.path / "runs.jsonl").write_text("not JSON\n")
    with pytest.raises(UserMistake, match="damaged"):
        CheckFolder(tmp_path, {})
    assert CheckFolder(tmp_path, {}, restart=True).runs() == []
