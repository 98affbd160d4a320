"""One request of a client: who sent it, and how to reach that client while it is handled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.types import Scope

from sopilot.integrations.mcp.content import SESSION_META
from sopilot.integrations.mcp.options import LOCAL

Context = ServerRequestContext[Any, Any]
Answer = TypeVar("Answer", bound=BaseModel)

STDIO = "stdio"
SESSION_HEADER = "sopilot-session"
CONNECTION_HEADER = "mcp-session-id"
STATELESS = "sopilot.stateless"
"""Marks a request whose connection id is its session's id, and which any server may get."""

ELICITATION = types.ClientCapabilities(elicitation=types.ElicitationCapability())
SAMPLING = types.ClientCapabilities(sampling=types.SamplingCapability())
ROOTS = types.ClientCapabilities(roots=types.RootsCapability())

LOG_LEVELS: Sequence[types.LoggingLevel] = get_args(types.LoggingLevel)


@dataclass(frozen=True, slots=True)
class Caller:
    """``key`` tells an owner's conversations apart; ``session_id`` is the session it names."""

    owner: str
    key: str
    session_id: str | None = None


def owner_of(scope: Scope) -> str:
    user = scope.get("user")
    return user.username if isinstance(user, AuthenticatedUser) else LOCAL


def identify(ctx: Context, default_session: str | None = None) -> Caller:
    """Read the caller from a request whose token and connection the transport has checked.

    A request without a connection must name its session, or strangers would share one.
    """
    named = ctx.meta.get(SESSION_META) if ctx.meta else None
    session_id = named if isinstance(named, str) else None
    request = ctx.request
    if not isinstance(request, Request):
        return Caller(LOCAL, STDIO, session_id or default_session)
    session_id = session_id or request.headers.get(SESSION_HEADER)
    key = request.headers.get(CONNECTION_HEADER, "")
    if request.scope.get(STATELESS) and session_id is None and key:
        session_id = key
    if not key and session_id is None:
        raise MCPError(
            types.INVALID_REQUEST,
            "this server keeps sessions: connect with `initialize`, or name one in the header "
            f"`{SESSION_HEADER}` or in `_meta` under `{SESSION_META}`",
        )
    return Caller(owner_of(request.scope), key, session_id)


class Rounds:
    """The open questions of one call to a client that is asked in rounds (2026-07-28)."""

    def __init__(self) -> None:
        self._questions: dict[
            str, tuple[types.InputRequest, asyncio.Future[types.InputResponse | None]]
        ] = {}
        self._raised = asyncio.Event()
        self._count = 0

    async def ask(self, request: types.InputRequest) -> types.InputResponse | None:
        """Wait until the client brings the answer; ``None`` if it doesn't."""
        self._count += 1
        answer: asyncio.Future[types.InputResponse | None] = (
            asyncio.get_running_loop().create_future()
        )
        self._questions[str(self._count)] = request, answer
        self._raised.set()
        return await answer

    async def raised(self) -> dict[str, types.InputRequest]:
        """Wait for questions."""
        await self._raised.wait()
        return {key: request for key, (request, _) in self._questions.items()}

    def answer(self, responses: Mapping[str, types.InputResponse]) -> None:
        """Close every question; those without a response stay unanswered."""
        questions, self._questions = self._questions, {}
        self._raised.clear()
        for key, (_, answer) in questions.items():
            if not answer.done():
                answer.set_result(responses.get(key))


class ClientCall:
    """Everything beside a call's arguments: progress, cancellation, questions, raw content.

    A session knows names, arguments and results only; the gateway finds this object in
    ``CURRENT_CALL``. ``result`` is the upstream's own result, as the library spells it.
    """

    def __init__(
        self, ctx: Context, caller: Caller, log_level: types.LoggingLevel | None = None
    ) -> None:
        self.caller = caller
        self.tool = ""
        """The name of the tool that the client calls."""
        self.irreversible = False
        """Such a call runs to its end even if the client leaves: its outcome must be known."""
        self.result: types.CallToolResult | None = None
        self.held: object = None
        """Why the tool was not called, if it differs from the approved one."""
        self.unknown = False
        """The call was sent and its outcome isn't known."""
        self.cancelled = False
        self.rounds = Rounds()
        self._on_cancel: list[Callable[[], object]] = []
        self._least_level = LOG_LEVELS.index(log_level) if log_level is not None else 0
        self.attach(ctx)

    def attach(self, ctx: Context) -> None:
        """Reach the client through this request: the first one, or a later round of the call."""
        self._session = ctx.session
        self._request_id = ctx.request_id
        request = ctx.request
        stateless = isinstance(request, Request) and bool(request.scope.get(STATELESS))
        modern = ctx.session.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.in_rounds = modern and not stateless

    def cancel(self) -> None:
        self.cancelled = True
        for action in tuple(self._on_cancel):
            action()

    @contextmanager
    def on_cancel(self, action: Callable[[], object]) -> Iterator[None]:
        self._on_cancel.append(action)
        try:
            yield
        finally:
            self._on_cancel.remove(action)

    def can(self, capability: types.ClientCapabilities) -> bool:
        """Whether the client declares the capability and a question can reach it."""
        reachable = self.in_rounds or self._session.can_send_request
        return reachable and self._session.check_client_capability(capability)

    async def ask(
        self, request: types.InputRequest, answer: type[Answer], needs: types.ClientCapabilities
    ) -> Answer | types.ErrorData:
        """Put a question to the client: as a request, or as a round since 2026-07-28."""
        if not self.can(needs):
            return no_client(request.method)
        try:
            if self.in_rounds:
                response = await self.rounds.ask(request)
                if response is None:
                    return no_client(request.method)
                return answer.model_validate(response.model_dump(by_alias=True, exclude_none=True))
            metadata = ServerMessageMetadata(related_request_id=self._request_id)
            return await self._session.send_request(request, answer, metadata=metadata)
        except MCPError as problem:
            return problem.error
        except (OSError, ValidationError):
            return no_client(request.method)

    async def report_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        with suppress(OSError, MCPError):  # the client may be gone
            await self._session.report_progress(progress, total, message)

    async def notify(self, notice: types.ServerNotification, *, of_call: bool) -> None:
        """``of_call``: beside the answer to this call, not on the connection's own stream."""
        if (
            isinstance(notice, types.LoggingMessageNotification)
            and LOG_LEVELS.index(notice.params.level) < self._least_level
        ):
            return
        with suppress(OSError, MCPError):
            await self._session.send_notification(notice, self._request_id if of_call else None)


def no_client(method: str) -> types.ErrorData:
    return types.ErrorData(
        code=types.INVALID_REQUEST, message=f"`{method}`: no client can be asked here"
    )


CURRENT_CALL: ContextVar[ClientCall | None] = ContextVar("sopilot_client_call", default=None)
