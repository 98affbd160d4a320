"""One case under one arm, through the real loop."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from sopilot.desks.scenarios.made_calls import calls_made, post_goal_calls
from sopilot.desks.tasks import Conditions, Task, open_task, play_task
from sopilot.lab.discipline._plan import kind_of
from sopilot.lab.discipline._record import RunRecord
from sopilot.runtime.agent import (
    ARMS,
    Arm,
    Budgets,
    Ending,
    Retries,
    SessionResult,
    run_programs,
)
from sopilot.runtime.agent.briefing import Briefing
from sopilot.runtime.session import ProgramSet, Session, Store
from sopilot.runtime.session.protocols import Model

USER_TURNS = 5
DOMAIN_CALLS = 30
SPARE_TURNS = 10
TURNS_FACTOR = 3

StoreFor = Callable[[], Store]
"""A store for one run; sessions of a check need not outlive it."""


def run_budgets(reference_requests: int) -> Budgets:
    """The same for every arm of a case, from what the reference executor needed."""
    return Budgets(
        agent_turns=TURNS_FACTOR * reference_requests + SPARE_TURNS,
        user_turns=USER_TURNS,
        domain_calls=DOMAIN_CALLS,
    )


class ProgramSets:
    """Prepared programs, one set a briefing and kind of arm: preparing costs more than a run."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, bool], tuple[Briefing, ProgramSet]] = {}

    def of(self, briefing: Briefing, arm: Arm) -> ProgramSet:
        key = (id(briefing), arm.machine)
        if key not in self._made:
            # The briefing is kept with it, so that its id stays its own.
            self._made[key] = (briefing, run_programs(briefing, arm, unguarded=True))
        return self._made[key][1]


async def run_case(
    case: Task,
    arm: Arm | str,
    model: Model,
    *,
    store: Store,
    budgets: Budgets,
    programs: ProgramSet | None = None,
    retries: Retries | None = None,
) -> tuple[RunRecord, SessionResult, Session]:
    arm = ARMS[arm] if isinstance(arm, str) else arm
    world = case.open()
    conditions = Conditions(arm, model, budgets=budgets, retries=retries)
    begun = monotonic()
    session = await open_task(case, world, conditions, store=store, programs=programs)
    async with session:
        result, verdict = await play_task(case, world, conditions, session)
    await world.close()
    events = [sealed.event for sealed in session.events]
    broken = result.ending is Ending.INFRASTRUCTURE_FAILURE
    reasons = tuple(verdict["reasons"]) if verdict is not None else ()
    record = RunRecord(
        case=case.name,
        domain=case.source,
        goal=case.goal,
        kind=str(kind_of(case)),
        arm=arm.name,
        passed=None if broken else not reasons,
        ending=str(result.ending),
        reasons=reasons,
        post_goal_calls=post_goal_calls(calls_made(events), case.goal_action),
        requests=len(result.requests),
        domain_calls=result.domain_calls,
        prompt_tokens=result.usage.prompt_tokens,
        cached_tokens=result.usage.cached_tokens,
        completion_tokens=result.usage.completion_tokens,
        seconds=round(monotonic() - begun, 3),
    )
    return record, result, session
