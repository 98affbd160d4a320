"""The check itself: the probe, then case after case under every arm, within the allowance.

Everything that is finished is in the journal at once, so a check that was
killed or ran out of its allowance goes on where it stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sopilot.desks.tasks import Task
from sopilot.lab.discipline._cursor import Cursor
from sopilot.lab.discipline._probe import answer_text, probe_request
from sopilot.lab.discipline._probe_grading import ProbeGrade, grade
from sopilot.lab.discipline._record import RunRecord
from sopilot.lab.discipline._rehearsal import NOTHING, Rehearsal
from sopilot.lab.discipline._running import ProgramSets, StoreFor, run_budgets, run_case
from sopilot.lab.discipline.spending import CheckSpending, likely_money, worst_calls
from sopilot.language.program import Program
from sopilot.runtime.agent import ARMS, InfrastructureFailure, Retries, complete_with_retries
from sopilot.runtime.session.protocols import Model

PROBE_SHARE = 0.2

ModelFor = Callable[[Task, str], Model]
"""The model that runs this case under this arm; one and the same, but for executors that
need a handbook to judge by."""


class Journal(Protocol):
    """Where finished work is kept."""

    def runs(self) -> Sequence[RunRecord]: ...

    def grades(self) -> Sequence[ProbeGrade]: ...

    def add_run(self, record: RunRecord) -> None: ...

    def add_grade(self, number: int, grade: ProbeGrade) -> None: ...

    def graded(self) -> frozenset[int]: ...


@dataclass(frozen=True, slots=True)
class CheckProgress:
    """Something was finished: ``what`` for people, ``done`` of ``planned`` cases."""

    what: str
    done: int
    planned: int


@dataclass(slots=True)
class DisciplineCheck:
    """``stopped`` names the budget that ended it early."""

    cases: Sequence[Task]
    arms: Sequence[str]
    model_for: ModelFor
    rehearsal: Rehearsal
    spending: CheckSpending
    journal: Journal
    store_for: StoreFor
    questions: Sequence[tuple[Cursor, Program]] = ()
    parallel: int = 1
    retries: Retries | None = None
    watch: Callable[[CheckProgress], None] = lambda step: None
    stopped: str | None = None
    _done: set[tuple[str, str]] = field(default_factory=set)

    async def run(self) -> None:
        programs = ProgramSets()
        for record in self.journal.runs():
            self.spending.add(record)
            if not record.broken:
                self._done.add(record.key)
        self.spending.calls += len(self.journal.graded())
        try:
            async with asyncio.timeout(self.spending.allowance.minutes * 60):
                await self._probe()
                queue = list(self.cases)
                workers = [self._work(queue, programs) for _ in range(max(1, self.parallel))]
                async with asyncio.TaskGroup() as group:
                    for worker in workers:
                        group.create_task(worker)
        except TimeoutError:
            self.stopped = f"the budget of {self.spending.allowance.minutes:g} minutes"

    # --- the probe --------------------------------------------------------------------

    async def _probe(self) -> None:
        """At most a fifth of the time: on a slow machine the runs matter more."""
        try:
            async with asyncio.timeout(self.spending.allowance.minutes * 60 * PROBE_SHARE):
                await self._ask()
        except TimeoutError:
            self._tell("the probe's share of the time is used up")

    async def _ask(self) -> None:
        graded = self.journal.graded()
        for number, (cursor, program) in enumerate(self.questions):
            if number in graded:
                continue
            refused = self.spending.refuses(1, 0.0)
            if refused is not None:
                self.stopped = refused
                return
            model = self.model_for(self.cases[0], "probe")
            self.spending.calls += 1
            try:
                reply, _ = await complete_with_retries(
                    model, probe_request(cursor, program), self.retries or Retries()
                )
            except InfrastructureFailure:
                continue
            self.spending.add_tokens(reply.usage.prompt_tokens, reply.usage.completion_tokens)
            self.journal.add_grade(number, grade(cursor, answer_text(reply)))
            self._tell(f"probe question {number + 1} of {len(self.questions)}")

    # --- cases ------------------------------------------------------------------------

    async def _work(self, queue: list[Task], programs: ProgramSets) -> None:
        while queue and self.stopped is None:
            case = queue.pop(0)
            left = self._left(case)
            if not left:
                continue
            calls = worst_calls(self.rehearsal.turns[case.key], len(left))
            estimates = self.rehearsal.estimates[case.key]
            expected = sum((estimates[arm] for arm in left), NOTHING)
            money = likely_money(expected, self.spending.allowance.prices)
            refused = self.spending.refuses(calls, money)
            if refused is not None:
                self.stopped = refused
                return
            self.spending.reserved_calls += calls
            self.spending.reserved_money += money
            try:
                for arm in left:
                    await self._run(case, arm, programs)
            finally:
                self.spending.reserved_calls -= calls
                self.spending.reserved_money -= money

    async def _run(self, case: Task, arm: str, programs: ProgramSets) -> None:
        record, _, _ = await run_case(
            case,
            arm,
            self.model_for(case, arm),
            store=self.store_for(),
            budgets=run_budgets(self.rehearsal.turns[case.key]),
            programs=programs.of(case.briefing, ARMS[arm]),
            retries=self.retries,
        )
        self.spending.add(record)
        self.journal.add_run(record)
        if not record.broken:
            self._done.add(record.key)
        word = "broken" if record.passed is None else "passed" if record.passed else "failed"
        self._tell(f"{case.key} {arm}: {word}")

    def _left(self, case: Task) -> list[str]:
        return [arm for arm in self.arms if (case.key, arm) not in self._done]

    def _tell(self, what: str) -> None:
        done = sum(not self._left(case) for case in self.cases)
        self.watch(CheckProgress(what, done, len(self.cases)))


class MemoryJournal:
    """For checks that nobody wants to resume."""

    def __init__(self) -> None:
        self._runs: list[RunRecord] = []
        self._grades: dict[int, ProbeGrade] = {}

    def runs(self) -> Sequence[RunRecord]:
        return self._runs

    def grades(self) -> Sequence[ProbeGrade]:
        return [self._grades[number] for number in sorted(self._grades)]

    def add_run(self, record: RunRecord) -> None:
        self._runs = [one for one in self._runs if one.key != record.key]
        self._runs.append(record)

    def add_grade(self, number: int, grade: ProbeGrade) -> None:
        self._grades[number] = grade

    def graded(self) -> frozenset[int]:
        return frozenset(self._grades)
