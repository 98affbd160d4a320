"""One case under one arm, through the real loop."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from sopilot.agent.budgets import Budgets
from sopilot.agent.loop import run_programs
from sopilot.agent.providers import ProviderError, Retries
from sopilot.agent.result import Ending, SessionResult
from sopilot.machine.program_set import ProgramSet
from sopilot.protocols import Model, ModelReply, ModelRequest, Usage
from sopilot.records.store import Store
from sopilot.session.session import Session
from sopilot.tasks.run import Conditions, open_task, play_task
from sopilot.tasks.scenario_verdict import calls_made, post_goal_calls
from sopilot.tasks.task import Task
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS
from sopilot.views.view import View
from sopilot_lab.qualification.plan import kind_of
from sopilot_lab.qualification.record import RunRecord

USER_TURNS = 5


DOMAIN_CALLS = 30


SPARE_TURNS = 10


TURNS_FACTOR = 3


TIMEOUT = 180.0
"""Seconds for one answer."""


ONLY_EMPTY = "every answer was an empty message"


StoreFor = Callable[[], Store]
"""A store for one run; sessions of a check need not outlive it."""


def run_budgets(reference_requests: int, timeout: float = TIMEOUT) -> Budgets:
    """The same for every arm of a case, from what the reference executor needed."""
    return Budgets(
        request_seconds=timeout,
        agent_turns=TURNS_FACTOR * reference_requests + SPARE_TURNS,
        user_turns=USER_TURNS,
        domain_calls=DOMAIN_CALLS,
    )


class ProgramSets:
    """Prepared programs, one set a briefing and kind of arm: preparing costs more than a run."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, bool], tuple[Briefing, ProgramSet]] = {}

    def of(self, briefing: Briefing, arm: View) -> ProgramSet:
        key = (id(briefing), arm.machine)
        if key not in self._made:
            # The briefing is kept with it, so that its id stays its own.
            self._made[key] = (briefing, run_programs(briefing, arm, unguarded=True))
        return self._made[key][1]


class _Heard:
    """Hands everything on, and counts what was said at all and what it took: attempts ``made``,
    answers that could not be used among them, and the ``usage`` of all."""

    def __init__(self, model: Model, tell: Callable[[], None]) -> None:
        self._model = model
        self._tell = tell
        self.made = 0
        self.usage = Usage()
        self._replies = 0
        self._empty = 0

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def said_nothing(self) -> bool:
        return self._replies > 0 and self._replies == self._empty

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.made += 1
        try:
            reply = await self._model.complete(request)
        except ProviderError as error:
            self.usage += error.usage
            raise
        self.usage += reply.usage
        self._replies += 1
        if is_empty(reply):
            self._empty += 1
        else:
            self._tell()
        return reply


def is_empty(reply: ModelReply) -> bool:
    return not reply.tool_calls and not reply.content.strip()


async def run_case(
    case: Task,
    arm: View | str,
    model: Model,
    *,
    store: Store,
    budgets: Budgets,
    programs: ProgramSet | None = None,
    retries: Retries | None = None,
    on_word: Callable[[], None] = lambda: None,
) -> tuple[RunRecord, SessionResult, Session]:
    """``on_word`` hears of every answer that is not empty."""
    arm = VIEWS[arm] if isinstance(arm, str) else arm
    simulation = case.open()
    heard = _Heard(model, on_word)
    conditions = Conditions(arm, heard, budgets=budgets, retries=retries)
    begun = monotonic()
    session = await open_task(case, simulation, conditions, store=store, programs=programs)
    async with session:
        result, verdict = await play_task(case, simulation, conditions, session)
    await simulation.close()
    events = session.own_events
    failed = result.ending is Ending.INFRASTRUCTURE_FAILURE
    # A model that says nothing has neither done the task nor refused it.
    broken = failed or heard.said_nothing
    reasons = tuple(verdict["reasons"]) if verdict is not None else ()
    if broken:
        reasons = (result.reason if failed else f"{model.name}: {ONLY_EMPTY}",)
    record = RunRecord(
        case=case.name,
        domain=case.source,
        goal=case.goal,
        kind=str(kind_of(case)),
        arm=arm.name,
        passed=None if broken else not reasons,
        ending=str(Ending.INFRASTRUCTURE_FAILURE if broken else result.ending),
        reasons=reasons,
        post_goal_calls=post_goal_calls(calls_made(events), case.goal_action),
        requests=heard.made,
        domain_calls=result.domain_calls,
        prompt_tokens=heard.usage.prompt_tokens,
        cached_tokens=heard.usage.cached_tokens,
        completion_tokens=heard.usage.completion_tokens,
        seconds=round(monotonic() - begun, 3),
    )
    return record, result, session
