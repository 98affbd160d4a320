"""Guard plain Python functions.

An agent calls the wrapped functions as it likes. Reads pass and become evidence. A call of a
guarded action is carried out if the handbook's requirements are proven for exactly that call;
otherwise the caller learns what is missing or why it is refused.
"""

from __future__ import annotations

import functools
import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping
from os import PathLike, fspath
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast, overload

from sopilot.handbook.model import BUILT_IN
from sopilot.machine.call_ledger import HeldState
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import RunEnded, mistake
from sopilot.records.store import Store
from sopilot.runner.conversations import Conversations
from sopilot.runner.hook import Failed, ToolFailed
from sopilot.runner.loop_thread import caller
from sopilot.runner.sources import open_source
from sopilot.runner.store_access import store_or_memory
from sopilot.runner.tools import PlainTools, require_done
from sopilot.session.session import Session
from sopilot.trace.events import AWAITS_OUTCOME, AWAITS_RELEASE
from sopilot.values.json import JSON, same, shown
from sopilot.views.catalogue import view_named
from sopilot.views.guard_answers import spelled
from sopilot.views.refusals import Refusal
from sopilot.views.step_answers import CallAnswer, CallStatus

Verify = Literal["ask", "auto"]
Refusals = Literal["raise", "text"]
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


class NotCarriedOut(RunEnded):
    """A guarded call was not made. The message gives the reason."""


class Refused(NotCarriedOut):
    """A requirement of the call is false, or people rejected it. ``reasons`` names it; ``remedy``
    says what the user can do."""

    def __init__(self, text: str, reasons: tuple[Refusal, ...] = ()) -> None:
        super().__init__(text)
        self.reasons = reasons

    @property
    def remedy(self) -> str:
        return " ".join(dict.fromkeys(reason.remedy for reason in self.reasons if reason.remedy))


