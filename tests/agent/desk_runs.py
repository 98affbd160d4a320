"""Runs of bundled tasks through the real loop, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from refusal_causes import judged
from sopilot.agent.approvers import Operator, RoleApprovers, ScriptedUser
from sopilot.agent.budgets import Budgets
from sopilot.agent.loop import open_run, run_programs, run_session
from sopilot.agent.reference.executor import Reference
from sopilot.agent.result import SessionResult
from sopilot.agent.retries import Retries
from sopilot.audit.audit import audit_trace
from sopilot.audit.report import Report
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.expressions import judge
from sopilot.machine.program_set import ProgramSet
from sopilot.protocols import Clock, Model, ModelReply, ModelRequest, ToolCall, User
from sopilot.records.store import Settings
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import Judgement, bundled_names, load_example
from sopilot.tasks.examples.simulator import Simulator
from sopilot.tasks.examples.task import ExampleTask
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS
from sopilot.views.moment import Moment
from sopilot.views.moves import FrameMessage
from sopilot.views.view import View
from sopilot_lab.experiments.misbehaviour import Misbehaving, Misbehaviour


@dataclass(frozen=True)
class Played:
    result: SessionResult
    session: Session
    world: Simulator
    judgement: Judgement

    def notes(self, name: str) -> list[Mapping[str, object]]:
        return [
            one.payload["details"]
            for one in self.session.own_events
            if one.kind == "note" and one.payload["name"] == name
        ]

    def kinds(self) -> list[str]:
        return [one.event.kind for one in self.session.events]

    def audit(self) -> Report:
        programs = self.session.programs.programs
        return audit_trace(programs, self.session.events, judge=judge)


@cache
def briefing_of(example: str, language: str = "en") -> Briefing:
    handbook = load_example(example).handbook
    programs = {goal: one.program for goal, one in compile_handbook(handbook).items()}
    return Briefing(handbook, programs, language)


@cache
def programs_of(example: str, view: str, language: str = "en") -> ProgramSet:
    return run_programs(briefing_of(example, language), VIEWS[view], unguarded=True)


def user_of(task: ExampleTask) -> ScriptedUser:
    return ScriptedUser(
        task.request, task.inputs, goal=task.goal, late=task.late, follow_ups=task.follow_ups
    )


def some_tasks(every: int, *examples: str) -> list[tuple[str, str]]:
    """Return every n-th task of these examples, or of all bundled ones."""
    return [
        (example, task.id)
        for example in examples or bundled_names()
        for task in load_example(example).tasks[::every]
    ]


def reference(example: str, misbehaviour: Misbehaviour | None = None) -> Reference:
    return Misbehaving(load_example(example).reader, misbehaviour or Misbehaviour())


async def play(
    example_name: str,
    task_id: str | None = None,
    view: str | View = "pg",
    *,
    model: Model | None = None,
    misbehaviour: Misbehaviour | None = None,
    user: User | None = None,
    budgets: Budgets | None = None,
    retries: Retries | None = None,
    language: str = "en",
    clock: Clock | None = None,
    world: Simulator | None = None,
    operator: Operator | None = None,
    settings: Settings | None = None,
    wrap: Callable[[Model, Session], Model] = lambda model, session: model,
) -> Played:
    """Run a task, or the example's first one, with the reference executor unless told otherwise."""
    example = load_example(example_name)
    task = example.task(task_id) if task_id is not None else example.tasks[0]
    briefing = briefing_of(example_name, language)
    world = world or example.make_tools(task)
    view = VIEWS[view] if isinstance(view, str) else view
    programs = programs_of(example_name, view.name, language) if view.name in VIEWS else None
    session = await open_run(
        MemoryStore(),
        briefing,
        view,
        tools=world,
        unguarded=True,
        programs=programs,
        clock=clock,
        settings=settings,
    )
    result = await run_session(
        session,
        briefing,
        view=view,
        model=wrap(model or reference(example_name, misbehaviour), session),
        user=user or user_of(task),
        budgets=budgets,
        retries=retries,
        operator=operator or RoleApprovers(task.approvers),
    )
    cause = result.refusals[0].rule if result.refusals else None
    judgement = judged(example, task, world.calls, world.state, cause)
    return Played(result, session, world, judgement)


def watched(view: str, look: Callable[[Moment, FrameMessage], object]) -> View:
    """The view, with ``look`` called for every frame message that it shows."""
    inner = VIEWS[view]

    def frame_message(moment: Moment) -> FrameMessage:
        message = inner.frame_message(moment)
        look(moment, message)
        return message

    return replace(inner, frame_message=frame_message)


class ScriptedModel:
    """Replies from a list, or by functions of the request; the last one is repeated."""

    name = "scripted"

    def __init__(
        self, replies: Sequence[ModelReply | Callable[[ModelRequest], ModelReply]]
    ) -> None:
        self.replies = list(replies)
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        return reply if isinstance(reply, ModelReply) else reply(request)


class RecordingModel:
    """Another model, with every request kept."""

    def __init__(self, inner: Model) -> None:
        self._inner, self.name = inner, inner.name
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        return await self._inner.complete(request)


def calls(*pairs: tuple[str, str]) -> ModelReply:
    """A reply with these tool calls: name and raw arguments."""
    return ModelReply("", tuple(ToolCall(f"c{i}", n, a) for i, (n, a) in enumerate(pairs)))
