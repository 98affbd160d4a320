"""A session beside another framework's agent: it records and guards the agent's calls."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    contextmanager,
    nullcontext,
    suppress,
)
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from sopilot.agent.approvers import Operator, offered_tools
from sopilot.agent.budgets import UNLIMITED
from sopilot.agent.dialog import MALFORMED_CALL
from sopilot.agent.driver import Driver
from sopilot.agent.loop import open_run, run_programs
from sopilot.agent.toolbox import Toolbox
from sopilot.handbook.model import BUILT_IN, Action, Handbook
from sopilot.machine.call_ledger import HeldState
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import (
    InternalBug,
    LeaseLost,
    RunEnded,
    SessionExists,
    SopilotError,
    UnknownSession,
    UserMistake,
    mistake,
)
from sopilot.proof.agenda import unguardable
from sopilot.protocols import ToolCall, ToolResult, Tools, ToolSchema
from sopilot.records.people import load_people, requester_name
from sopilot.records.store import Settings, Store
from sopilot.runner.json_values import Validation, as_json, received
from sopilot.runner.sign_in import who_asks
from sopilot.session.admission import counted_inputs
from sopilot.session.lease import when_free
from sopilot.session.lock import Lock
from sopilot.session.opening import note_requester, resume_session
from sopilot.session.questions import Asker, UserAnswer, answering, find_question
from sopilot.session.session import Session
from sopilot.values.json import JSON, holds_stand_in, same
from sopilot.views.briefing import Briefing
from sopilot.views.guard_answers import GUARD_TOOLS
from sopilot.views.step_answers import CallAnswer, CallStatus
from sopilot.views.step_tool import TOOL_NAME
from sopilot.views.view import View

if TYPE_CHECKING:
    from sopilot.integrations.telemetry import Telemetry

Execute = Callable[[Mapping[str, JSON]], Awaitable[object]]
"""The agent's own call, with the arguments that were let through: not always as written."""
Read = Callable[[Mapping[str, JSON]], Awaitable[object]]
"""A call of one of the agent's tools that the runtime makes by itself."""
JudgeResult = Callable[[str, JSON], bool]
AskUser = Callable[[str], "str | Awaitable[str | None] | None"]
"""Shows a question to the user and returns the reply; ``None`` if there is none."""

PATIENCE_SECONDS = 15.0
"""How long to wait for a session that another process holds."""
YES = "yes"
"""The reply of a user who approves a call in the framework's own way."""
_SHOWN = "question_shown"
_UNDER_WAY: ContextVar[tuple[str, Execute] | None] = ContextVar("sopilot_execute", default=None)
"""The tool that the agent is calling, by name."""


_MOMENTS = count(1)
"""Orders calls and failures."""


class ToolBroke(RunEnded):
    """The agent's own tool raised ``problem``."""

    def __init__(self, name: str, problem: BaseException) -> None:
        super().__init__(f"`{name}` raised {type(problem).__name__}: {problem}")
        self.problem = problem


class ToolFailed(Exception):
    """Raise this from a tool that didn't do its job, if that is certain."""

    _recorded_at = 0
    """The moment when it was last recorded as the failure of a call. If a tool made that call and
    passes the exception on, it may have done its own work before."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A tool's value that the framework itself reports as a failure."""

    value: object


def always_ok(name: str, value: JSON) -> bool:
    return True


class Pause(NamedTuple):
    """A guarded call that waits for people: for the user's answer to ``question``, or for an
    approval of ``call_id``."""

    session: str
    call_id: str
    text: str
    question: str = ""

    def as_json(self) -> dict[str, JSON]:
        kind = "question" if self.question else "approval"
        text = self.question or self.text
        return {"kind": kind, "text": text, "session": self.session, "call": self.call_id}


class Reply(NamedTuple):
    """The user's answer to a question of the runtime."""

    question: str
    text: str


class HookOptions(TypedDict, total=False):
    """Options of every hook."""

    is_ok: JudgeResult
    operator: Operator | None
    reader: Tools | None


