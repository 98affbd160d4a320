"""The check itself: the probe, then case after case under every arm, within the allowance.

Everything that is finished is on disk at once, so a check that was killed or ran out of its
allowance resumes where it stopped. An endpoint that does not answer ends the check."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from sopilot.agent.result import Ending
from sopilot.agent.retries import (
    EMPTY,
    Attempts,
    InfrastructureFailure,
    Retries,
    complete_with_retries,
)
from sopilot.models.open import close_model
from sopilot.program.model import Program
from sopilot.protocols import Model, ModelReply, ModelRequest, Usage
from sopilot.tasks.task import Task
from sopilot_lab.experiments.entrants import Contestant, Party, Patience
from sopilot_lab.experiments.run_folder import BenchRecord, Effort, JournalWriter, journal_writer
from sopilot_lab.experiments.sweep import Shard, Standing, SweepStopped, run_and_record
from sopilot_lab.experiments.trial import Play, Reference, Trial, TrialRunner
from sopilot_lab.qualification.folder import CheckFolder, Question
from sopilot_lab.qualification.plan import (
    TIMEOUT,
    RehearsedCases,
    arm_configuration,
    kind_of,
    run_budgets,
)
from sopilot_lab.qualification.probe import Cursor, answer_text, grade, probe_request
from sopilot_lab.sopbench.tasks import OwnReference
from sopilot_lab.statistics.outcomes import TaskKind

CALLS: Final = 20_000
MINUTES: Final = 25.0
ONLY_EMPTY: Final = "every answer was an empty message"


@dataclass(frozen=True, slots=True)
class Allowance:
    """``calls`` are requests to the model, exceeded only by repeated attempts of what is under
    way; ``money`` may be exceeded by what the runs under way cost more than expected."""

    calls: int = CALLS
    money: float | None = None
    minutes: float = MINUTES


@dataclass(slots=True)
class CheckSpending:
    """``reserved`` is the worst case of what is under way."""

    allowance: Allowance
    who: Contestant
    used: Effort = Effort()  # noqa: RUF009  frozen, and made of numbers
    reserved_calls: int = 0
    reserved_money: float = 0.0

    def cost(self, effort: Effort) -> float | None:
        """Unknown without a price."""
        return self.who.cost(effort.usage)

    def refuses(self, calls: int, money: float) -> str | None:
        """The budget that has no room for this much more, if there is one."""
        if self.used.requests + self.reserved_calls + calls > self.allowance.calls:
            return f"the budget of {self.allowance.calls} requests"
        most = self.allowance.money
        if most is not None and (self.cost(self.used) or 0.0) + self.reserved_money + money > most:
            return f"the budget of {most:g} in money"
        return None


PROBE_SHARE = 0.2
IN_A_ROW = 3
"""Runs or questions that the endpoint broke, one after the other, until the check gives it up."""
SILENT_FOR = 2
"""Times the longest answer: without any answer by then, the endpoint counts as down."""


@dataclass(frozen=True, slots=True)
class CheckProgress:
    """Something was finished: ``what`` for people, ``done`` of ``planned`` cases."""

    what: str
    done: int
    planned: int


@dataclass(slots=True)
class Qualification:
    """``stopped`` names what ended it early; ``problem`` what the endpoint did, if it was that.
    ``timeout`` is how many seconds one answer may take. ``probed`` answers the probe. ``play``
    makes the model of a run, as for ``TrialRunner``."""

    cases: Mapping[OwnReference, Task]
    arms: Sequence[str]
    rehearsal: RehearsedCases
    spending: CheckSpending
    folder: CheckFolder
    questions: Sequence[tuple[Cursor, Program]] = ()
    probed: Model | None = None
    parallel: int = 1
    retries: Retries = Retries()  # noqa: RUF009  frozen, and made of numbers
    timeout: float = TIMEOUT
    watch: Callable[[CheckProgress], None] = lambda step: None
    play: Play | None = None
    stopped: str | None = None
    problem: str | None = None
    _done: set[tuple[str, str]] = field(default_factory=set)
    _standings: dict[str, Standing] = field(default_factory=dict)
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    _in_a_row: int = 0

    async def run(self) -> None:
        self.spending.used += self.folder.spent()
        runs, graded = self.folder.runs(), self.folder.graded()
        self._done |= {(run.arm, run.record.task) for run in runs if run.passed is not None}
        if self._done or graded:
            self._heard.set()
        try:
            with self._opened_arms(), journal_writer(self.folder.probe) as probe:
                async with asyncio.timeout(self.spending.allowance.minutes * 60):
                    async with asyncio.TaskGroup() as group:
                        work = group.create_task(self._everything(graded.keys(), probe))
                        group.create_task(self._listen(work))
        except TimeoutError:
            self.stopped = f"the budget of {self.spending.allowance.minutes:g} minutes"
        finally:
            await close_model(self.probed)

    @contextmanager
    def _opened_arms(self) -> Iterator[None]:
        """The folders of the arms, each with a runner and a place for its records."""
        party = Party(
            self.spending.who,
            patience=Patience(self.retries, redraws=0, most_missing=1.0),
            own={
                str(each): replace(
                    case, budgets=run_budgets(self.rehearsal.turns[str(each)], self.timeout)
                )
                for each, case in self.cases.items()
            },
        )
        executes = {
            str(each): kind_of(case) is TaskKind.EXECUTE for each, case in self.cases.items()
        }
        with ExitStack() as opened:
            for arm in self.arms if self.cases else ():
                configuration = arm_configuration(self.spending.who.label, arm)
                folder = self.folder.create_arm(configuration)
                opened.enter_context(folder.leader())
                folder.ask(executes)
                writer = opened.enter_context(folder.writer())
                runner = TrialRunner(
                    configuration, None, party, exchanged=self._listened, play=self.play
                )
                shard = Shard(folder.path, configuration, tuple(self.cases), party)
                self._standings[arm] = Standing(
                    shard, runner, folder, writer, partial(self._seen, arm)
                )
                opened.callback(folder.write_scores)
            yield

    async def _everything(self, graded: AbstractSet[int], probe: JournalWriter) -> None:
        await self._probe(graded, probe)
        queue = list(self.cases)
        async with asyncio.TaskGroup() as group:
            for _ in range(max(1, self.parallel)):
                group.create_task(self._work(queue))

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

    def _listened(self, request: ModelRequest, reply: ModelReply) -> None:
        if not is_empty(reply):
            self._heard.set()

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

    async def _probe(self, graded: AbstractSet[int], writer: JournalWriter) -> None:
        """Ask for at most a fifth of the time: on a slow machine the runs matter more."""
        share = PROBE_SHARE if self.cases else 1.0
        try:
            async with asyncio.timeout(self.spending.allowance.minutes * 60 * share):
                await self._ask(graded, writer)
        except TimeoutError:
            self._tell("the probe's share of the time is used up")

    async def _ask(self, graded: AbstractSet[int], writer: JournalWriter) -> None:
        empty = 0
        for number, (cursor, program) in enumerate(self.questions):
            if number in graded or self.probed is None:
                continue
            self.stopped = self.spending.refuses(1, 0.0)
            if self.stopped is not None:
                return
            request = replace(probe_request(cursor, program), timeout_seconds=self.timeout)
            attempts = Attempts()
            reply, problem = None, ""
            try:
                reply = await complete_with_retries(
                    self.probed, request, self.retries, attempts=attempts
                )
            except InfrastructureFailure as failure:
                problem = str(failure)
            # An empty message is no answer to grade; the runs show whether the model says nothing.
            answer = None if reply is None or is_empty(reply) else answer_text(reply)
            graded_answer = None if answer is None else grade(cursor, answer)
            usage = attempts.discarded + (Usage() if reply is None else reply.usage)
            effort = Effort(attempts.made, usage.prompt_tokens, usage.completion_tokens)
            self.spending.used += effort
            writer.write(Question(number, graded_answer, effort))
            question = f"probe question {number + 1}"
            if problem:
                self._tell(f"{question}: {problem}")
                self._broke(problem)
            elif answer is None:
                empty += 1
                self._in_a_row = 0
                self._tell(f"{question}: an empty message")
            else:
                empty = 0
                self._answered()
                self._tell(f"{question} of {len(self.questions)}")
            if self.stopped is not None or empty == IN_A_ROW:
                return

    # --- cases ------------------------------------------------------------------------

    async def _work(self, queue: list[OwnReference]) -> None:
        while queue and self.stopped is None:
            case = queue.pop(0)
            left = self._left(case)
            if not left:
                continue
            calls = len(left) * run_budgets(self.rehearsal.turns[str(case)]).agent_turns
            estimates = self.rehearsal.estimates[str(case)]
            expected = sum((estimates[arm] for arm in left), Effort())
            # Twice what the reference executor would cost: models take detours.
            money = 2 * (self.spending.cost(expected) or 0.0)
            self.stopped = self.spending.refuses(calls, money)
            if self.stopped is not None:
                return
            self.spending.reserved_calls += calls
            self.spending.reserved_money += money
            try:
                for arm in left:
                    if self.stopped is None:
                        await self._run(case, arm)
            finally:
                self.spending.reserved_calls -= calls
                self.spending.reserved_money -= money

    async def _run(self, case: OwnReference, arm: str) -> None:
        standing = self._standings[arm]

        async def trial(reference: Reference) -> Trial:
            made = await standing.runner.run(reference)
            return _broken_if_silent(made, self.spending.who)

        try:
            await run_and_record(case, standing, trial)
        except SweepStopped as stop:
            self._give_up(str(stop))

    def _seen(self, arm: str, record: BenchRecord) -> None:
        self.spending.used += record.effort
        if record.discarded:
            self._tell(f"{record.task} {arm}: broken ({record.reason})")
            self._broke(record.reason)
            return
        self._answered()
        self._done.add((arm, record.task))
        self._tell(f"{record.task} {arm}: {'passed' if record.passed else 'failed'}")

    def _left(self, case: OwnReference) -> list[str]:
        return [arm for arm in self.arms if (arm, str(case)) not in self._done]

    def _tell(self, what: str) -> None:
        done = sum(not self._left(case) for case in self.cases)
        self.watch(CheckProgress(what, done, len(self.cases)))


def is_empty(reply: ModelReply) -> bool:
    return not reply.tool_calls and not reply.content.strip()


def _broken_if_silent(trial: Trial, who: Contestant) -> Trial:
    """A model that says nothing has neither done the task nor refused it."""
    result = trial.result
    if trial.record.discarded or result is None or not trial.record.agent_turns:
        return trial
    said = [message for message in result.messages if message.role == "assistant"]
    if any(message.tool_calls or message.content.strip() for message in said):
        return trial
    broken = replace(
        trial.record,
        verdict=None,
        ending=str(Ending.INFRASTRUCTURE_FAILURE),
        reason=f"{who.name}: {ONLY_EMPTY}",
        fault=EMPTY,
    )
    return replace(trial, record=broken)
