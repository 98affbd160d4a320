"""A desk for attacks through a session: truthful answers, and an executor that only wants on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from counter_desk import HandClock
from sopilot.audit.audit import audit_trace
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.machine.machine import Outcome
from sopilot.messages.diagnostic import Severity
from sopilot.program.model import Act, Ask, Branch, Check, Kind, ReturnStep
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Call, Fail, Operation, SelectBranch, Start, UserSaid
from sopilot.trace.events import Return as ReturnOperation
from sopilot.values.json import JSON
from sopilot.views.answers import CallAnswer, CallStatus
from sopilot.views.catalogue import VIEWS

VIEWS_WITH_A_MACHINE = tuple(name for name, view in VIEWS.items() if view.machine)
Answers = Callable[[str, Mapping[str, JSON]], JSON]
FAILED = ToolResult(False, {"error": "no"})


class AttackDesk:
    """``answers`` is the world: action and arguments to a value, to a `ToolResult`, or to
    something that will be one."""

    def __init__(self, session: Session, tools: AnsweringTools) -> None:
        self.session = session
        self.tools = tools
        self.calls = 0

    def made(self, action: str) -> list[Mapping[str, JSON]]:
        return [given for name, given in self.tools.made if name == action]

    async def start(self, goal: str, **values: JSON) -> Outcome:
        return await self.session.operate(Start(goal, values))

    async def start_anew(self, goal: str, **values: JSON) -> Outcome:
        """After whatever runs was given up."""
        if self.session.configuration.active is not None:
            await self.session.operate(Fail("given up"))
        return await self.start(goal, **values)

    async def call(self, action: str, /, **arguments: JSON) -> CallAnswer:
        self.calls += 1
        return await self.session.call_tool(action, arguments, f"c{self.calls}")

    async def say(self, holds: bool, *evidence: str) -> Outcome:
        return await self.session.operate(ReturnOperation(holds, evidence))

    async def push(self, calls: Mapping[str, Mapping[str, JSON]] | None = None) -> None:
        """On to the act, saying at every check what leads there. ``calls``: made when the
        cursor asks for that action."""
        for _ in range(60):
            here = self.session.machine.position(self.session.configuration)
            if here is None:
                return
            step = here.step
            move: Operation
            if isinstance(step, Check):
                move = Call()
            elif isinstance(step, Branch):
                move = SelectBranch()
            elif isinstance(step, Ask):
                move = UserSaid("here")
            elif isinstance(step, Act) and not here.layout.soft:
                return
            elif isinstance(step, Act) and calls and step.action in calls:
                before = self.session.configuration.frame
                await self.call(step.action, **calls[step.action])
                if self.session.configuration.frame != before:
                    continue
                move = ReturnOperation(self._wanted())
            elif isinstance(step, ReturnStep) and here.layout.function.kind is Kind.GROUP:
                move = ReturnOperation()
            elif isinstance(step, Act | ReturnStep):
                move = ReturnOperation(self._wanted())
            else:
                return
            await self.session.operate(move)

    def _wanted(self) -> bool:
        here = self.session.machine.position(self.session.configuration)
        assert here is not None
        caller = here.process.frames[-2]
        step = here.program.functions[caller.function].steps[caller.cursor]
        assert isinstance(step, Check)
        return step.wanted

    async def held(self, action: str, *says: str, **arguments: JSON) -> None:
        """The act is held and was not made. The message has all of ``says`` where the machine
        led to the act; elsewhere it names the step that is open, which differs between views."""
        before = len(self.made(action))
        here = self.session.machine.position(self.session.configuration)
        answer = await self.call(action, **arguments)
        assert answer.status is CallStatus.HELD, answer
        assert len(self.made(action)) == before
        led_there = here is not None and isinstance(here.step, Act) and here.step.goal
        for word in says if led_there else ():
            assert word in answer.problem, (word, answer.problem)

    async def done(self, action: str, **arguments: JSON) -> None:
        answer = await self.call(action, **arguments)
        assert answer.status is CallStatus.DONE, answer.problem


class AnsweringTools:
    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.made: list[tuple[str, Mapping[str, JSON]]] = []

    def schemas(self) -> Sequence[ToolSchema]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        self.made.append((name, dict(arguments)))
        value = self.answers(name, arguments)
        if isinstance(value, Awaitable):
            value = await value
        return value if isinstance(value, ToolResult) else ToolResult(True, value)


async def open_desk(handbook: str, answers: Answers, view: str) -> AttackDesk:
    units = compile_handbook(load_handbook(handbook, "attack.yaml"))
    tools = AnsweringTools(answers)
    session = await open_session(
        MemoryStore(),
        {goal: unit.program for goal, unit in units.items()},
        tools=tools,
        clock=HandClock(),
        settings=Settings(automation=VIEWS[view].automation),
    )
    return AttackDesk(session, tools)


def errors(session: Session) -> list[str]:
    """What the audit finds wrong."""
    events = [sealed.event for sealed in session.events]
    report = audit_trace(session.programs.programs, events, judge=session.judge)
    return [one.code for one in report.findings if one.severity is Severity.ERROR]
