"""A desk for attacks through a session: truthful answers, and an executor that only wants on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

import pytest

from counter_desk import HandClock
from small_desks import AnsweringTools, Answers, programs_of
from sopilot.audit.audit import audit_trace
from sopilot.audit.findings import Finding
from sopilot.machine.machine import Outcome
from sopilot.messages.diagnostic import Severity
from sopilot.program.model import Act, Ask, Branch, Check, Kind, Program, ReturnStep
from sopilot.proof.licence import Licence
from sopilot.protocols import ToolResult, Tools
from sopilot.records.store import Settings
from sopilot.session import admission
from sopilot.session.opening import open_session, resume_session
from sopilot.session.questions import UserAnswer
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Call, Fail, Operation, SelectBranch, Start, UserSaid
from sopilot.trace.events import Return as ReturnOperation
from sopilot.values.json import JSON
from sopilot.views.catalogue import VIEWS
from sopilot.views.step_answers import CallAnswer, CallStatus

VIEWS_WITH_A_MACHINE = tuple(name for name, view in VIEWS.items() if view.machine)
FAILED = ToolResult(False, {"error": "no"})
TILL = "abcdefghi"
ACCOUNT = """
handbook: account
actions:
  read_account: {input: {user: string}}
  withdraw: {input: {user: string, amount: number}}
  pay:
    input: {user: string, amount: {type: number, schema: {type: number, minimum: 0}}}
    irreversible: true
predicates:
  covered(user, amount):
    says: The account of {user} covers {amount}.
    verify: read_account(user)
    verdict: result.balance >= amount
procedures:
  pay: {requires: "covered(user, amount)"}
"""


class AttackDesk:
    """``answers`` is the world: action and arguments to a value, to a `ToolResult`, or to
    something that will be one."""

    def __init__(self, session: Session, tools: AnsweringTools) -> None:
        self.session = session
        self.tools = tools
        self.calls = 0

    def made(self, action: str) -> list[Mapping[str, JSON]]:
        return self.tools.given(action)

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

    async def push(
        self, calls: Mapping[str, Mapping[str, JSON]] | None = None, *, follow: bool = False
    ) -> None:
        """On to the act, saying at every check what leads there. ``calls``: made when the
        cursor asks for that action. With ``follow``, every call that the program asks for."""
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
            elif isinstance(step, Act) and follow:
                shape = self.session.machine.fits(self.session.configuration)[0]
                await self.call(shape["action"], **shape["arguments"])
                continue
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

    async def amended(self, call_id: str, role: str = "operator", **arguments: JSON) -> CallAnswer:
        """What comes of a held call that somebody in this role has made another."""
        held = await self.session.decide(
            "amend", call_id, by="dana", role=role, arguments=arguments
        )
        return await self.session.run_held(held.call_id)

    async def done(self, action: str, **arguments: JSON) -> None:
        answer = await self.call(action, **arguments)
        assert answer.status is CallStatus.DONE, answer.problem


async def desk_over(
    programs: Mapping[str, Program],
    tools: Tools,
    *,
    settings: Settings | None = None,
) -> AttackDesk:
    session = await open_session(
        MemoryStore(), programs, tools=tools, clock=HandClock(), settings=settings
    )
    return AttackDesk(session, tools)  # type: ignore[arg-type]  # any tools that keep their calls


async def open_desk(handbook: str, answers: Answers, view: str = "pg") -> AttackDesk:
    settings = Settings(automation=VIEWS[view].automation)
    return await desk_over(programs_of(handbook), AnsweringTools(answers), settings=settings)


def till(requires: str, act: str = "irreversible: true, confirm: false") -> str:
    """A handbook whose `pay` needs some of these rules: `a` to `i`, each true if the answer of its
    own `read_a` to `read_i` says so; `not_a`, `small`, and `wise`, which the model judges."""
    reads = "".join(f"  read_{one}: {{input: {{user: string}}, read_only: true}}\n" for one in TILL)
    rules = "".join(
        f"  {one}(user): {{says: {one}., verify: read_{one}(user), verdict: result.yes}}\n"
        for one in TILL
    )
    return f"""
handbook: till
actions:
{reads}  pay: {{input: {{user: string, amount: {{type: number, required: false}}}}, {act}}}
predicates:
{rules}  not_a(user): {{says: not a., verify: read_a(user), verdict: "!result.yes"}}
  small(amount): {{says: small., verify: arguments, verdict: amount < 5}}
  wise(user): {{says: wise., verify: read_i(user), judged_by: model}}
procedures:
  pay: {{requires: {requires}}}
"""


async def till_desk(handbook: str, true: Collection[str]) -> AttackDesk:
    """``true`` are the rules that are so; it is looked at when a tool is called."""
    return await open_desk(handbook, lambda name, _: {"yes": name[-1] in true})


async def at_the_act(
    handbook: str,
    answers: Answers,
    goal: str,
    values: Mapping[str, JSON],
    calls: Mapping[str, Mapping[str, JSON]] | None = None,
    view: str = "pg",
) -> AttackDesk:
    """A desk whose process has come to its act with these calls."""
    desk = await open_desk(handbook, answers, view)
    await desk.start(goal, **values)
    await desk.push(calls)
    return desk


async def resumed(desk: AttackDesk, handbook: str = "") -> AttackDesk:
    """The desk after its session was resumed, with the programs of ``handbook`` if one is given."""
    await desk.session.release()
    session = await resume_session(
        desk.session._store,
        desk.session.id,
        tools=desk.tools,
        clock=HandClock(),
        programs=programs_of(handbook) if handbook else None,
        accept_changed=bool(handbook),
    )
    return AttackDesk(session, desk.tools)


def answering(desk: AttackDesk, *words: str) -> list[str]:
    """The user says these in turn, and the last of them for ever. Return the questions."""
    left, questions = list(words), []

    async def ask(question: str, about: str, closed: bool) -> UserAnswer:
        questions.append(question)
        await desk.session.assistant_said(question)
        said = left.pop(0) if len(left) > 1 else left[0]
        outcome = await desk.session.user_said(said)
        return UserAnswer(said, outcome.events[0].seq)

    desk.session.asker = ask
    return questions


@asynccontextmanager
async def under_way(desk: AttackDesk, action: str, **arguments: JSON) -> AsyncIterator[None]:
    """Within it, this call is made and isn't answered."""
    answered, answers, before = asyncio.Event(), desk.tools.answers, len(desk.made(action))

    async def later() -> object:
        await answered.wait()
        return answers(action, arguments)

    desk.tools.answers = lambda *_: later()
    call = asyncio.create_task(desk.call(action, **arguments))
    while len(desk.made(action)) == before and not call.done():
        await asyncio.sleep(0)
    desk.tools.answers = answers
    yield
    answered.set()
    assert (await call).status is CallStatus.DONE


def without_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard lets every call through."""
    monkeypatch.setattr(admission, "_license", lambda session, arguments: Licence())


def mistakes(desk: AttackDesk) -> list[Finding]:
    """The errors that the audit finds."""
    session = desk.session
    report = audit_trace(session.programs.programs, session.own_events, judge=session.judge)
    return [finding for finding in report.findings if finding.severity is Severity.ERROR]


def errors(desk: AttackDesk) -> list[str]:
    return [finding.code for finding in mistakes(desk)]


def unproven(desk: AttackDesk) -> set[str]:
    """The errors about calls that were carried out; how the executor moved is another matter."""
    return {"gate-shut", "evidence-stale", "guard-disagrees"}.intersection(errors(desk))