class Missing(NotCarriedOut):
    """The call isn't proven yet. ``agenda`` lists the calls to make first. It is empty while an
    earlier call is unanswered, or if only the user's answer is missing."""

    def __init__(self, text: str, agenda: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.agenda = agenda


class Waiting(NotCarriedOut):
    """People must approve the call, or release the session from a fence. ``session`` and
    ``call_id`` name it for ``sopilot approvals``."""

    def __init__(self, text: str, session: str, call_id: str) -> None:
        super().__init__(text)
        self.session = session
        self.call_id = call_id


class OutcomeUnknown(NotCarriedOut):
    """The call was sent, but it is unknown whether it was carried out."""


class Guard:
    """The guarded functions of one handbook, as ``guard`` returns it. Use it as a decorator."""

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
        self._actions = source.handbook.actions
        self._functions: dict[str, Callable[..., Any]] = {}
        self._reader = PlainTools(self._functions, self._actions)
        self._refusals = refusals
        view = "guard" if verify == "ask" else "guard-auto"
        self._conversations = Conversations(
            store_or_memory(store),
            source.briefing(language=language),
            view_named(view),
            reader=self._reader,
        )
        self.name = self._conversations.name

    def __call__(self, function: AnyFunction) -> AnyFunction:
        """Wrap a function whose name is an action of the handbook."""
        name = getattr(function, "__name__", "")
        if not callable(function) or not name:
            message = f"{function!r} has no name that tells which action it carries out"
            raise mistake("unnamed-function", message, help="wrap a function: `def ACTION(…):`")
        if name not in self._actions:
            message = f"`{name}` isn't an action of the handbook `{self.name}`"
            raise mistake("unknown-tool", message, help=did_you_mean(name, self._actions))
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            message = f"`{name}` is a generator, which does its work later"
            raise mistake(
                "tool-signature", message, help="do the work first, then return the answer"
            )
        signature = inspect.signature(function)
        required = {each.name: None for each in self._actions[name].inputs if each.required}
        try:
            signature.bind(**required)
        except TypeError as error:
            wanted = ", ".join(required) or "nothing"
            message = f"`{name}` takes {wanted} in the handbook: {error}"
            cure = "give the parameters the names of the handbook's inputs"
            raise mistake("tool-signature", message, help=cure) from None
        self._functions[name] = function
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def guarded(*args: Any, **named: Any) -> Any:
                bound = signature.bind(*args, **named)
                return await self._call(name, bound, lambda: function(*bound.args, **bound.kwargs))

            return cast(AnyFunction, guarded)

        @functools.wraps(function)
        def waiting(*args: Any, **named: Any) -> Any:
            bound, own = signature.bind(*args, **named), caller()

            def run() -> Any:
                return function(*bound.args, **bound.kwargs)

            return own.wait(self._call(name, bound, lambda: own.run(run)))

        return cast(AnyFunction, waiting)

    def _require_guarded(self) -> None:
        """Raise if a guarded action has no function here: the agent may have it unguarded."""
        for name, action in self._actions.items():
            if action.is_guarded and action.offered and name not in self._functions:
                message = f"`{self.name}` guards `{name}`, and no function of that name is passed"
                cure = f"pass `{name}`, too, or write `offered: false` if the agent can't call it"
                raise mistake("missing-tool", message, help=cure)

    async def _call(
        self, name: str, bound: inspect.BoundArguments, execute: Callable[[], Awaitable[Any]]
    ) -> Any:
        written = _by_name(name, bound)
        own = bound.signature.parameters.values()
        defaults = {each.name: each.default for each in own if each.default is not each.empty}
        bound.apply_defaults()
        result: list[Any] = []

        async def dispatch(arguments: Mapping[str, JSON]) -> object:
            # The decision is bound to these arguments. If they were changed meanwhile, or a
            # person amended them, it is another call.
            if not same(received(_by_name(name, bound), written), dict(arguments)):
                filled = received(_filled_in(name, bound.signature, arguments), arguments)
                if not same(filled, dict(arguments)):
                    return Failed({"error": f"not called: `{name}` would receive other arguments"})
                return await self._reader.call(name, arguments, key="")
            result.append(await execute())
            require_done(name, result[0])
            return result[0]

        async with self._conversations.using() as hook:
            received = functools.partial(hook.received, name, defaults=defaults, classes=True)
            judged = received(_by_name(name, bound), written)
            answer = await hook.tool_call(name, judged, secrets.token_hex(4), dispatch)
        if answer.status is CallStatus.DONE and answer.result is not None:
            if not answer.result.ok:
                raise ToolFailed(_error_of(answer.result.value))
            return result[0] if result else answer.result.value
        problem = not_carried_out(answer, hook.session)
        if self._refusals == "raise":
            raise problem
        return str(problem)


def _error_of(value: JSON) -> str:
    return str(value.get("error", "")) if isinstance(value, Mapping) else shown(value)


def _by_name(name: str, bound: inspect.BoundArguments) -> dict[str, Any]:
    """The values that a function gets, by name: those of its `**` parameter, too."""
    values: dict[str, Any] = {}
    for parameter, value in bound.arguments.items():
        kind = bound.signature.parameters[parameter].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            values.update(value)
        elif kind is not inspect.Parameter.VAR_POSITIONAL:
            values[parameter] = value
        elif value:
            message = f"`{name}` takes `*{parameter}`, so {len(value)} values have no name"
            cure = f"call `{name}` with names, or use `functools.wraps` in its decorator"
            raise mistake("unnamed-arguments", message, help=cure)
    return values


def _filled_in(
    name: str, signature: inspect.Signature, arguments: Mapping[str, JSON]
) -> dict[str, Any]:
    """The values that a function gets if it is called with these, with its own defaults."""
    try:
        bound = signature.bind(**arguments)
    except TypeError:  # the call itself reports it
        return dict(arguments)
    bound.apply_defaults()
    return _by_name(name, bound)


def not_carried_out(answer: CallAnswer, session: Session) -> NotCarriedOut:
    """Why a guarded call wasn't made."""
    text = answer.wording()
    if answer.status is CallStatus.UNKNOWN:
        return OutcomeUnknown(text)
    if answer.plan is not None and answer.plan.needs:
        needed = [call for need in answer.plan.needs for call in need.calls]
        calls = [call for call in needed if call.act.action not in BUILT_IN]
        # The application may have supplied a secret that the agent doesn't know.
        agenda = (session.secrets.masked(spelled(call, session.tool_names)) for call in calls)
        return Missing(text, tuple(agenda))
    if answer.awaits == AWAITS_OUTCOME:
        return Missing(text)
    rejected = answer.held is not None and answer.held.state is HeldState.REJECTED
    if (answer.held is not None and not rejected) or answer.awaits == AWAITS_RELEASE:
        return Waiting(text, session.id, answer.call_id)
    return Refused(text, answer.reasons)


class GuardOptions(TypedDict, total=False):
    """The options of ``guard``, for its overloads."""

    verify: Verify
    refusals: Refusals
    store: Store | str | None
    language: str


@overload
def guard(handbook: str | PathLike[str], **options: Unpack[GuardOptions]) -> Guard: ...


@overload
def guard(
    handbook: str | PathLike[str], function: AnyFunction, /, **options: Unpack[GuardOptions]
) -> AnyFunction: ...


@overload
def guard(
    handbook: str | PathLike[str],
    function: Callable[..., Any],
    /,
    *functions: Callable[..., Any],
    **options: Unpack[GuardOptions],
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

    ``verify="ask"`` lists the missing calls; ``"auto"`` makes missing read-only calls itself.
    ``refusals`` chooses whether a blocked call raises (``Refused``, ``Missing``, ``Waiting``) or
    returns text for a model. Without functions it returns a decorator. Functions keep their names,
    types and docstrings. Pass a function for every guarded action, unless the handbook says
    ``offered: false``.
    """
    made = Guard(handbook, verify=verify, refusals=refusals, store=store, language=language)
    if not functions:
        return made
    wrapped = tuple(made(function) for function in functions)
    made._require_guarded()
    return wrapped[0] if len(wrapped) == 1 else wrapped
