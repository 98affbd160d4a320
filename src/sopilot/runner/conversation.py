"""A session beside another framework's agent: it records and guards the agent's calls.

``ProcedureHook`` is one session. ``Conversations`` opens one per conversation of a service.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import threading
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, TypeVar, Unpack

from sopilot.agent.approvers import Operator, action_schema
from sopilot.agent.budgets import UNLIMITED
from sopilot.agent.dialog import MALFORMED_CALL
from sopilot.agent.driver import Driver
from sopilot.agent.loop import open_run, resume_run, run_programs
from sopilot.agent.toolbox import Toolbox
from sopilot.files.sign_in import who_asks
from sopilot.handbook.model import BUILT_IN
from sopilot.machine.approvals import HeldState
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.proof.agenda import unguardable
from sopilot.messages.errors import (
    LeaseLost,
    RunEnded,
    SessionExists,
    SopilotError,
    UnknownSession,
    UserMistake,
    mistake,
)
from sopilot.protocols import ToolCall, ToolResult, Tools, ToolSchema
from sopilot.records.store import Settings, Store
from sopilot.runner.json_values import as_json
from sopilot.runner.loop_thread import caller
from sopilot.runner.received import Validate, received
from sopilot.runner.sources import open_source
from sopilot.session.lease import when_free
from sopilot.session.questions import Asker, UserAnswer, find_question
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.open import open_store
from sopilot.values.json import JSON, same
from sopilot.views.answers import CallAnswer, CallStatus
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named
from sopilot.views.guard_answers import JUDGE_TOOL
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
"""Shows a question to the user and returns the reply; ``None`` where there is none."""


Answer = TypeVar("Answer")


_UNDER_WAY: ContextVar[tuple[str, Execute] | None] = ContextVar("sopilot_execute", default=None)
"""The tool that the agent is calling, by name."""


class CurrentConversation(Protocol):
    """The block ``with sopilot.conversation(ID):`` around the agent's run."""

    @property
    def id(self) -> str: ...

    async def attend(self, hook: ProcedureHook) -> None:
        """Pass on the values, messages and questions of the application."""


CURRENT: ContextVar[CurrentConversation | None] = ContextVar("sopilot_conversation", default=None)


class ToolBroke(RunEnded):
    """The agent's own tool raised. ``problem`` is what it raised."""

    def __init__(self, name: str, problem: BaseException) -> None:
        super().__init__(f"`{name}` broke off: {type(problem).__name__}: {problem}")
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Failed:
    """What a tool gave that the framework itself knows to be a failure."""

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


class HookOptions(TypedDict, total=False):
    """Of every hook, however its session is found."""

    is_ok: JudgeResult
    operator: Operator | None
    reader: Tools | None


