"""A task: a request, the simulation it is made in, and what must come of it.

A simulation is fresh for every run. In another process it is rebuilt from the trace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from sopilot.agent.approvers import KeepsUnmadeCalls, Operator, RoleApprovers, ScriptedUser
from sopilot.agent.budgets import UNLIMITED, Budgets
from sopilot.agent.calls import KEPT_BY_TOOLS
from sopilot.agent.reference.judging import PredicateJudge
from sopilot.agent.result import Ending, SessionResult
from sopilot.audit.report import Report
from sopilot.handbook.model import BUILT_IN
from sopilot.machine.call_ledger import HeldCall
from sopilot.messages.diagnostic import Place, did_you_mean
from sopilot.messages.errors import RunEnded, mistake
from sopilot.protocols import ToolCall, ToolResult, Tools, ToolSchema, User
from sopilot.session.calls import call_key
from sopilot.session.session import Session
from sopilot.trace.chain import SealedEvent
from sopilot.trace.events import Actor, Event
from sopilot.values.json import JSON, Fields
from sopilot.views.briefing import Briefing
from sopilot.views.refusals import Refusal
from sopilot.views.step_answers import NOT_MADE


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a run. ``audit`` judges the procedure; ``verdict`` judges the task if it has
    an evaluator. ``expected`` is the right ending; ``held`` lists the calls that wait for people.
    """

    run: SessionResult
    audit: Report
    verdict: Fields | None = None
    expected: Ending | None = None
    held: Sequence[HeldCall] = ()
    events: Sequence[SealedEvent] = ()

    @property
    def session_id(self) -> str:
        return self.run.session_id

    @property
    def ending(self) -> Ending:
        return self.run.ending

    @property
    def reason(self) -> str:
        return self.run.reason

    @property
    def to_customer(self) -> str:
        return self.run.to_customer

    @property
    def refusals(self) -> Sequence[Refusal]:
        return self.run.refusals

    @property
    def executed(self) -> bool:
        return self.ending is Ending.EXECUTED

    @property
    def refused(self) -> bool:
        return self.ending is Ending.REFUSED

    @property
    def waiting(self) -> bool:
        return self.ending is Ending.WAITING

    @property
    def passed(self) -> bool | None:
        """Whether the agent passed the task; ``None`` without an evaluator."""
        return None if self.verdict is None else bool(self.verdict["success"])

    @property
    def pending(self) -> bool:
        """Whether people have to decide before the task can be judged."""
        return self.waiting and not self.passed

    @property
    def good(self) -> bool:
        """Whether the run ended properly, without findings, and passed its task if it has one."""
        proper = self.executed or self.refused or self.waiting
        return (
            proper and self.audit.clean is not False and (self.pending or self.passed is not False)
        )

    def as_json(self) -> dict[str, JSON]:
        document = self.run.as_json() | {"audit": self.audit.as_json()}
        if self.verdict is not None and not self.pending:
            rest = {name: value for name, value in self.verdict.items() if name != "success"}
            document["task"] = {"passed": self.passed, "expected": self.expected, **rest}
        return document


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run to score."""

    result: SessionResult
    session: Session


class Score(Protocol):
    """The evaluator's verdict: ``success``, and ``reasons``. ``messages`` is their number. Without
    a ``run`` it judges by the calls that reached the tools."""

    def __call__(self, messages: int, run: FinishedRun | None = None) -> Mapping[str, JSON]: ...


Close = Callable[[], Awaitable[None]]


async def nothing_to_close() -> None:
    return


@dataclass(frozen=True, slots=True)
class Simulation:
    """Tools, user and people around one run. Without ``user`` the served agent has its own.
    ``score`` judges the ``task`` with this ``goal``."""

    tools: Tools
    user: User | None = None
    budgets: Budgets = field(default_factory=lambda: UNLIMITED)
    operator: Operator | None = None
    score: Score | None = None
    task: str = ""
    goal: str = ""
    close: Close = nothing_to_close

    async def catch_up(self, session_id: str, events: Iterable[Event]) -> None:
        if isinstance(self.tools, ReplayedTools):
            await self.tools.catch_up(session_id, events)


class SimulationDiverged(RunEnded):
    """A simulator gave another answer than the trace records."""


class ReplayedTools:
    """Simulated tools whose state is lost with the process: another process rebuilds it by making
    the recorded calls again. Implements ``Tools``, ``RecallsOutcomes`` and, for tools that do,
    ``KeepsUnmadeCalls``."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._made: dict[str, ToolResult] = {}
        self._unmade = 0
        if hasattr(tools, "time"):
            self.time = tools.time

    def schemas(self) -> Sequence[ToolSchema]:
        return self._tools.schemas()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        if key not in self._made:
            self._made[key] = await self._tools.call(name, arguments, key=key)
        return self._made[key]

    async def recall(self, key: str) -> ToolResult | None:
        """The answer, or ``None`` for a call of a process that is gone."""
        return self._made.get(key)

    async def unmade(self, call: ToolCall, problem: str) -> bool:
        tools: object = self._tools
        stored = isinstance(tools, KeepsUnmadeCalls) and await tools.unmade(call, problem)
        self._unmade += stored
        return stored

    async def catch_up(self, session_id: str, events: Iterable[Event]) -> None:
        """Repeat every answered call that this simulator hasn't seen, and report every malformed
        call that it keeps. ``events`` need their payloads."""
        called: dict[str, tuple[str, Mapping[str, JSON]]] = {}
        unmade = 0
        for event in events:
            payload = event.payload
            about = event.details
            if KEPT_BY_TOOLS in about:
                unmade += 1
                if unmade > self._unmade:
                    call = ToolCall("", about["tool"], about["arguments"])
                    await self.unmade(call, about["problem"])
                continue
            if event.kind == "domain_call":
                called[payload["call_id"]] = payload["action"], payload["arguments"]
            elif event.kind == "domain_result" and event.actor != Actor.OPERATOR:
                name, arguments = called[payload["call_id"]]
                key = call_key(session_id, payload["call_id"], name, arguments)
                if key in self._made:
                    continue
                if name in BUILT_IN:
                    continue  # the user answered, not a tool
                if not payload["ok"] and payload["value"] == NOT_MADE.value:
                    continue
                result = await self.call(name, arguments, key=key)
                if result.ok != payload["ok"]:
                    raise SimulationDiverged(
                        f"`{name}` (event {event.seq}) had a different result when it was replayed"
                    )