class ProcedureHook:
    """The session of one conversation.

    ``is_ok`` tells from a tool's value whether the tool succeeded; a tool that raises never has.
    ``operator`` decides about held calls at once; without one they wait for ``sopilot approvals``.
    ``reader`` makes the calls that the runtime makes by itself: with the view `guard-auto`, and
    before an action with ``recheck``. Views without a machine guard nothing and are refused.

    Under a guard view the agent sees its own tools and their own results, and nothing else; under
    the others it also has the bookkeeping tool, the instructions and the frame message. A view
    with ``in_order`` (`fused`) makes the calls of one message one after the other.
    """

    def __init__(
        self,
        session: Session,
        briefing: Briefing,
        view: View,
        *,
        is_ok: JudgeResult = always_ok,
        operator: Operator | None = None,
        reader: Tools | None = None,
    ) -> None:
        if not view.machine:
            raise UserMistake(f"the view `{view.name}` doesn't track the position; choose `pg`")
        if view.guard:
            require_guardable(briefing)
        rechecked = [item.action for item in session.programs.guarded.values() if item.recheck]
        if rechecked and reader is None and view.has_steps:
            message = f"`{rechecked[0]}` has `recheck`, and a hook cannot read again by itself"
            cure = "pass `reader=`: the tools that the runtime may read with"
            raise mistake("recheck-without-reader", message, help=cure)
        self.session = session
        self.view = view
        self.handbook = briefing.handbook
        self._actions = briefing.handbook.actions
        self._by_alias = actions_by_alias(self._actions)
        self._tools = AgentsOwnTools(is_ok, reader, self._by_alias)
        session.tools = self._tools
        self.conversation: str | None = None
        """The framework's name of the conversation, once known."""
        self.telemetry: Telemetry | None = None
        """Set it, and every domain call is a span."""
        self.busy = 0
        """Calls that use it now."""
        self.driver = Driver(
            session, briefing, view, budgets=UNLIMITED, operator=operator,
            tools=offered_tools(self._actions),
        )  # fmt: skip
        self.own_tools = own_tools(view, self.driver.toolbox)
        self._tokens = set[str]()
        self._order = Lock()
        self._misfit = False
        """Whether a step of the model's last message didn't fit: later calls aren't made."""

    @classmethod
    async def open(
        cls,
        store: Store,
        briefing: Briefing,
        view: View,
        *,
        conversation: str | None = None,
        model: str = "hooked",
        settings: Settings | None = None,
        accept_changed: bool = False,
        programs: ProgramSet | None = None,
        token: str = "",
        **options: Unpack[HookOptions],
    ) -> ProcedureHook:
        """Open a hook on a new session, or on the one of ``conversation``, in whichever process
        its next message reaches. Wait if another process is using it. ``token`` proves who asks;
        without one, ``SOPILOT_TOKEN`` does."""
        requester = await who_asks(store, None, token)
        programs = programs or run_programs(briefing, view)
        begin = partial(
            open_run, store, briefing, view, tools=None, model=model, settings=settings,
            programs=programs, requester=requester,
        )  # fmt: skip
        session: Session | None = None
        if conversation is None:
            session = await begin()
        else:
            session_id = conversation_id(briefing.handbook.name, conversation)
            resume = partial(
                resume_session, store, session_id, programs=programs,
                accept_changed=accept_changed, requester=requester,
            )  # fmt: skip
            with suppress(UnknownSession):
                session = await when_free(resume, patience_seconds=PATIENCE_SECONDS)
            if session is None:
                with suppress(SessionExists):  # another process was first
                    extra = {"conversation": conversation}
                    session = await begin(extra=extra, session_id=session_id)
            if session is None:
                session = await when_free(resume, patience_seconds=PATIENCE_SECONDS)
        try:
            hook = cls(session, briefing, view, **options)
            hook.conversation = conversation
            hook._tokens.add(token)
            for call_id in session.retryable:  # the agent that made them is gone: they failed
                await session.retry(call_id)
        except SopilotError:
            await session.release()
            raise
        return hook

    def belongs_to(self, conversation: str) -> None:
        """Raise if the hook serves another conversation: two customers never share a trace."""
        if self.conversation is None:
            self.conversation = conversation
        elif self.conversation != conversation:
            message = (
                f"this hook is the session of conversation `{self.conversation}`, "
                f"not `{conversation}`"
            )
            cure = "pass `Conversations.of(handbook)`: it has a session for each conversation"
            raise mistake("mixed-conversations", message, help=cure)

    async def asked_by(self, store: Store, token: str) -> None:
        """Note who goes on with the session. Raise if the store requires to know that."""
        if token not in self._tokens:
            requester = await who_asks(store, None, token)
            await note_requester(self.session, requester_name(await load_people(store), requester))
            self._tokens.add(token)

    @property
    def reads(self) -> dict[str, Read]:
        """The agent's tools, for the runtime's own reads. The integration sets those of the
        present run: another conversation's tools may belong to another customer."""
        return self._tools.reads

    # --- what a model is shown ------------------------------------------------------

    async def ready(self) -> None:
        """Bring the session up to date: another process may have used it meanwhile."""
        if await self.session.refresh():
            await self.driver.catch_up()
        await self.session.take_decisions()

    @property
    def instructions(self) -> str:
        """The same bytes before every model call; none under a guard view."""
        return self.driver.first.content if self.view.has_steps else ""

    def frame_message(self) -> str:
        """The frame message, for the end of the prompt. Call it once per model call: it also
        begins the next message of the model."""
        if not self.session.is_current:
            raise LeaseLost(self.session.id)
        if not self.view.has_steps:
            return ""
        shown = self.driver.shown()
        self._misfit = False
        self.driver.calls.move = lambda: shown.move
        return shown.frame_text

    # --- what a model does ----------------------------------------------------------

    async def step(self, arguments: Mapping[str, JSON] | str, name: str = TOOL_NAME) -> str:
        """Answer a call of one of ``own_tools``."""
        if not isinstance(arguments, str):
            arguments = json.dumps(dict(arguments), ensure_ascii=False)
        call, calls = ToolCall("", name, arguments), self.driver.calls
        async with self._in_order():
            await self.ready()
            if self._misfit:
                return (await calls.leave_out(call)).text
            text = (await calls.handle(call)).text
            self._misfit = self.view.in_order and not calls.fitted
            return text

    def _in_order(self) -> AbstractAsyncContextManager[object]:
        """Frameworks make the calls of one message at once; some views need their order."""
        return self._order if self.view.in_order else nullcontext()

    async def take_steps(
        self, name: str, arguments: Mapping[str, JSON], call_id: str
    ) -> tuple[Mapping[str, JSON], CallAnswer | None]:
        """Take the steps that a tool call carries. Return its own arguments, and the answer
        where the call isn't made because a step didn't fit."""
        if not self.view.in_order:
            return arguments, None
        calls, taken = self.driver.calls, list[str]()
        call = ToolCall(call_id, name, json.dumps(dict(arguments), ensure_ascii=False))
        await self.ready()
        problem: str | None = None
        if self._misfit:
            problem = (await calls.leave_out(call)).text
        else:
            call, problem = await calls.take_steps(call, taken)
            self._misfit = problem is not None
        if problem is not None:
            return arguments, CallAnswer(call_id, CallStatus.HELD, problem=problem)
        # The program's own values need not be written again.
        return calls.completed(name, json.loads(call.arguments)), None

    async def tool_call(
        self,
        name: str,
        arguments: Mapping[str, JSON],
        call_id: str,
        execute: Execute,
        validation: Validation | None = None,
    ) -> CallAnswer:
        """Record a domain call, and make it with ``execute`` unless the guard blocks it. Raise
        what ``execute`` raises. ``validation`` is what the framework does to the arguments before
        the tool receives them."""
        answer, problem = await self.attempt(name, arguments, call_id, execute, validation)
        if problem is not None:
            raise problem
        return answer

    async def attempt(
        self,
        name: str,
        arguments: Mapping[str, JSON],
        call_id: str,
        execute: Execute,
        validation: Validation | None = None,
    ) -> tuple[CallAnswer, BaseException | None]:
        """As ``tool_call``, but return what ``execute`` raised beside the answer."""
        called, name = name, self._action(name)
        self._learn_names(called, name)
        async with self._in_order():
            arguments, left_out = await self.take_steps(name, arguments, call_id)
            if left_out is not None:
                return left_out, None
            try:
                tool = self.session.tool_names.get(name, called)
                if called != tool and called not in self.reads:
                    raise UserMistake(f"there is no tool `{called}`: call `{tool}`")
                validation = validation if name in self._actions else None
                arguments = self._judged(name, arguments, validation)
            except UserMistake as problem:
                await self.ready()
                details = {"tool": name, "problem": str(problem)}
                await self.session.note(MALFORMED_CALL, details)
                return CallAnswer(call_id, CallStatus.HELD, problem=str(problem)), None
            if validation is not None:
                execute = self._as_judged(name, execute, validation)
            span: AbstractContextManager[object] = nullcontext()
            if self.telemetry is not None:
                span = self.telemetry.tool(name, f"{self.session.id}:{call_id}")
            token = _UNDER_WAY.set((name, execute))
            try:
                await self.ready()
                with span:
                    async with self.session.keep_alive():
                        answer = await self.driver.calls.domain(call_id, name, arguments)
            finally:
                _UNDER_WAY.reset(token)
        return answer, self._tools.broken.pop(f"{self.session.id}:{answer.call_id}", None)

    async def rehearse(
        self, name: str, arguments: Mapping[str, JSON], validation: Validation | None = None
    ) -> Pause | None:
        """Whether people must act before the call can be made. The call isn't made."""
        name = self._action(name)
        if name not in self.session.programs.guarded:
            return None
        try:
            arguments = self._judged(name, arguments, validation)
        except UserMistake:
            return None
        await self.ready()
        token = _UNDER_WAY.set(("", _never))
        try:
            answer = await self.session.rehearse(name, arguments)
        finally:
            _UNDER_WAY.reset(token)
        return None if answer is None else self.pause(answer)

    def _action(self, name: str) -> str:
        """The action behind a tool of the agent, if the handbook has it under another name."""
        actions = self._by_alias.get(name, ())
        return actions[0] if len(actions) == 1 else name

    def _learn_names(self, called: str, action: str) -> None:
        """Learn how the agent names its tools. A framework says it; else an agent that calls one
        by the name of its ``tool`` does so with all."""
        own = [each.tool for each in self._actions.values() if each.tool and called != action]
        names = {self._action(tool): tool for tool in self.reads or own}
        self.session.tool_names |= {each: tool for each, tool in names.items() if each != tool}

    def _judged(
        self, name: str, arguments: Mapping[str, JSON], validation: Validation | None
    ) -> Mapping[str, JSON]:
        """The arguments that the guard judges; raise if the call can't be made at all."""
        if name in self._actions and not self._actions[name].offered:
            raise UserMistake(f"there is no tool `{name}`")
        if len(self._by_alias.get(name, ())) > 1:
            listed = ", ".join(f"`{action}`" for action in self._by_alias[name])
            raise UserMistake(f"`{name}` is the tool of several actions: {listed}")
        if validation is None:
            return arguments
        try:
            validated = validation.validate(arguments)
            judged = self.received(name, validated, arguments, validation.defaults)
        except Exception as problem:  # validators are the agent's own: they raise anything
            raise UserMistake(f"the arguments do not fit `{name}`: {problem}") from None
        if holds_stand_in(judged):
            raise UserMistake(f"`{name}` makes objects of its arguments that can't be judged")
        return judged

    def received(
        self,
        name: str,
        validated: Mapping[str, Any],
        written: Mapping[str, object],
        defaults: Mapping[str, Any],
        *,
        classes: bool = False,
    ) -> dict[str, JSON]:
        """The arguments as the tool will receive them, without ``defaults`` that don't count."""
        counted = counted_inputs(self.session, self._action(name), written)
        return received(validated, written, defaults, counted, classes=classes)

    def reported_error(self, name: str, value: object) -> ToolResult:
        """The result of a tool that its framework marks as an error. A guarded call may have done
        its work before."""
        guarded = self._action(name) in self.session.programs.guarded
        return ToolResult(False, as_json(value), unknown=guarded)

    def _as_judged(self, name: str, execute: Execute, validation: Validation) -> Execute:
        """Refuse the dispatch if validation, which runs once more in front of the tool, changes
        the arguments that were judged or amended."""

        async def dispatch(arguments: Mapping[str, JSON]) -> object:
            validated = validation.validate(arguments)
            judged = self.received(name, validated, arguments, validation.defaults)
            if same(judged, dict(arguments)):
                return await execute(arguments)
            return Failed({"error": f"not called: `{name}` would receive other arguments"})

        return dispatch

    def own_arguments(self, name: str, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        """The arguments without the steps that a call may carry under `fused`."""
        call = ToolCall("", self._action(name), json.dumps(dict(arguments), ensure_ascii=False))
        own: dict[str, JSON] = json.loads(self.driver.toolbox.in_passing(call)[1].arguments)
        return own

    def pause(self, answer: CallAnswer) -> Pause | None:
        """How the call waits for people; ``None`` if the agent itself must act."""
        needs = answer.plan.needs if answer.plan is not None else ()
        wanted = [call for need in needs for call in need.calls]
        if needs and all(need.calls for need in needs):
            first = wanted[0]
            if all(call.act.action in BUILT_IN for call in wanted):
                programs = self.session.programs.programs.values()
                question = find_question(programs, first.act.action, first.arguments)
                if question is not None:
                    return Pause(self.session.id, answer.call_id, answer.text, question.text)
        waits = answer.held is not None and answer.held.state is HeldState.WAITING
        return Pause(self.session.id, answer.call_id, answer.text) if waits else None

    async def show(self, place: str, pause: Pause) -> None:
        """Note what the user is shown at a place of the framework. An answer that the framework
        passes on by that place alone answers nothing else."""
        await self.session.note(_SHOWN, {"at": place, "question": pause.question})

    def was_shown(self, place: str, pause: Pause) -> bool:
        shown = [
            event.details["question"]
            for event in self.session.own_events
            if event.note == _SHOWN and event.details["at"] == place
        ]
        return shown[-1:] == [pause.question]

    @contextmanager
    def replied(self, reply: Reply | None) -> Iterator[None]:
        """Answer the question that was shown to the user, and no other, in this call alone."""
        if reply is None or not reply.question:
            yield
            return
        texts = [reply.text]
        asker = asker_of(
            self.session,
            lambda question: texts.pop() if texts and question == reply.question else None,
        )
        with answering(self.session, asker):
            yield

    async def close(self) -> None:
        await self.session.release()


def own_tools(view: View, toolbox: Toolbox) -> tuple[ToolSchema, ...]:
    """The tools that a view adds: the bookkeeping tool; under a guard view those of
    ``guard_tools``."""
    if view.has_steps:
        return toolbox.schemas[:1]
    return tuple(schema for schema in toolbox.schemas if schema.name in GUARD_TOOLS)


def asker_of(session: Session, show: AskUser) -> Asker:
    """Put the runtime's questions to the user, on record."""

    async def ask(question: str, about: str, closed: bool) -> UserAnswer | None:
        # It may wait for a person: in a thread, so that other conversations can go on.
        reply = await asyncio.to_thread(show, question)
        text = await reply if inspect.isawaitable(reply) else reply
        if text is None:
            return None
        await session.assistant_said(question)
        outcome = await session.user_said(text)
        return UserAnswer(text, outcome.events[0].seq)

    return ask


def actions_by_alias(actions: Mapping[str, Action]) -> dict[str, list[str]]:
    """The actions whose tool has another name, by that name with and without its server. Raise if
    a call of a tool could be a call of two actions."""
    names = [each for name, action in actions.items() for each in {name, action.tool or name}]
    shared = {name for name in names if names.count(name) > 1}
    by_alias: dict[str, list[str]] = {}
    for name, action in actions.items():
        own, bare = {name, action.tool}, _bare(action.tool)
        if bare in names and bare not in own:
            shared.add(bare)
        for alias in {action.tool, bare} - {"", name}:
            by_alias.setdefault(alias, []).append(name)
    if shared:
        message = f"`{min(shared)}` names two actions of the handbook, or their tools"
        raise mistake("shared-tool", message, help="give each tool one action")
    return by_alias


def require_guarded_tools(handbook: Handbook, tools: Collection[str]) -> None:
    """Raise if tools of the agent would pass because the handbook doesn't name them, while the
    agent has no tool for a guarded action: its name may be misspelt."""
    names = {
        own: {own, action.tool, _bare(action.tool)} for own, action in handbook.actions.items()
    }
    unnamed = set(tools).difference(*names.values())
    for name, action in handbook.actions.items():
        if unnamed and action.is_guarded and action.offered and not names[name] & {*tools}:
            message = f"the handbook `{handbook.name}` guards `{name}`, and no tool has this name"
            help = did_you_mean(action.tool or name, unnamed)
            raise mistake("missing-tool", message, help=f"{help}; if not, write `offered: false`")


def _bare(tool: str) -> str:
    """A tool without the name of its server."""
    return tool.rpartition(":")[2]


def require_guardable(briefing: Briefing) -> None:
    """Refuse a handbook with steps that a model must be led to."""
    for goal, program in briefing.programs.items():
        step = unguardable(program)
        if step:
            message = (
                f"`{goal}` has a step that only a view with the program's text can show: `{step}`"
            )
            raise mistake("unguardable", message, help="use the view `pg` for this handbook")


def conversation_id(handbook: str, conversation: str) -> str:
    """The id of a conversation's session, the same in every process."""
    named = f"{handbook}\n{conversation}"
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:32]