class ProcedureHook:
    """The session of one conversation.

    ``is_ok`` tells from a tool's value whether the tool succeeded; a tool that raises failed.
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
            raise UserMistake(f"the view `{view.name}` keeps no program; choose `pg`")
        if view.guard:
            require_guardable(briefing)
        rechecked = [item.action for item in session.programs.guarded.values() if item.recheck]
        if rechecked and reader is None and view.has_steps:
            message = f"`{rechecked[0]}` has `recheck`, and a hook cannot read again by itself"
            cure = "pass `reader=`, the tools that the machine may read with"
            raise mistake("recheck-without-reader", message, help=cure)
        self.session = session
        self.view = view
        self._actions = briefing.handbook.actions
        self._tools = AgentsOwnTools(is_ok, reader)
        session.tools = self._tools
        self.conversation: str | None = None
        """What the framework calls the conversation, once it has said so."""
        self.telemetry: Telemetry | None = None
        """Set it, and every domain call is a span."""
        self.busy = 0
        """How many use it now, for who keeps several."""
        schemas = tuple(action_schema(each) for each in self._actions.values() if each.offered)
        self.driver = Driver(
            session, briefing, view, budgets=UNLIMITED, operator=operator, tools=schemas
        )
        self.own_tools = own_tools(view, self.driver.toolbox)
        self._order = asyncio.Lock()
        self._misfit = False
        """Whether a step of the model's last message didn't fit: later calls aren't made."""

    @classmethod
    async def open(
        cls,
        store: Store,
        briefing: Briefing,
        view: View,
        *,
        model: str = "hooked",
        settings: Settings | None = None,
        extra: Mapping[str, JSON] | None = None,
        token: str = "",
        **options: Unpack[HookOptions],
    ) -> ProcedureHook:
        """On a new session. For one that was interrupted, pass it to the constructor. An
        agent that is not asynchronous opens its hook with ``asyncio.run``."""
        session = await open_run(
            store, briefing, view, tools=None, model=model, settings=settings, extra=extra,
            requester=await who_asks(store, None, token),
        )  # fmt: skip
        try:
            return cls(session, briefing, view, **options)
        except UserMistake:
            await session.release()
            raise

    @classmethod
    async def for_conversation(
        cls,
        store: Store,
        conversation: str,
        briefing: Briefing,
        view: View,
        *,
        model: str = "hooked",
        settings: Settings | None = None,
        accept_changed: bool = False,
        programs: ProgramSet | None = None,
        patience_seconds: float = 15.0,
        token: str = "",
        **options: Unpack[HookOptions],
    ) -> ProcedureHook:
        """On the session of this conversation, opened if there is none: whichever process the
        next message reaches goes on with it. One that another process is using is waited for.
        ``token`` proves who asks; without one, ``SOPILOT_TOKEN`` does."""
        requester = await who_asks(store, None, token)
        programs = programs or run_programs(briefing, view)
        session_id = conversation_id(briefing.handbook.name, conversation)

        async def resume() -> Session:
            return await resume_run(
                store, session_id, programs=programs, accept_changed=accept_changed,
                requester=requester,
            )  # fmt: skip

        session: Session | None = None
        # Opened outside of `except`: what is handled there holds every frame that it came by
        # until then, and hundreds may open at once.
        with suppress(UnknownSession):
            session = await when_free(resume, patience_seconds=patience_seconds)
        if session is None:
            with suppress(SessionExists):  # else somebody else was first
                session = await open_run(
                    store, briefing, view, tools=None, model=model, settings=settings,
                    extra={"conversation": conversation}, programs=programs,
                    session_id=session_id, requester=requester,
                )  # fmt: skip
        if session is None:
            session = await when_free(resume, patience_seconds=patience_seconds)
        try:
            hook = cls(session, briefing, view, **options)
            hook.belongs_to(conversation)
            for call_id in session.retryable:  # nobody is there to make them: they failed
                await session.retry(call_id)
        except SopilotError:
            await session.release()
            raise
        return hook

    def belongs_to(self, conversation: str) -> None:
        """Raises where another conversation has it: two customers are never one trace."""
        if self.conversation is None:
            self.conversation = conversation
        elif self.conversation != conversation:
            message = (
                f"this hook is the session of conversation `{self.conversation}`, "
                f"and `{conversation}` is another"
            )
            cure = "give the middleware `Conversations(store, briefing, view)`: a session for each"
            raise mistake("mixed-conversations", message, help=cure)

    @property
    def reads(self) -> dict[str, Read]:
        """The agent's tools, for the runtime's own reads. The integration enters those of the
        present run: another conversation's tools may belong to another customer."""
        return self._tools.reads

    # --- what a model is shown ------------------------------------------------------

    async def ready(self) -> None:
        """Before a model call: the session is this hook's, and up to date. It may have been
        given up, or taken by another process while nobody asked."""
        if await self.session.refresh():
            await self.driver.catch_up()
        await self.session.take_decisions()

    @property
    def instructions(self) -> str:
        """The same bytes before every model call; none under a guard view."""
        return self.driver.first.content if self.view.has_steps else ""

    def slot(self) -> str:
        """The frame message: the last thing before every model call, never kept. Call it once
        per model call: it also begins the next message of the model."""
        if not self.session.is_current:
            raise LeaseLost(self.session.id)
        if not self.view.has_steps:
            return ""
        shown = self.driver.shown()
        self._misfit = False
        self.driver.calls.move = lambda: shown.move
        return shown.slot

    # --- what a model does ----------------------------------------------------------

    async def step(self, arguments: Mapping[str, JSON] | str, name: str = TOOL_NAME) -> str:
        """A call of one of ``own_tools``; the text is its answer to the model."""
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
        validate: Validate | None = None,
    ) -> CallAnswer:
        """A domain call on record: ``execute`` does it, if nothing holds it. The answer's text
        is for the model. What ``execute`` raises is on record, then raised. ``validate`` is what
        the framework does to the arguments before the tool receives them."""
        answer, problem = await self.attempt(name, arguments, call_id, execute, validate)
        if problem is not None:
            raise problem
        return answer

    async def attempt(
        self,
        name: str,
        arguments: Mapping[str, JSON],
        call_id: str,
        execute: Execute,
        validate: Validate | None = None,
    ) -> tuple[CallAnswer, BaseException | None]:
        """As ``tool_call``, with what ``execute`` raised beside the answer."""
        async with self._in_order():
            arguments, left_out = await self.take_steps(name, arguments, call_id)
            if left_out is not None:
                return left_out, None
            return await self._attempt(name, arguments, call_id, execute, validate)

    async def _attempt(
        self,
        name: str,
        arguments: Mapping[str, JSON],
        call_id: str,
        execute: Execute,
        validate: Validate | None,
    ) -> tuple[CallAnswer, BaseException | None]:
        if name in self._actions and not self._actions[name].offered:
            return await self._unmade(name, call_id, f"there is no tool `{name}`"), None
        if validate is not None:
            try:
                arguments = self.received(name, validate(arguments), arguments)
            except Exception as problem:  # validators are the agent's own: they raise anything
                why = f"the arguments do not fit `{name}`: {problem}"
                return await self._unmade(name, call_id, why), None
            execute = self._as_judged(name, execute, validate)
        token = _UNDER_WAY.set((name, execute))
        try:
            await self.ready()
            with self._spanned(name, call_id):
                async with self.session.keep_alive():
                    answer = await self.driver.calls.domain(call_id, name, arguments)
        finally:
            _UNDER_WAY.reset(token)
        return answer, self._tools.broken.pop(f"{self.session.id}:{answer.call_id}", None)

    def received(
        self, name: str, validated: Mapping[str, Any], written: Mapping[str, JSON]
    ) -> dict[str, JSON]:
        """What the guard judges: the arguments as the tool will receive them. A recipe's call is
        the one that it writes, so defaults count for guarded actions alone."""
        judged = name in self._actions and name in self.session.programs.guarded
        return received(validated, written, self._actions[name].input_names() if judged else ())

    def _as_judged(self, name: str, execute: Execute, validate: Validate) -> Execute:
        """Validation runs once more in front of the tool: it must leave alone what was judged,
        what an approver amended, and long values that were filled in."""

        async def dispatch(arguments: Mapping[str, JSON]) -> object:
            if same(self.received(name, validate(arguments), arguments), dict(arguments)):
                return await execute(arguments)
            return Failed({"error": f"not called: `{name}` would receive other arguments"})

        return dispatch

    def own_arguments(self, name: str, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        """The arguments without the steps that a call may carry under `fused`."""
        call = ToolCall("", name, json.dumps(dict(arguments), ensure_ascii=False))
        own: dict[str, JSON] = json.loads(self.driver.toolbox.in_passing(call)[1].arguments)
        return own

    def pause(self, answer: CallAnswer) -> Pause | None:
        """What people must do before the call can be made; ``None`` where the agent must act."""
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

    @contextmanager
    def replied(self, pause: Pause, reply: object) -> Iterator[None]:
        """Answer the question that was shown, and no other, with the user's reply."""
        if not pause.question:
            yield
            return
        replies = [str(reply)]
        session, before = self.session, self.session.asker
        session.asker = asker_of(
            session, lambda question: replies.pop() if question == pause.question else None
        )
        try:
            yield
        finally:
            session.asker = before

    async def _unmade(self, name: str, call_id: str, problem: str) -> CallAnswer:
        await self.ready()
        await self.session.note(MALFORMED_CALL, {"tool": name, "problem": problem})
        return CallAnswer(call_id, CallStatus.HELD, problem=problem)

    def _spanned(self, name: str, call_id: str) -> AbstractContextManager[object]:
        if self.telemetry is None:
            return nullcontext()
        return self.telemetry.tool(name, f"{self.session.id}:{call_id}")

    def wait(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """For agents that are not asynchronous: one of the hook's coroutines, to its end."""
        return caller().wait(work)

    async def close(self) -> None:
        await self.session.release()


def own_tools(view: View, toolbox: Toolbox) -> tuple[ToolSchema, ...]:
    """The tools that a view adds to the agent's: the bookkeeping tool; under a guard view
    `judge_check`, if the handbook leaves checks to the model."""
    if view.has_steps:
        return toolbox.schemas[:1]
    return tuple(schema for schema in toolbox.schemas if schema.name == JUDGE_TOOL)


def asker_of(session: Session, show: AskUser) -> Asker:
    """Put the runtime's questions to the user, on record."""

    async def ask(question: str, about: str, closed: bool) -> UserAnswer | None:
        reply = show(question)
        text = await reply if inspect.isawaitable(reply) else reply
        if text is None:
            return None
        await session.assistant_said(question)
        outcome = await session.user_said(text)
        return UserAnswer(text, outcome.events[0].seq)

    return ask


def require_guardable(briefing: Briefing) -> None:
    """Refuse a handbook with steps that a model must be led to: a guard leads nobody."""
    for goal, program in briefing.programs.items():
        step = unguardable(program)
        if step:
            message = f"`{goal}` has a step that an agent must be led to: `{step}`"
            raise mistake("unguardable", message, help="use the view `pg` for this handbook")


def conversation_id(handbook: str, conversation: str) -> str:
    """The id of a conversation's session: the same wherever it is asked for."""
    return hashlib.sha256(f"{handbook}\n{conversation}".encode()).hexdigest()[:32]


class AgentsOwnTools:
    """The tools are the agent's: the call that is under way brings its own execution."""

    def __init__(self, is_ok: JudgeResult, reader: Tools | None = None) -> None:
        self._is_ok = is_ok
        self._reader = reader
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
            if self._reader is not None:
                return await self._reader.call(name, arguments, key=key)
            return await self._read(name, arguments)
        try:
            argument = await under_way[1](arguments)
        except (Exception, asyncio.CancelledError) as problem:
            task = asyncio.current_task()
            if isinstance(problem, asyncio.CancelledError) and task and task.cancelling():
                raise  # it is this run that somebody cancels
            # A guarded call may have done its work before it raised: the session must know.
            self.broken[key.rpartition(":")[0]] = problem
            raise ToolBroke(name, problem) from problem
        if isinstance(argument, Failed):
            return ToolResult(False, as_json(argument.value))
        value = as_json(argument)
        return ToolResult(self._is_ok(name, value), value)

    async def _read(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        if name not in self.reads:
            return ToolResult(False, {"error": f"only the agent itself can call `{name}`"})
        try:
            value = as_json(await self.reads[name](arguments))
        except Exception as problem:  # the agent's own tool: it raises anything
            return ToolResult(False, {"error": f"{type(problem).__name__}: {problem}"})
        return ToolResult(self._is_ok(name, value), value)


def was_made(answer: CallAnswer) -> bool:
    return answer.status is CallStatus.DONE and answer.result is not None and answer.result.ok


_POLL_SECONDS = 0.01


class ConversationOptions(HookOptions, total=False):
    """Of every hook that is made here; as ``ProcedureHook.for_conversation`` takes them."""

    model: str
    settings: Settings | None
    accept_changed: bool
    token: str


class Conversations:
    """One session per conversation, opened or resumed when its first message comes.

    The block ``with sopilot.conversation(ID):`` names the conversation; without one, the
    framework's own name does (LangGraph's ``thread_id``, ``RunConfig.group_id``, Pydantic AI's
    ``conversation_id``). At most ``most`` stay open; the least recently used are released, and
    resumed from the store. For any number of threads and event loops.
    """

    def __init__(
        self,
        store: Store,
        briefing: Briefing,
        view: View,
        *,
        most: int = 1000,
        telemetry: Telemetry | None = None,
        **options: Unpack[ConversationOptions],
    ) -> None:
        self._store = store
        self._briefing = briefing
        self._view = view
        self._options = options
        self._most = most
        self._telemetry = telemetry
        self._programs = run_programs(briefing, view)
        self._hooks: dict[str, ProcedureHook] = {}
        self._opening: set[str] = set()
        self._lock = threading.Lock()
        if view.guard:
            require_guardable(briefing)
        self.view = view
        self.own_tools = own_tools(view, Toolbox(view, briefing, ()))

    @classmethod
    def of(
        cls,
        handbook: str | PathLike[str],
        *,
        view: str = "guard",
        store: Store | str | None = None,
        language: str = "en",
        most: int = 1000,
        **options: Unpack[ConversationOptions],
    ) -> Conversations:
        """The conversations of a handbook file or a bundled example; in memory by default."""
        briefing = open_source(fspath(handbook)).briefing(language=language)
        opened = open_store(store) if isinstance(store, str) else store or MemoryStore()
        return cls(opened, briefing, view_named(view), most=most, **options)

    def using(self, conversation: str | None) -> AbstractAsyncContextManager[ProcedureHook]:
        """The hook of the conversation around the call, else of the one that the framework
        names. It isn't released meanwhile."""
        current = CURRENT.get()
        name = current.id if current is not None else conversation
        if name is None:
            message = "the agent runs outside of a conversation"
            cure = "wrap its run in `with sopilot.conversation(ID):`, or pass the framework's own"
            ids = "`thread_id`, `group_id` or `conversation_id`"
            raise mistake("no-conversation", message, help=f"{cure} {ids}")
        return _Using(self, name, current)

    async def let_go(self, hook: ProcedureHook) -> None:
        """A session that waits for people is released: they decide in another process."""
        name = hook.conversation or ""
        with self._lock:
            hook.busy -= 1
            waits = not hook.busy and bool(hook.session.held_calls)
            leaves = waits and self._hooks.get(name) is hook
            if leaves:
                del self._hooks[name]
        if leaves:
            await hook.close()
        if len(self._hooks) > self._most:
            await self._make_room()

    async def found(self, conversation: str) -> ProcedureHook:
        with self._lock:
            known = None
            if conversation not in self._opening:
                known = self._hooks.pop(conversation, None)
            if known is not None:
                return self._kept(conversation, known)
        while True:
            async with self._turn(conversation) as mine:
                if not mine:
                    continue  # another message of it has come first
                with self._lock:
                    result = self._hooks.pop(conversation, None)
                    if result is not None:
                        return self._kept(conversation, result)
                made = await ProcedureHook.for_conversation(
                    self._store, conversation, self._briefing, self._view,
                    programs=self._programs, **self._options,
                )  # fmt: skip
                with self._lock:
                    return self._kept(conversation, made)

    def _kept(self, conversation: str, hook: ProcedureHook) -> ProcedureHook:
        hook.busy += 1
        hook.telemetry = self._telemetry
        self._hooks[conversation] = hook  # the last to give way
        return hook

    async def close(self) -> None:
        """Gives every session up; whoever comes next finds them."""
        hooks, self._hooks = self._hooks, {}
        for hook in hooks.values():
            await hook.close()

    @asynccontextmanager
    async def _turn(self, conversation: str) -> AsyncIterator[bool]:
        with self._lock:
            mine = conversation not in self._opening
            self._opening.add(conversation)
        if not mine:
            await asyncio.sleep(_POLL_SECONDS)
            yield False
            return
        try:
            yield True
        finally:
            with self._lock:
                self._opening.discard(conversation)

    async def _make_room(self) -> None:
        with self._lock:
            idle = (name for name, hook in self._hooks.items() if not hook.busy)
            leaving = list(islice(idle, max(0, len(self._hooks) - self._most)))
            hooks = [self._hooks.pop(name) for name in leaving]
        for item in hooks:
            await item.close()


class _Using(AbstractAsyncContextManager[ProcedureHook]):
    """Hot path: every model call and tool call comes through here, so it is small."""

    __slots__ = ("_conversation", "_conversations", "_current", "_hook")

    def __init__(
        self,
        conversations: Conversations,
        conversation: str,
        current: CurrentConversation | None,
    ) -> None:
        self._conversations = conversations
        self._conversation = conversation
        self._current = current

    async def __aenter__(self) -> ProcedureHook:
        self._hook = await self._conversations.found(self._conversation)
        if self._current is not None:
            await self._current.attend(self._hook)
        return self._hook

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._conversations.let_go(self._hook)


class OneConversation:
    """A single hook in place of ``Conversations``: a second conversation is refused."""

    def __init__(self, hook: ProcedureHook) -> None:
        self._hook = hook
        self.view, self.own_tools = hook.view, hook.own_tools

    def using(self, conversation: str | None) -> AbstractAsyncContextManager[ProcedureHook]:
        if conversation is not None:
            self._hook.belongs_to(conversation)
        return nullcontext(self._hook)


Hooks = ProcedureHook | Conversations | str | PathLike[str]
"""What an integration takes: a handbook, or the sessions of one."""


def hooks_of(hooks: Hooks) -> Conversations | OneConversation:
    """A handbook alone is guarded with the view `guard`, in memory."""
    if isinstance(hooks, ProcedureHook):
        return OneConversation(hooks)
    return hooks if isinstance(hooks, Conversations) else Conversations.of(hooks)
