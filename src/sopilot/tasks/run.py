"""Run or resume a task: the session, the loop, the audit, the verdict."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

from sopilot.agent.budgets import Budgets
from sopilot.agent.loop import open_run, run_programs, run_session
from sopilot.agent.result import Ending, Watch, audit_session, nobody_watches
from sopilot.agent.retries import Retries
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import InternalBug, mistake
from sopilot.protocols import Model, User
from sopilot.records.people import Principal
from sopilot.records.store import Store
from sopilot.session.opening import resume_session
from sopilot.session.session import Session
from sopilot.tasks.task import FinishedRun, Result, Simulation, Task
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.view import View


@dataclass(frozen=True, slots=True)
class Conditions:
    """The model, its view and its budgets. ``user`` replaces the task's own user. ``offered``: the
    agent's tools, where they aren't all of the task's. ``final``: nobody resumes the run, so the
    audit judges one that waits as ended."""

    view: View
    model: Model
    model_name: str = ""
    user: User | None = None
    budgets: Budgets | None = None
    retries: Retries | None = None
    watch: Watch = nobody_watches
    offered: Collection[str] | None = None
    final: bool = False


class Opening(TypedDict, total=False):
    """``programs`` are prepared once for many runs."""

    session_id: str | None
    extra: Mapping[str, JSON] | None
    programs: ProgramSet | None
    requester: Principal | None


class RunnerSession:
    """An open session. ``events`` is its trace so far; ``run`` runs it to the end."""

    def __init__(
        self,
        session: Session,
        task: Task,
        simulation: Simulation,
        conditions: Conditions,
        *,
        resumed: bool = False,
    ) -> None:
        self.session = session
        self._task, self._simulation, self._conditions = task, simulation, conditions
        self._resumed = resumed

    @property
    def id(self) -> str:
        return self.session.id

    async def run(self) -> Result:
        """From wherever the session stands to the audit. Without a verdict if the infrastructure
        failed."""
        session, task, simulation = self.session, self._task, self._simulation
        conditions = self._conditions
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
        waits, verdict, expected = result.ending is Ending.WAITING, None, task.expected
        if simulation.score is not None and result.ending is not Ending.INFRASTRUCTURE_FAILURE:
            verdict = simulation.score(len(result.messages), FinishedRun(result, session))
        if self._resumed and expected is Ending.WAITING and not waits:
            # People have decided since the task reached its expected ending.
            verdict = expected = None
        report = await audit_session(
            session,
            task.briefing.handbook,
            conditions.view,
            goal=task.goal or None,
            ended=conditions.final or not waits,
            offered=conditions.offered,
        )
        held = tuple(map(session.secrets.shown_call, session.held_calls))
        return Result(result, report, verdict, expected, held, session.events)


async def run_task(
    task: Task,
    simulation: Simulation,
    conditions: Conditions,
    *,
    store: Store,
    **opening: Unpack[Opening],
) -> Result:
    """Run a task from the request to the audit."""
    async with open_task(task, simulation, conditions, store=store, **opening) as opened:
        return await opened.run()


@asynccontextmanager
async def open_task(
    task: Task,
    simulation: Simulation,
    conditions: Conditions,
    *,
    store: Store,
    **opening: Unpack[Opening],
) -> AsyncIterator[RunnerSession]:
    async with await open_run(
        store,
        task.briefing,
        conditions.view,
        tools=simulation.tools,
        model=conditions.model_name or conditions.model.name,
        unguarded=task.simulated,
        **opening,
    ) as session:
        yield RunnerSession(session, task, simulation, conditions)


@asynccontextmanager
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
) -> AsyncIterator[RunnerSession]:
    """Open a session where its trace ends. If the handbook has changed, raise
    ``ProgramChanged`` unless ``as_started`` or ``accept_changed``."""
    view = conditions.view
    present = run_programs(task.briefing, view, unguarded=task.simulated)
    async with await resume_session(
        store,
        session_id,
        tools=simulation.tools,
        programs=None if as_started else present,
        accept_changed=accept_changed,
        take_over=take_over,
        requester=requester,
    ) as session:
        await simulation.catch_up(session_id, await session.whole_events())
        if as_started:
            task = _as_it_started(task, session, present, view, tell)
        yield RunnerSession(session, task, simulation, conditions, resumed=True)


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
            f"the view `{view.name}` shows the handbook, but the handbook that this "
            "session began with wasn't stored",
            help="switch to the current handbook with `--accept-changed`, or start a new session",
        )
    tell("as started: the model is shown frames of the program that was stored")
    briefing = Briefing(handbook, stored.programs, task.briefing.language)
    return replace(task, briefing=briefing)
