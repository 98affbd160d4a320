"""Guard plain Python functions: ``guard`` wraps them, ``conversation`` says whose calls they are.

An agent calls the wrapped functions as it likes. Reads pass and become evidence. A call of a
guarded action is carried out if the handbook's requirements are proven for exactly that call;
otherwise the caller learns what is missing or why it is refused.
"""

from __future__ import annotations

import functools
import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Token
from os import PathLike, fspath
from typing import Any, Literal, TypeVar, cast, overload

from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import RunEnded, mistake
from sopilot.records.store import Store
from sopilot.runner.conversation import (
    CURRENT,
    AskUser,
    CurrentConversation,
    Failed,
    ProcedureHook,
    asker_of,
    require_guardable,
)
from sopilot.runner.loop_thread import caller
from sopilot.runner.received import received
from sopilot.runner.sources import open_source
from sopilot.runner.tools import PlainTools, ToolFailed
from sopilot.stores.memory import MemoryStore
from sopilot.stores.open import open_store
from sopilot.values.json import JSON, same
from sopilot.views.answers import CallAnswer, CallStatus
from sopilot.views.catalogue import view_named
from sopilot.views.guard_answers import spelled
from sopilot.views.refusals import Refusal

Verify = Literal["ask", "auto"]
Refusals = Literal["raise", "text"]
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


class NotCarriedOut(RunEnded):
    """A guarded call was not made. The message says why, for whoever made the call."""


class Refused(NotCarriedOut):
    """The procedure rules the call out."""

    def __init__(self, text: str, reasons: tuple[Refusal, ...] = ()) -> None:
        super().__init__(text)
        self.reasons = reasons

    @property
    def remedy(self) -> str:
        return " ".join(dict.fromkeys(reason.remedy for reason in self.reasons if reason.remedy))


