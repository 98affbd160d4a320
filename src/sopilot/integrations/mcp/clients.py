"""Who is asking, and in which of its conversations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST
from starlette.requests import Request

from sopilot.integrations.mcp.content import SESSION_META

Context = ServerRequestContext[Any, Any]


LOCAL = "local"
"""The owner behind standard streams, and behind loopback without a token."""


STDIO = "stdio"


SESSION_HEADER = "sopilot-session"


CONNECTION_HEADER = "mcp-session-id"


STATELESS = "sopilot.stateless"
"""Marks a request of which the connection is the session."""


@dataclass(frozen=True, slots=True)
class Asker:
    """``key`` tells an owner's conversations apart; ``session_id`` is one it asks for."""

    owner: str
    key: str
    session_id: str | None = None


def asker(ctx: Context, default_session: str | None = None) -> Asker:
    """The transport has checked token and connection before. A request without a connection
    of its own has to name its session, or strangers would share one."""
    named = ctx.meta.get(SESSION_META) if ctx.meta else None
    session_id = named if isinstance(named, str) else None
    request = ctx.request
    if not isinstance(request, Request):
        return Asker(LOCAL, STDIO, session_id or default_session)
    user = request.scope.get("user")
    owner = user.username if isinstance(user, AuthenticatedUser) else LOCAL
    session_id = session_id or request.headers.get(SESSION_HEADER)
    key = request.headers.get(CONNECTION_HEADER, "")
    if request.scope.get(STATELESS) and session_id is None and key:
        session_id = key
    if not key and session_id is None:
        raise MCPError(
            INVALID_REQUEST,
            "this server keeps sessions: connect with `initialize`, or name one in the header "
            f"`{SESSION_HEADER}` or in `_meta` under `{SESSION_META}`",
        )
    return Asker(owner, key, session_id)