class NoTools:
    """Tools of a run in which nothing can be called."""

    def schemas(self) -> Sequence[ToolSchema]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        return ToolResult(False, {"error": f"there is no tool `{name}` here"})


@dataclass(frozen=True, slots=True)
class Task:
    """A task to run: ``name`` is unique in its ``source``; ``goal`` is empty if it isn't known.

    ``request`` opens the dialog. ``inputs`` are the user's answers. The user gives fields in
    ``late`` only at the second question, and adds one of ``follow_ups`` per turn. ``approvers`` are
    the roles that approve, unless ``operator`` decides. ``expected`` is the right ending.
    ``reader`` judges evidence for the reference executor. ``surround`` makes the tools and the
    score; with a path, the tools store their state there.
    """

    source: str
    name: str
    goal: str
    briefing: Briefing
    surround: Callable[[Path | None], Simulation]
    request: str
    reader: PredicateJudge
    inputs: Mapping[str, JSON] = field(default_factory=dict)
    expected: Ending | None = None
    late: tuple[str, ...] = ()
    follow_ups: tuple[str, ...] = ()
    approvers: tuple[str, ...] = ()
    operator: Operator | None = None
    budgets: Budgets = field(default_factory=Budgets)
    simulated: bool = True
    names_goal: bool = True
    """Whether the user's answers name the goal."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """The user's answers to the runtime's questions, by subject. The default is yes."""
    opening_goal: str | None = None
    """The goal of the opening message, if the user changes it later."""

    @property
    def key(self) -> str:
        return f"{self.source}/{self.name}"

    @property
    def goal_action(self) -> str:
        return self.briefing.handbook.procedures[self.goal].action

    def open(self, keep: Path | None = None) -> Simulation:
        """Open a new simulation, or the one stored at ``keep``."""
        user = ScriptedUser(
            self.request,
            self.inputs,
            goal=self.goal if self.names_goal and self.goal else None,
            late=self.late,
            follow_ups=self.follow_ups,
            answers=self.answers,
        )
        operator = self.operator
        if operator is None and self.approvers:
            operator = RoleApprovers(self.approvers)
        return replace(
            self.surround(keep),
            user=user,
            budgets=self.budgets,
            operator=operator,
            task=self.key,
            goal=self.goal,
        )

    def changed(
        self,
        *,
        request: str | None = None,
        inputs: Mapping[str, JSON] | None = None,
        approvers: tuple[str, ...] = (),
    ) -> Task:
        """A copy with another request, inputs or approvers, and without an expected ending."""
        if approvers:
            self._known(approvers)
        if request is not None:
            # The task's follow-ups and score are for its own request.
            own = replace(self, request=request, late=(), follow_ups=(), expected=None)
            made = replace(own, surround=lambda keep: replace(self.surround(keep), score=None))
        elif inputs:
            made = replace(self, expected=None)
        else:
            made = self
        return replace(
            made,
            inputs={**self.inputs, **(inputs or {})},
            approvers=approvers or self.approvers,
            operator=None if approvers else self.operator,
        )

    def _known(self, approvers: tuple[str, ...]) -> None:
        """Raise for a role that no action asks for: the run would wait."""
        roles = {
            role
            for program in self.briefing.programs.values()
            for guarded in program.guarded
            for role in guarded.roles
        }
        for role in approvers:
            if role not in roles:
                cure = did_you_mean(role, roles) if roles else "no action requests an approval"
                message = f"no approval is requested from `{role}`"
                raise mistake("unknown-role", message, Place("--approve"), cure)
