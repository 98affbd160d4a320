"""The check itself: the probe, then case after case under every arm, within the allowance.

Everything that is finished is in the journal at once, so a check that was killed or ran out of its
allowance resumes where it stopped. An endpoint that does not answer ends the check."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sopilot.agent.providers import Attempts, InfrastructureFailure, Retries, complete_with_retries
from sopilot.program.model import Program
from sopilot.protocols import Model, Usage
from sopilot.tasks.task import Task
from sopilot.views.catalogue import VIEWS
from sopilot_lab.qualification.cases import (
    TIMEOUT,
    Effort,
    ProgramSets,
    RunRecord,
    StoreFor,
    is_empty,
    run_budgets,
    run_case,
)
from sopilot_lab.qualification.prepared import Rehearsal
from sopilot_lab.qualification.probe import Cursor, ProbeGrade, answer_text, grade, probe_request

CALLS = 20_000
MINUTES = 25.0
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Per million tokens. Without prices money is not counted, and not said to be 0."""

    prompt: float = 0.0
    completion: float = 0.0

    @property
    def known(self) -> bool:
        return self.prompt > 0.0 or self.completion > 0.0

    def cost(self, effort: Effort) -> float:
        tokens = effort.prompt_tokens * self.prompt + effort.completion_tokens * self.completion
        return tokens / _MILLION


@dataclass(frozen=True, slots=True)
class Allowance:
    """``calls`` are requests to the model, exceeded only by repeated attempts of what is under
    way; ``money`` may be exceeded by what the runs under way cost more than expected."""

    calls: int = CALLS
    money: float | None = None
    minutes: float = MINUTES
    prices: Prices = field(default_factory=Prices)


@dataclass(slots=True)
class CheckSpending:
    """``reserved`` is the worst case of what is under way."""

    allowance: Allowance
    used: Effort = Effort()  # noqa: RUF009  frozen, and made of numbers
    reserved_calls: int = 0
    reserved_money: float = 0.0

    @property
    def money(self) -> float:
        return self.allowance.prices.cost(self.used)

    def refuses(self, calls: int, money: float) -> str | None:
        """The budget that has no room for this much more, if there is one."""
        if self.used.requests + self.reserved_calls + calls > self.allowance.calls:
            return f"the budget of {self.allowance.calls} requests"
        most = self.allowance.money
        if most is not None and self.money + self.reserved_money + money > most:
            return f"the budget of {most:g} in money"
        return None


PROBE_SHARE = 0.2
IN_A_ROW = 3
"""Runs or questions that the endpoint broke, one after the other, until the check gives it up."""
SILENT_FOR = 2
"""Times the longest answer: without any answer by then, the endpoint counts as down."""
ModelFor = Callable[[Task, str], Model]
"""The model that runs this case under this arm; one and the same, but for executors that
need a handbook to judge by."""