async def _never(arguments: Mapping[str, JSON]) -> object:
    raise InternalBug("a rehearsed call was made")


class AgentsOwnTools:
    """The agent's tools: the call under way brings its own execution."""

    def __init__(
        self, is_ok: JudgeResult, reader: Tools | None, by_alias: Mapping[str, Sequence[str]]
    ) -> None:
        self._is_ok = is_ok
        self._reader = reader
        self._by_alias = by_alias
        self.reads: dict[str, Read] = {}
        self.broken: dict[str, BaseException] = {}
        """By session and call id."""

    def schemas(self) -> Sequence[ToolSchema]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        under_way = _UNDER_WAY.get()
        if under_way is None:
            return ToolResult(False, {"error": "the agent that has this tool is gone"})
        if under_way[0] != name:
            return await self._read(name, arguments, key)
        began = next(_MOMENTS)
        try:
            value = await under_way[1](arguments)
        except (Exception, asyncio.CancelledError) as problem:
            task = asyncio.current_task()
            if isinstance(problem, asyncio.CancelledError) and task and task.cancelling():
                raise  # this run is being cancelled
            self.broken[key.rpartition(":")[0]] = problem
            if isinstance(problem, ToolFailed) and problem._recorded_at < began:
                problem._recorded_at = next(_MOMENTS)
                return ToolResult(False, {"error": str(problem)})
            # A guarded call may have done its work before it raised: the session must know.
            raise ToolBroke(name, problem) from problem
        return self._result(name, value)

    def _result(self, name: str, value: object) -> ToolResult:
        if isinstance(value, ToolResult):
            return value
        if isinstance(value, Failed):
            return ToolResult(False, as_json(value.value))
        recorded = as_json(value)
        return ToolResult(self._is_ok(name, recorded), recorded)

    async def _read(self, name: str, arguments: Mapping[str, JSON], key: str) -> ToolResult:
        if self._reader is not None:
            return await self._reader.call(name, arguments, key=key)
        names = (tool for tool in self.reads if name in (tool, *self._by_alias.get(tool, ())))
        read = self.reads.get(next(names, ""))
        if read is None:
            return ToolResult(False, {"error": f"only the agent itself can call `{name}`"})
        try:
            return self._result(name, await read(arguments))
        except Exception as problem:  # the agent's own tool: it raises anything
            return ToolResult(False, {"error": f"{type(problem).__name__}: {problem}"})


def was_made(answer: CallAnswer) -> bool:
    return answer.status is CallStatus.DONE and answer.result is not None and answer.result.ok
