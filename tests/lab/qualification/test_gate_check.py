"""Whole checks through the real loop: populations, budgets, resumption."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from population import SUBJECTS, Laboratory
from sopilot.agent.reference.executor import Reference
from sopilot.agent.retries import ProviderError, Retries
from sopilot.messages.errors import UserMistake
from sopilot.protocols import Model, ModelReply, ModelRequest
from sopilot.runner.qualifications import Answer, last_verdict
from sopilot.tasks.task import Task
from sopilot_lab.experiments.entrants import Contestant
from sopilot_lab.experiments.run_folder import BenchRecord, Effort, journal_writer
from sopilot_lab.qualification.checking import (
    Allowance,
    CheckProgress,
    CheckSpending,
    Qualification,
)
from sopilot_lab.qualification.folder import CheckFolder, Question, check_path
from sopilot_lab.qualification.paging_decision import decide
from sopilot_lab.qualification.plan import RehearsedCases, arm_configuration
from sopilot_lab.qualification.probe import ProbeGrade
from sopilot_lab.sopbench.tasks import own_references

BY_NAME = {subject.name: subject for subject in SUBJECTS}


@pytest.fixture(scope="module")
def laboratory(few_cases: list[Task], rehearsal: RehearsedCases) -> Laboratory:
    return Laboratory(few_cases, rehearsal)


@pytest.fixture
def folder(tmp_path: Path) -> CheckFolder:
    return CheckFolder(tmp_path / "check", {"model": "m"})


Make = Callable[..., Qualification]


@pytest.fixture
def make_check(few_cases: list[Task], rehearsal: RehearsedCases, folder: CheckFolder) -> Make:
    """A check of the first ``count`` cases. ``reply`` answers in the reference executor's place,
    which it is given."""

    def make(
        count: int | None = None,
        *,
        allowance: Allowance | None = None,
        price: tuple[float, float] | None = None,
        reply: Reply | None = None,
        **fields: Any,
    ) -> Qualification:
        who = Contestant("reference", price=price)
        usual = {"folder": folder, "retries": Retries(attempts=1), "timeout": 60.0}
        if reply is not None:
            usual["play"] = lambda who, reader, about: Scripted(reply, Reference(reader))
        return Qualification(
            cases=own_references(few_cases[:count]),
            arms=("flat", "pg"),
            rehearsal=rehearsal,
            spending=CheckSpending(allowance or Allowance(), who),
            **(usual | fields),
        )

    return make


Reply = Callable[[Model, ModelRequest], Awaitable[ModelReply]]


class Scripted:
    name = "m"

    def __init__(self, reply: Reply, reference: Model) -> None:
        self._reply, self._reference = reply, reference

    async def complete(self, request: ModelRequest) -> ModelReply:
        return await self._reply(self._reference, request)


async def hang(reference: Model, request: ModelRequest) -> ModelReply:
    await asyncio.sleep(60)
    raise AssertionError("nobody waits that long")


async def test_rehearsal_estimates_what_the_reference_executor_uses(
    make_check: Make, rehearsal: RehearsedCases, folder: CheckFolder
) -> None:
    assert rehearsal.unreachable == ()
    await make_check(4).run()
    for run in folder.runs():
        estimate = rehearsal.estimates[run.record.task][run.arm]
        assert run.record.attempts == estimate.requests
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
    failed = {one.name for one in verdict.conditions if not one.met}
    assert ("quiet" in failed) is (name == "over-verifies-paged")
    assert ("oriented" in failed) is (name == "cannot-say-where")
    assert ("not-inferior" in failed) is (name != "guesses-when-long")


@pytest.mark.parametrize("calls", [0, 60, 200])
async def test_requests_never_exceed_the_budget(
    make_check: Make, folder: CheckFolder, calls: int
) -> None:
    check = make_check(allowance=Allowance(calls=calls), parallel=3)
    await check.run()
    used = sum(run.record.attempts for run in folder.runs())
    assert used == check.spending.used.requests <= calls
    assert check.stopped == f"the budget of {calls} requests"
    assert decide("m", folder.runs(), planned=20).page is False


async def test_money_ends_a_check(make_check: Make, folder: CheckFolder) -> None:
    check = make_check(allowance=Allowance(money=0.000001), price=(1.0, 2.0))
    await check.run()
    assert check.stopped == "the budget of 1e-06 in money"
    assert folder.runs() == []


async def test_time_ends_a_check(make_check: Make) -> None:
    check = make_check(allowance=Allowance(minutes=0.003), reply=hang)
    await check.run()
    assert check.stopped == "the budget of 0.003 minutes"


class Interrupted(Exception):
    """As if somebody had pressed the keys."""


async def test_an_interrupted_check_goes_on_and_ends_the_same(
    make_check: Make, tmp_path: Path
) -> None:
    whole = CheckFolder(tmp_path / "whole", {})
    await make_check(5, folder=whole).run()

    stops = iter(range(100))

    def stop(step: CheckProgress) -> None:
        if next(stops) in (2, 5):
            raise Interrupted

    rounds = 0
    while True:
        rounds += 1
        if rounds == 2:
            torn = min((tmp_path / "check").glob("runs/*/records/*"))
            with torn.open("ab") as file:
                file.write(b'{"task": "torn')
        folder = CheckFolder(tmp_path / "check", {})
        ended = True
        try:
            await make_check(5, folder=folder, watch=stop).run()
        except* Interrupted:
            ended = False
        if ended:
            break
    assert rounds == 3
    files = (tmp_path / "check").glob("runs/*/records/*")
    assert sum(file.read_bytes().count(b"\n") for file in files) == 10  # nothing was run twice

    def outcomes(folder: CheckFolder) -> list[tuple[object, ...]]:
        return [
            (run.arm, run.outcome("m"), run.record.calls, run.record.effort)
            for run in folder.runs()
        ]

    assert outcomes(folder) == outcomes(whole)


async def test_broken_runs_are_not_judged_and_run_again(
    make_check: Make, folder: CheckFolder
) -> None:
    failures = [ProviderError("down", retryable=False)]

    async def unreliable(reference: Model, request: ModelRequest) -> ModelReply:
        if failures:
            raise failures.pop()
        return await reference.complete(request)

    await make_check(2, reply=unreliable).run()
    assert [one.passed for one in folder.runs()].count(None) == 1
    verdict = decide("m", folder.runs(), planned=2)
    assert "1 runs were broken" in verdict.notes[-1]
    await make_check(2, reply=unreliable).run()
    assert [one.passed for one in folder.runs()] == [True] * 4


@pytest.mark.parametrize("retryable", [True, False])
async def test_an_endpoint_that_never_answers_ends_the_check(
    make_check: Make, folder: CheckFolder, retryable: bool
) -> None:
    """HTTP errors, HTML in place of JSON, dropped connections: all come as a provider's error."""
    asked = []

    async def failing(reference: Model, request: ModelRequest) -> ModelReply:
        asked.append(request)
        raise ProviderError("the answer is not JSON", retryable=retryable)

    check = make_check(reply=failing)
    await check.run()
    assert len(asked) == 3
    assert check.problem == "m: the answer is not JSON"
    verdict = decide("m", folder.runs(), planned=20, problem=check.problem)
    assert verdict.answer is Answer.BROKEN
    assert "m: the answer is not JSON" in verdict.reasons[0]