class Journal:
    """Finished work. ``runs`` are the last of each case and arm, ``spent`` what all of them and
    the questions took. A question without a grade was not answered. This one is in memory."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], RunRecord] = {}
        self._grades: dict[int, ProbeGrade] = {}
        self._spent: list[Effort] = []

    def runs(self) -> Sequence[RunRecord]:
        return list(self._runs.values())

    def spent(self) -> Sequence[Effort]:
        return self._spent

    def grades(self) -> Sequence[ProbeGrade]:
        return [self._grades[number] for number in sorted(self._grades)]

    def add_run(self, record: RunRecord) -> None:
        self._runs.pop(record.key, None)
        self._runs[record.key] = record
        self._spent.append(record.effort)

    def add_question(self, number: int, grade: ProbeGrade | None, spent: Effort) -> None:
        if grade is not None:
            self._grades[number] = grade
        self._spent.append(spent)

    def graded(self) -> set[int]:
        return {*self._grades}


@dataclass(frozen=True, slots=True)
class CheckProgress:
    """Something was finished: ``what`` for people, ``done`` of ``planned`` cases."""

    what: str
    done: int
    planned: int


@dataclass(slots=True)
class Qualification:
    """``stopped`` names what ended it early; ``problem`` what the endpoint did, if it was that.
    ``timeout`` is how many seconds one answer may take. ``probed`` answers the probe where there
    are no cases to run."""

    cases: Sequence[Task]
    arms: Sequence[str]
    model_for: ModelFor
    rehearsal: Rehearsal
    spending: CheckSpending
    journal: Journal
    store_for: StoreFor
    questions: Sequence[tuple[Cursor, Program]] = ()
    probed: Model | None = None
    parallel: int = 1
    retries: Retries | None = None
    timeout: float = TIMEOUT
    watch: Callable[[CheckProgress], None] = lambda step: None
    stopped: str | None = None
    problem: str | None = None
    _done: set[tuple[str, str]] = field(default_factory=set)
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    _in_a_row: int = 0

    async def run(self) -> None:
        programs = ProgramSets()
        self.spending.used = sum(self.journal.spent(), self.spending.used)
        self._done |= {record.key for record in self.journal.runs() if not record.broken}
        if self._done or self.journal.graded():
            self._heard.set()
        try:
            async with asyncio.timeout(self.spending.allowance.minutes * 60):
                async with asyncio.TaskGroup() as group:
                    work = group.create_task(self._everything(programs))
                    group.create_task(self._listen(work))
        except TimeoutError:
            self.stopped = f"the budget of {self.spending.allowance.minutes:g} minutes"

    async def _everything(self, programs: ProgramSets) -> None:
        await self._probe()
        queue = list(self.cases)
        async with asyncio.TaskGroup() as group:
            for _ in range(max(1, self.parallel)):
                group.create_task(self._work(queue, programs))

    # --- the endpoint -----------------------------------------------------------------

    async def _listen(self, work: asyncio.Task[None]) -> None:
        """Ends the work if nothing is ever heard; an endpoint that hangs would take all of the
        time, and its retries, to say so."""
        longest = SILENT_FOR * self.timeout
        heard = asyncio.create_task(self._heard.wait())
        await asyncio.wait({heard, work}, timeout=longest, return_when=asyncio.FIRST_COMPLETED)
        heard.cancel()
        if not self._heard.is_set() and not work.done():
            self._give_up(f"no answer within {longest:g} s")
            work.cancel()

    def _answered(self) -> None:
        self._in_a_row = 0
        self._heard.set()

    def _broke(self, problem: str) -> None:
        self._in_a_row += 1
        if self._in_a_row >= IN_A_ROW:
            self._give_up(problem)

    def _give_up(self, problem: str) -> None:
        self.problem = problem
        self.stopped = f"the model's endpoint: {problem}"

    # --- the probe --------------------------------------------------------------------

    async def _probe(self) -> None:
        """Ask for at most a fifth of the time: on a slow machine the runs matter more."""
        share = PROBE_SHARE if self.cases else 1.0
        try:
            async with asyncio.timeout(self.spending.allowance.minutes * 60 * share):
                await self._ask()
        except TimeoutError:
            self._tell("the probe's share of the time is used up")

    async def _ask(self) -> None:
        graded = self.journal.graded()
        empty = 0
        for number, (cursor, program) in enumerate(self.questions):
            if number in graded:
                continue
            refused = self.spending.refuses(1, 0.0)
            if refused is not None:
                self.stopped = refused
                return
            model = self.probed or self.model_for(self.cases[0], "probe")
            request = replace(probe_request(cursor, program), timeout_seconds=self.timeout)
            attempts = Attempts()
            try:
                reply = await complete_with_retries(
                    model, request, self.retries or Retries(), attempts=attempts
                )
            except InfrastructureFailure as failure:
                self._record_question(number, None, failure.usage, failure.attempts)
                self._tell(f"probe question {number + 1}: {failure}")
                self._broke(str(failure))
                if self.stopped is not None:
                    return
                continue
            usage = reply.usage + attempts.discarded
            self._in_a_row = 0
            if is_empty(reply):
                # No answer to grade; whether it says nothing at all, the runs will show.
                empty += 1
                self._record_question(number, None, usage, attempts.made)
                self._tell(f"probe question {number + 1}: an empty message")
                if empty == IN_A_ROW:
                    return
                continue
            empty = 0
            self._answered()
            graded_answer = grade(cursor, answer_text(reply))
            self._record_question(number, graded_answer, usage, attempts.made)
            self._tell(f"probe question {number + 1} of {len(self.questions)}")

    def _record_question(
        self, number: int, grade: ProbeGrade | None, usage: Usage, requests: int
    ) -> None:
        spent = Effort(requests, usage.prompt_tokens, usage.completion_tokens)
        self.spending.used += spent
        self.journal.add_question(number, grade, spent)

    # --- cases ------------------------------------------------------------------------

    async def _work(self, queue: list[Task], programs: ProgramSets) -> None:
        while queue and self.stopped is None:
            case = queue.pop(0)
            left = self._left(case)
            if not left:
                continue
            budgets = run_budgets(self.rehearsal.turns[case.key])
            calls = len(left) * (budgets.agent_turns or 0)
            estimates = self.rehearsal.estimates[case.key]
            expected = sum((estimates[arm] for arm in left), Effort())
            # Twice what the reference executor would cost: models take detours.
            money = 2 * self.spending.allowance.prices.cost(expected)
            refused = self.spending.refuses(calls, money)
            if refused is not None:
                self.stopped = refused
                return
            self.spending.reserved_calls += calls
            self.spending.reserved_money += money
            try:
                for arm in left:
                    if self.stopped is None:
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
            budgets=run_budgets(self.rehearsal.turns[case.key], self.timeout),
            programs=programs.of(case.briefing, VIEWS[arm]),
            retries=self.retries,
            on_word=self._heard.set,
        )
        self.spending.used += record.effort
        self.journal.add_run(record)
        if record.broken:
            problem = record.reasons[0]
            self._tell(f"{case.key} {arm}: broken ({problem})")
            self._broke(problem)
            return
        self._answered()
        self._done.add(record.key)
        self._tell(f"{case.key} {arm}: {'passed' if record.passed else 'failed'}")

    def _left(self, case: Task) -> list[str]:
        return [arm for arm in self.arms if (case.key, arm) not in self._done]

    def _tell(self, what: str) -> None:
        done = sum(not self._left(case) for case in self.cases)
        self.watch(CheckProgress(what, done, len(self.cases)))