class Missing(NotCarriedOut):
    """The call isn't proven yet. ``agenda`` lists the calls to make first."""

    def __init__(self, text: str, agenda: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.agenda = agenda


class Waiting(NotCarriedOut):
    """People must approve the call. ``session`` and ``call_id`` name it for
    ``sopilot approvals``."""

    def __init__(self, text: str, session: str, call_id: str) -> None:
        super().__init__(text)
        self.session = session
        self.call_id = call_id


class OutcomeUnknown(NotCarriedOut):
    """The call was sent, and nobody knows whether it was carried out."""


class Conversation:
    """The calls of one customer's conversation, in order, in one session per handbook.

    Use it with ``with`` or ``async with``. Several conversations can run side by side in threads
    and tasks; each guarded call belongs to the one around it.
    """

    def __init__(
        self,
        id: str,
        *,
        store: Store | str | None = None,
        user: AskUser | None = None,
        token: str = "",
    ) -> None:
        self.id = id
        self.user = user
        self._store = open_store(store) if isinstance(store, str) else store
        self._token = token
        self._values: dict[str, JSON] = {}
        self._messages: list[str] = []
        self._hooks: dict[Guard, ProcedureHook] = {}
        self._entered: list[Token[CurrentConversation | None]] = []

    def tell(self, **values: JSON) -> None:
        """Supply values that the agent doesn't pass: inputs of a procedure, or secrets that open
        a gate. Call it from your application, never with what the model wrote."""
        self._values.update(values)

    def user_said(self, text: str) -> None:
        """Record a message of the user. The next guarded call may repeat an earlier one."""
        self._messages.append(text)

    def session_ids(self) -> dict[str, str]:
        """The session of each handbook, for ``sopilot audit`` and ``sopilot approvals``."""
        return {guard.name: hook.session.id for guard, hook in self._hooks.items()}

    async def hook(self, guard: Guard) -> ProcedureHook:
        """The session of this conversation under a guard, opened or resumed on first use."""
        known = self._hooks.get(guard)
        if known is None:
            known = await guard.open(self.id, self._store or guard.store, self._token)
            self._hooks[guard] = known
        await self.attend(known)
        return known

    async def attend(self, hook: ProcedureHook) -> None:
        """Pass on to a session what the application supplied."""
        session = hook.session
        session.supplied.update(self._values)
        session.asker = asker_of(session, self.user) if self.user is not None else None
        while self._messages:
            await session.user_said(self._messages.pop(0))

    async def close(self) -> None:
        """Release the sessions; another process may continue them."""
        hooks, self._hooks = self._hooks, {}
        for hook in hooks.values():
            await hook.close()

    def __enter__(self) -> Conversation:
        self._entered.append(CURRENT.set(self))
        return self

    def __exit__(self, *raised: object) -> None:
        CURRENT.reset(self._entered.pop())
        if self._hooks:
            caller().wait(self.close())

    async def __aenter__(self) -> Conversation:
        return self.__enter__()

    async def __aexit__(self, *raised: object) -> None:
        CURRENT.reset(self._entered.pop())
        await self.close()


def conversation(
    id: str, *, store: Store | str | None = None, user: AskUser | None = None, token: str = ""
) -> Conversation:
    """Open the conversation that guarded calls inside the block belong to.

    ``store`` keeps its sessions (by default the guard's, in memory). ``user`` shows a question of
    the handbook to the user and returns the reply.
    """
    return Conversation(id, store=store, user=user, token=token)


class Guard:
    """The functions of one handbook. ``guard`` makes it; use it as a decorator for more."""

    def __init__(
        self,
        handbook: str | PathLike[str],
        *,
        verify: Verify = "ask",
        refusals: Refusals = "raise",
        store: Store | str | None = None,
        language: str = "en",
    ) -> None:
        source = open_source(fspath(handbook))
        self._briefing = source.briefing(language=language)
        require_guardable(self._briefing)
        self.name = self._briefing.handbook.name
        self.store = open_store(store) if isinstance(store, str) else store or MemoryStore()
        self._view = view_named("guard" if verify == "ask" else "guard-auto")
        self._refusals = refusals
        self._functions: dict[str, Callable[..., Any]] = {}
        self._reader = PlainTools(self._functions, self._briefing.handbook.actions)

    def __call__(self, function: AnyFunction) -> AnyFunction:
        """Wrap a function whose name is an action of the handbook."""
        actions = self._briefing.handbook.actions
        name = function.__name__
        if name not in actions:
            message = f"`{name}` isn't an action of the handbook `{self.name}`"
            raise mistake("unknown-tool", message, help=did_you_mean(name, actions))
        self._functions[name] = function
        signature = inspect.signature(function)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def guarded(*args: Any, **named: Any) -> Any:
                bound = signature.bind(*args, **named)
                return await self._call(name, bound, lambda: function(*bound.args, **bound.kwargs))

            return cast(AnyFunction, guarded)

        @functools.wraps(function)
        def waiting(*args: Any, **named: Any) -> Any:
            bound, own = signature.bind(*args, **named), caller()
            run = functools.partial(function, *bound.args, **bound.kwargs)
            return own.wait(self._call(name, bound, lambda: own.run(run), _current()))

        return cast(AnyFunction, waiting)

    async def open(self, conversation: str, store: Store, token: str) -> ProcedureHook:
        return await ProcedureHook.for_conversation(
            store, conversation, self._briefing, self._view, token=token, reader=self._reader
        )

    async def _call(
        self,
        name: str,
        bound: inspect.BoundArguments,
        execute: Callable[[], Awaitable[Any]],
        within: Conversation | None = None,
    ) -> Any:
        within = within or _current()
        hook = await within.hook(self)
        bound.apply_defaults()
        written = received(bound.arguments, {}, bound.arguments)
        result: list[Any] = []
        failures: list[ToolFailed] = []

        async def dispatch(arguments: Mapping[str, JSON]) -> object:
            # The decision is bound to these arguments: whoever changed them meanwhile, or a
            # person who amended them, makes it another call.
            if not same(received(bound.arguments, {}, bound.arguments), dict(arguments)):
                return await self._reader.call(name, arguments, key="")
            try:
                result.append(await execute())
            except ToolFailed as failure:
                failures.append(failure)
                return Failed({"error": str(failure)})
            return result[0]

        answer = await hook.tool_call(name, written, secrets.token_hex(4), dispatch)
        if failures:
            raise failures[0]
        if answer.status is CallStatus.DONE and answer.result is not None:
            return result[0] if result else answer.result.value
        problem = not_carried_out(answer, hook.session.id)
        if self._refusals == "raise":
            raise problem
        return str(problem)


def _current() -> Conversation:
    current = CURRENT.get()
    if not isinstance(current, Conversation):
        raise mistake(
            "no-conversation",
            "a guarded function was called outside of a conversation",
            help="wrap the calls in `with sopilot.conversation(ID):`",
        )
    return current


def not_carried_out(answer: CallAnswer, session: str) -> NotCarriedOut:
    """Why a guarded call wasn't made."""
    text = answer.said()
    if answer.status is CallStatus.UNKNOWN:
        return OutcomeUnknown(text)
    if answer.plan is not None and answer.plan.needs:
        calls = [call for need in answer.plan.needs for call in need.calls]
        return Missing(text, tuple(spelled(call) for call in calls))
    if answer.held is not None:
        return Waiting(text, session, answer.call_id)
    return Refused(text, answer.reasons)


@overload
def guard(
    handbook: str | PathLike[str],
    *,
    verify: Verify = ...,
    refusals: Refusals = ...,
    store: Store | str | None = ...,
    language: str = ...,
) -> Guard: ...


@overload
def guard(
    handbook: str | PathLike[str],
    function: AnyFunction,
    /,
    *,
    verify: Verify = ...,
    refusals: Refusals = ...,
    store: Store | str | None = ...,
    language: str = ...,
) -> AnyFunction: ...


@overload
def guard(
    handbook: str | PathLike[str],
    function: Callable[..., Any],
    /,
    *functions: Callable[..., Any],
    verify: Verify = ...,
    refusals: Refusals = ...,
    store: Store | str | None = ...,
    language: str = ...,
) -> tuple[Callable[..., Any], ...]: ...


def guard(
    handbook: str | PathLike[str],
    *functions: Callable[..., Any],
    verify: Verify = "ask",
    refusals: Refusals = "raise",
    store: Store | str | None = None,
    language: str = "en",
) -> Any:
    """Wrap functions so that the handbook decides which of their calls are carried out.

    ``verify="ask"`` lists the missing calls, ``"auto"`` makes the read-only ones itself.
    ``refusals`` are raised (``Refused``, ``Missing``, ``Waiting``) or returned as text for a model.
    Without functions it returns a decorator. Functions keep their names, types and docstrings.
    """
    made = Guard(handbook, verify=verify, refusals=refusals, store=store, language=language)
    if not functions:
        return made
    wrapped = tuple(made(function) for function in functions)
    return wrapped[0] if len(wrapped) == 1 else wrapped
