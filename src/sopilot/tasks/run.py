"""Run or resume a task: the session, the loop, the audit, the verdict."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypedDict

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


class Resuming(TypedDict, total=False):
    """How a session is resumed. ``take_over``: don't wait for another process's lease. If the
    handbook has changed, go on ``as_started`` or ``accept_changed``."""

    take_over: bool
    as_started: bool
    accept_changed: bool


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
    programs: ProgramSet | None = None,
    requester: Principal | None = None,
) -> Result:
    """Run a task from the request to the audit. ``programs`` are prepared once for many runs."""
    async with open_task(
        task, simulation, conditions, store=store, programs=programs, requester=requester
    ) as opened:
        return await opened.run()


@asynccontextmanager
async def open_task(
    task: Task,
    simulation: Simulation,
    conditions: Conditions,
    *,
    store: Store,
    session_id: str | None = None,
    extra: Mapping[str, JSON] | None = None,
    programs: ProgramSet | None = None,
    requester: Principal | None = None,
    resume: Resuming | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> AsyncIterator[RunnerSession]:
    """A new session, or the one to ``resume``, where its trace ends. Raise ``ProgramChanged`` if
    the handbook has changed and ``resume`` doesn't say how to go on."""
    view, tools = conditions.view, simulation.tools
    present = programs
    if present is None:
        present = run_programs(task.briefing, view, unguarded=task.simulated)
    if resume is None or session_id is None:
        name = conditions.model_name or conditions.model.name
        opening = open_run(
            store, task.briefing, view, tools=tools, model=name, session_id=session_id,
            extra=extra, programs=present, requester=requester,
        )  # fmt: skip
    else:
        as_started = resume.get("as_started", False)
        opening = resume_session(
            store, session_id, tools=tools, programs=None if as_started else present,
            accept_changed=resume.get("accept_changed", False),
            take_over=resume.get("take_over", False), requester=requester,
        )  # fmt: skip
    async with await opening as session:
        if resume is not None:
            await simulation.catch_up(session.id, await session.whole_events())
            if resume.get("as_started"):
                task = _as_it_started(task, session, present, view, tell)
        yield RunnerSession(session, task, simulation, conditions, resumed=resume is not None)


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
