"""The machine's questions to the user, put by the client where it can: MCP's elicitation."""

from __future__ import annotations

import mcp_types as types
from mcp.shared.exceptions import MCPError

from sopilot.integrations.mcp.call_link import CURRENT_LINK, Ask
from sopilot.integrations.mcp.clients import Context
from sopilot.session.questions import UserAnswer
from sopilot.session.session import Session

_ANSWER = {"type": "string", "title": "Your answer"}


_CLOSED = {**_ANSWER, "enum": ["yes", "no"]}


class ElicitsAnswers:
    """Asks through the client whose call is being handled; a client that cannot show a question
    leaves it unanswered, and a person decides."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def __call__(self, question: str, about: str, closed: bool) -> UserAnswer | None:
        link = CURRENT_LINK.get()
        ask = link.ask if link is not None else None
        if ask is None:
            return None
        said = await ask(question, closed)
        if said is None:
            return None
        await self._session.assistant_said(question)
        outcome = await self._session.user_said(said)
        return UserAnswer(said, outcome.events[0].seq)


def eliciting(ctx: Context) -> Ask | None:
    """The client's way to ask, ``None`` without the capability."""
    wanted = types.ClientCapabilities(elicitation=types.ElicitationCapability())
    if not ctx.session.check_client_capability(wanted):
        return None

    async def ask(question: str, closed: bool) -> str | None:
        form = {
            "type": "object",
            "properties": {"answer": _CLOSED if closed else _ANSWER},
            "required": ["answer"],
        }
        try:
            result = await ctx.session.elicit_form(question, form, ctx.request_id)
        except (OSError, MCPError):
            return None
        # Who declines has answered nothing: "no" may be the very answer that lets a call through.
        content = result.content or {}
        said = content.get("answer")
        return said if result.action == "accept" and isinstance(said, str) else None

    return ask
