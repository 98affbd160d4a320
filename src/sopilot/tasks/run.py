"""Run or resume a task: the session, the loop, the audit, the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

from sopilot.agent.budgets import Budgets
from sopilot.agent.loop import open_run, run_programs, run_session
from sopilot.agent.providers import Retries
from sopilot.agent.result import Ending, SessionResult, Watch, audit_session, nobody_watches
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import InternalBug, mistake
from sopilot.protocols import Model, User
from sopilot.records.people import Principal
from sopilot.records.store import Store
from sopilot.session.opening import resume_session
from sopilot.session.session import Session
from sopilot.tasks.task import FinishedRun, Result, Simulation, Task
from sopilot.values.json import JSON, Fields
from sopilot.views.briefing import Briefing
from sopilot.views.view import View


@dataclass(frozen=True, slots=True)
class Conditions:
    """The model, its view and its budgets. ``user`` replaces the task's own user."""

    view: View
    model: Model
    model_name: str = ""
    user: User | None = None
    budgets: Budgets | None = None
    retries: Retries | None = None
    watch: Watch = nobody_watches


Played = tuple[SessionResult, Fields | None]
"""A run that has ended, and the evaluator's verdict."""


class Opening(TypedDict, total=False):
    """``programs`` are prepared once for many runs."""

    session_id: str | None
    extra: Mapping[str, JSON] | None
    programs: ProgramSet | None
    requester: Principal | None


async def run_task(
    task: Task,
    simulation: Simulation,
    conditions: Conditions,
    *,
    store: Store,
    **opening: Unpack[Opening],
) -> Result:
    """Run a task from the request to the audit."""
    async with await open_task(task, simulation, conditions, store=store, **opening) as session:
        played = await play_task(task, simulation, conditions, session)
        return await task_result(task, conditions, session, played)


async def open_task(
    task: Task,
    simulation: Simulation,
    conditions: Conditions,
    *,
    store: Store,
    **opening: Unpack[Opening],
) -> Session:
    return await open_run(
        store,
        task.briefing,
        conditions.view,
        tools=simulation.tools,
        model=conditions.model_name or conditions.model.name,
        unguarded=task.simulated,
        **opening,
    )


async def resume_task(
    task: Task,
    simulation: Simulation,
    conditions: Conditions,
    *,
    store: Store,
    session_id: str,
    as_started: bool = False,
    accept_changed: bool = False,
    take_over: bool = False,
    requester: Principal | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Result:
    """Resume a session where its trace ends. If the handbook has changed, raise
    ``ProgramChanged`` unless ``as_started`` or ``accept_changed``."""
    view = conditions.view
    present = run_programs(task.briefing, view, unguarded=task.simulated)
    session = await resume_session(
        store,
        session_id,
        tools=simulation.tools,
        programs=None if as_started else present,
        accept_changed=accept_changed,
        take_over=take_over,
        requester=requester,
    )
    async with session:
        await simulation.catch_up(session_id, await session.whole_events())
        if as_started:
            task = _as_it_started(task, session, present, view, tell)
        played = await play_task(task, simulation, conditions, session)
        done = await task_result(task, conditions, session, played)
        if task.expected is Ending.WAITING and done.ending is not Ending.WAITING:
            # People have decided since the task reached its expected ending.
            return replace(done, verdict=None, expected=None)
        return done


async def play_task(
    task: Task, simulation: Simulation, conditions: Conditions, session: Session
) -> Played:
    """Run an opened session to its end. Without a verdict if the infrastructure failed."""
    user = conditions.user or simulation.user
    if user is None:
        raise InternalBug("a run needs a user")
    result = await run_session(
        session,
        task.briefing,
        view=conditions.view,
        model=conditions.model,
        user=user,
        budgets=conditions.budgets or simulation.budgets,
        retries=conditions.retries,
        operator=simulation.operator,
        watch=conditions.watch,
    )
    if simulation.score is None or result.ending is Ending.INFRASTRUCTURE_FAILURE:
        return result, None
    return result, simulation.score(len(result.messages), FinishedRun(result, session))


async def task_result(
    task: Task, conditions: Conditions, session: Session, played: Played
) -> Result:
    """Audit a run that ``play_task`` has brought to its end."""
    result, verdict = played
    report = await audit_session(
        session,
        task.briefing.handbook,
        conditions.view,
        goal=task.goal or None,
        ended=result.ending is not Ending.WAITING,
    )
    held = tuple(map(session.secrets.shown_call, session.held_calls))
    return Result(result, report, verdict, task.expected, held, session.events)


def _as_it_started(
    task: Task, session: Session, present: ProgramSet, view: View, tell: Callable[[str], None]
) -> Task:
    """The task for the session's own programs. If the stored handbook doesn't compile to them,
    only a view that shows nothing but frames can go on."""
    stored = session.programs
    if present.hashes == stored.hashes:
        tell("as started: the model sees the handbook as it was then")
        return task
    handbook = task.briefing.handbook
    if not view.frames_only or not stored.programs.keys() <= handbook.procedures.keys():
        raise mistake(
            "handbook-not-kept",
            f"the view `{view.name}` shows the handbook, and the one that this session "
            "began with was not kept",
            help="switch to the present handbook with `--accept-changed`, or start a new session",
        )
    tell("as started: the model is shown frames of the program that was stored")
    briefing = Briefing(handbook, stored.programs, task.briefing.language)
    return replace(task, briefing=briefing)
