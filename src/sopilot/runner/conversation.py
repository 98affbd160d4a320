"""A session beside somebody else's agent: it shows, records and holds; the agent does the rest.

A session for each conversation of a service that has many.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from sopilot.agent.approvers import Operator
from sopilot.agent.budgets import UNLIMITED
from sopilot.agent.dialog import MALFORMED_CALL
from sopilot.agent.driver import Driver
from sopilot.agent.loop import open_run, resume_run, run_programs
from sopilot.agent.toolbox import Toolbox
from sopilot.files.sign_in import who_asks
from sopilot.machine.program_set import ProgramSet
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
from sopilot.session.lease import when_free
from sopilot.session.session import Session
from sopilot.values.json import JSON, same
from sopilot.views.answers import CallAnswer, CallStatus
from sopilot.views.briefing import Briefing
from sopilot.views.step_tool import TOOL_NAME
from sopilot.views.view import View

if TYPE_CHECKING:
    from sopilot.integrations.telemetry import Telemetry


Execute = Callable[[Mapping[str, JSON]], Awaitable[object]]
"""The agent's own call, with the arguments that were let through: not always as written."""


JudgeResult = Callable[[str, JSON], bool]


Answer = TypeVar("Answer")


_UNDER_WAY: ContextVar[tuple[str, Execute] | None] = ContextVar("sopilot_execute", default=None)
"""The tool that the agent is calling, by name."""


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


class HookOptions(TypedDict, total=False):
    """Of every hook, however its session is found."""

    is_ok: JudgeResult
    operator: Operator | None
    reader: Tools | None


class ProcedureHook:
    """One session: one conversation of whoever has several. ``is_ok`` tells from a tool's value
    whether it did what its name says; a tool that raises did not. ``operator`` decides about held
    calls at once; without one they wait for ``sopilot approvals``. Views without a machine have
    nothing to hook into. ``reader`` makes the calls that the machine makes by itself, before an
    action with ``recheck``: a hook has only the call that it wraps."""

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
        if view.in_order:
            # Frameworks make the calls of one message all at once.
            raise UserMistake(f"the view `{view.name}` needs calls in their order; choose `pg`")
        rechecked = [one.action for one in session.programs.guarded.values() if one.recheck]
        if rechecked and reader is None:
            message = f"`{rechecked[0]}` has `recheck`, and a hook cannot read again by itself"
            cure = "pass `reader=`, the tools that the machine may read with"
            raise mistake("recheck-without-reader", message, help=cure)
        self.session = session
        self._actions = briefing.handbook.actions
        self._tools = AgentsOwnTools(is_ok, reader)
        session.tools = self._tools
        self.conversation: str | None = None
        """What the framework calls the conversation, once it has said so."""
        self.telemetry: Telemetry | None = None
        """Set it, and every domain call is a span."""
        self.busy = 0
        """How many use it now, for who keeps several."""
        self.driver = Driver(session, briefing, view, budgets=UNLIMITED, operator=operator)

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

    # --- what a model is shown ------------------------------------------------------

    async def ready(self) -> None:
        """Before a model call: the session is this hook's, and up to date. It may have been
        given up, or taken by another process while nobody asked."""
        if await self.session.refresh():
            await self.driver.catch_up()
        await self.session.take_decisions()

    @property
    def instructions(self) -> str:
        """The same bytes before every model call."""
        return self.driver.first.content

    def slot(self) -> str:
        """Where the program stands: the last thing before every model call, never kept."""
        if not self.session.is_current:
            raise LeaseLost(self.session.id)
        return self.driver.shown().slot

    @property
    def step_tool(self) -> ToolSchema:
        return self.driver.toolbox.schemas[0]

    # --- what a model does ----------------------------------------------------------

    async def step(self, arguments: Mapping[str, JSON] | str) -> str:
        """The bookkeeping tool; the text is its answer to the model."""
        if not isinstance(arguments, str):
            arguments = json.dumps(dict(arguments), ensure_ascii=False)
        await self.ready()
        return await self.driver.calls.handle(ToolCall("", TOOL_NAME, arguments))

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


def conversation_id(handbook: str, conversation: str) -> str:
    """The id of a conversation's session: the same wherever it is asked for."""
    return hashlib.sha256(f"{handbook}\n{conversation}".encode()).hexdigest()[:32]


class AgentsOwnTools:
    """The tools are the agent's: the call that is under way brings its own execution."""

    def __init__(self, is_ok: JudgeResult, reader: Tools | None = None) -> None:
        self._is_ok = is_ok
        self._reader = reader
        self.broken: dict[str, BaseException] = {}
        """By session and call id."""

    def schemas(self) -> Sequence[ToolSchema]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        under_way = _UNDER_WAY.get()
        if under_way is None:
            return ToolResult(False, {"error": "the agent that has this tool is gone"})
        if under_way[0] != name:
            # What the machine reads by itself: a hook has only the call that it wraps.
            if self._reader is not None:
                return await self._reader.call(name, arguments, key=key)
            return ToolResult(False, {"error": f"only the agent itself can call `{name}`"})
        try:
            given = await under_way[1](arguments)
        except (Exception, asyncio.CancelledError) as problem:
            task = asyncio.current_task()
            if isinstance(problem, asyncio.CancelledError) and task and task.cancelling():
                raise  # it is this run that somebody cancels
            # A guarded call may have done its work before it raised: the session must know.
            self.broken[key.rpartition(":")[0]] = problem
            raise ToolBroke(name, problem) from problem
        if isinstance(given, Failed):
            return ToolResult(False, as_json(given.value))
        value = as_json(given)
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
    """Hooks by the framework's own name of a conversation (LangGraph's ``thread_id``), found or
    opened when the first message of one comes. At most ``most`` are kept at hand; those that were
    not used for longest are given up, and found again in the store. For any number of threads
    and event loops."""

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
        self.instructions = view.first_message(briefing)
        self.step_tool: ToolSchema = Toolbox(view, briefing, ()).schemas[0]

    def using(self, conversation: str) -> AbstractAsyncContextManager[ProcedureHook]:
        """The conversation's hook, which is not given up meanwhile."""
        return _Using(self, conversation)

    async def let_go(self, hook: ProcedureHook) -> None:
        with self._lock:
            hook.busy -= 1
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
                    found = self._hooks.pop(conversation, None)
                    if found is not None:
                        return self._kept(conversation, found)
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
        for one in hooks.values():
            await one.close()

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
        for one in hooks:
            await one.close()


class _Using(AbstractAsyncContextManager[ProcedureHook]):
    """Written out by hand: every call of a model or a tool comes through here, and what waits
    for one should be little where hundreds do."""

    __slots__ = ("_conversation", "_conversations", "_hook")

    def __init__(self, conversations: Conversations, conversation: str) -> None:
        self._conversations = conversations
        self._conversation = conversation

    async def __aenter__(self) -> ProcedureHook:
        self._hook = await self._conversations.found(self._conversation)
        return self._hook

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._conversations.let_go(self._hook)