async def test_an_endpoint_that_says_nothing_is_broken_and_no_refusal(
    make_check: Make, folder: CheckFolder
) -> None:
    async def silent(reference: Model, request: ModelRequest) -> ModelReply:
        return ModelReply(" ")

    await make_check(reply=silent).run()
    assert [one.passed for one in folder.runs()] == [None] * 3
    assert decide("m", folder.runs(), planned=20).answer is Answer.BROKEN


async def test_an_endpoint_that_hangs_is_told_long_before_the_time_is_over(
    make_check: Make,
) -> None:
    check = make_check(reply=hang, timeout=0.1)
    await check.run()
    assert check.problem in ("no answer within 0.2 s", "m: no answer within 0.1 s")


async def test_a_slow_model_is_not_taken_for_a_silent_one(
    make_check: Make, folder: CheckFolder
) -> None:
    async def ponder(reference: Model, request: ModelRequest) -> ModelReply:
        await asyncio.sleep(0.05)
        return await reference.complete(request)

    check = make_check(1, reply=ponder, timeout=5.0)
    await check.run()
    assert check.stopped is None
    assert [one.passed for one in folder.runs()] == [True, True]


def test_what_was_spent_survives_an_interruption(folder: CheckFolder) -> None:
    arm = folder.create_arm(arm_configuration("m", "pg"))
    broken = BenchRecord(
        run_id="1", task="d/g#c", domain="d", goal="g", fingerprint="", handbook_sha256="",
        program_sha256="", ending="infrastructure_failure", attempts=4,
        prompt_tokens=30, completion_tokens=3, discarded_tokens=11, discarded_prompt_tokens=10,
    )  # fmt: skip
    judged = replace(broken, verdict={"success": True, "action_should_succeed": True})
    graded = ProbeGrade("c", 1, 1.0, 1.0, None, None, 1.0)
    with arm.writer() as runs, journal_writer(folder.probe) as probe:
        runs.write(broken)
        runs.write(judged)
        probe.write(Question(0, graded, Effort(1, 100, 10)))
        probe.write(Question(1, None, Effort(3, 20, 1)))  # nobody answered it
    arm.ask({"d/g#c": True})
    resumed = CheckFolder(folder.path, {})
    assert [run.passed for run in resumed.runs()] == [True]
    assert resumed.graded() == {0: graded}
    assert resumed.spent() == Effort(12, 200, 19)


def test_the_last_finding_about_a_model_is_kept(tmp_path: Path) -> None:
    assert last_verdict(tmp_path, "a/b") is None
    configuration: dict[str, object] = {"model": "a/b"}
    folder = CheckFolder(check_path(tmp_path, "a/b", configuration), configuration)
    for answer, kept in [
        ("broken", "broken"),
        ("too few", "too few"),
        ("may page", "may page"),
        ("broken", "may page"),
        ("too few", "may page"),
        ("do not page", "do not page"),
    ]:
        folder.finish({"answer": answer}, "<html>")
        assert last_verdict(tmp_path, "a/b") == {"answer": kept}
    assert last_verdict(tmp_path, "a-b") is None
    assert json.loads((folder.path / "check.json").read_text()) == configuration
    for torn in ("", "[]", "{"):
        (folder.path.parent / "latest.json").write_text(torn)
        assert last_verdict(tmp_path, "a/b") is None


@pytest.mark.parametrize("damaged", ["probe", "runs/pg/records"])
def test_a_damaged_check_is_said_to_be_damaged(folder: CheckFolder, damaged: str) -> None:
    folder.create_arm(arm_configuration("m", "pg"))
    (folder.path / damaged).mkdir(exist_ok=True)
    (folder.path / damaged / "1.jsonl").write_text("not JSON\n")
    with pytest.raises(UserMistake, match="damaged"):
        folder.spent()
    assert CheckFolder(folder.path, {}, restart=True).spent() == Effort()
