"""A session beside somebody else's agent: it shows, records and holds; the agent does the rest."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from sopilot.doors.hooks._loop_thread import caller
from sopilot.doors.hooks.json_values import as_json
from sopilot.language.diagnostics import RunEnded, SopilotError, UserMistake, mistake
from sopilot.runtime.agent import (
    UNLIMITED,
    Arm,
    Briefing,
    Driver,
    Operator,
    open_run,
    resume_run,
    run_programs,
)
from sopilot.runtime.session import (
    CallAnswer,
    CallStatus,
    LeaseLost,
    ProgramSet,
    Session,
    SessionExists,
    Settings,
    Store,
    UnknownSession,
    when_free,
)
from sopilot.runtime.session.protocols import JSON, ToolCall, ToolResult, Tools, ToolSchema
from sopilot.runtime.vm import TOOL_NAME

if TYPE_CHECKING:
    from sopilot.adapters.telemetry import Telemetry

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
    calls at once; without one they wait for ``sopilot approve``. Arms without a machine have
    nothing to hook into. ``reader`` makes the calls that the machine makes by itself, before an
    action with ``recheck``: a hook has only the call that it wraps."""

    def __init__(
        self,
        session: Session,
        briefing: Briefing,
        arm: Arm,
        *,
        is_ok: JudgeResult = always_ok,
        operator: Operator | None = None,
        reader: Tools | None = None,
    ) -> None:
        if not arm.machine:
            raise UserMistake(f"the arm `{arm.name}` keeps no program; choose `pg`")
        if arm.in_order:
            # Frameworks make the calls of one message all at once.
            raise UserMistake(f"the arm `{arm.name}` needs calls in their order; choose `pg`")
        rechecked = [one.action for one in session.programs.guarded.values() if one.recheck]
        if rechecked and reader is None:
            message = f"`{rechecked[0]}` has `recheck`, and a hook cannot read again by itself"
            cure = "pass `reader=`, the tools that the machine may read with"
            raise mistake("recheck-without-reader", message, help=cure)
        self.session = session
        self._tools = AgentsOwnTools(is_ok, reader)
        session.tools = self._tools
        self.conversation: str | None = None
        """What the framework calls the conversation, once it has said so."""
        self.telemetry: Telemetry | None = None
        """Set it, and every domain call is a span."""
        self.busy = 0
        """How many use it now, for who keeps several."""
        self.driver = Driver(session, briefing, arm, budgets=UNLIMITED, operator=operator)

    @classmethod
    async def open(
        cls,
        store: Store,
        briefing: Briefing,
        arm: Arm,
        *,
        model: str = "hooked",
        settings: Settings | None = None,
        extra: Mapping[str, JSON] | None = None,
        **options: Unpack[HookOptions],
    ) -> ProcedureHook:
        """On a new session. For one that was interrupted, pass it to the constructor. An
        agent that is not asynchronous opens its hook with ``asyncio.run``."""
        session = await open_run(
            store, briefing, arm, tools=None, model=model, settings=settings, extra=extra
        )
        try:
            return cls(session, briefing, arm, **options)
        except UserMistake:
            await session.release()
            raise

    @classmethod
    async def for_conversation(
        cls,
        store: Store,
        conversation: str,
        briefing: Briefing,
        arm: Arm,
        *,
        model: str = "hooked",
        settings: Settings | None = None,
        accept_changed: bool = False,
        programs: ProgramSet | None = None,
        patience_seconds: float = 15.0,
        **options: Unpack[HookOptions],
    ) -> ProcedureHook:
        """On the session of this conversation, opened if there is none: whichever process the
        next message reaches goes on with it. One that another process is using is waited for."""
        programs = programs or run_programs(briefing, arm)
        session_id = conversation_id(briefing.handbook.name, conversation)

        async def resume() -> Session:
            return await resume_run(
                store, session_id, programs=programs, accept_changed=accept_changed
            )

        session: Session | None = None
        # Opened outside of `except`: what is handled there holds every frame that it came by
        # until then, and hundreds may open at once.
        with suppress(UnknownSession):
            session = await when_free(resume, patience_seconds=patience_seconds)
        if session is None:
            with suppress(SessionExists):  # else somebody else was first
                session = await open_run(
                    store, briefing, arm, tools=None, model=model, settings=settings,
                    extra={"conversation": conversation}, programs=programs,
                    session_id=session_id,
                )  # fmt: skip
        if session is None:
            session = await when_free(resume, patience_seconds=patience_seconds)
        try:
            hook = cls(session, briefing, arm, **options)
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
            cure = "give the middleware `Conversations(store, briefing, arm)`: a session for each"
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
        self, name: str, arguments: Mapping[str, JSON], call_id: str, execute: Execute
    ) -> CallAnswer:
        """A domain call on record: ``execute`` does it, if nothing holds it. The answer's text
        is for the model. What ``execute`` raises is on record, then raised."""
        answer, problem = await self.attempt(name, arguments, call_id, execute)
        if problem is not None:
            raise problem
        return answer

    async def attempt(
        self, name: str, arguments: Mapping[str, JSON], call_id: str, execute: Execute
    ) -> tuple[CallAnswer, BaseException | None]:
        """As ``tool_call``, with what ``execute`` raised beside the answer."""
        token = _UNDER_WAY.set((name, execute))
        try:
            await self.ready()
            with self._spanned(name, call_id):
                async with self.session.keep_alive():
                    answer = await self.driver.calls.domain(call_id, name, arguments)
        finally:
            _UNDER_WAY.reset(token)
        return answer, self._tools.broken.pop(f"{self.session.id}:{answer.call_id}", None)

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
            self.broken[key] = problem
            raise ToolBroke(name, problem) from problem
        if isinstance(given, Failed):
            return ToolResult(False, as_json(given.value))
        value = as_json(given)
        return ToolResult(self._is_ok(name, value), value)


def was_made(answer: CallAnswer) -> bool:
    return answer.status is CallStatus.DONE and answer.result is not None and answer.result.ok
