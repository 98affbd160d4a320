"""The machine's questions to the user, put by the client where it can: MCP's elicitation."""

from __future__ import annotations

import mcp_types as types
from mcp.shared.exceptions import MCPError

from sopilot.doors.mcp._call_link import CURRENT_LINK, Ask
from sopilot.doors.mcp._clients import Context
from sopilot.runtime.session import Session
from sopilot.runtime.session.user_questions import UserAnswer

_FORM = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Your answer"}},
    "required": ["answer"],
}


class ElicitsAnswers:
    """Asks through the client whose call is being handled; a client that cannot show a question
    leaves it unanswered, and a person decides."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def __call__(self, question: str, about: str) -> UserAnswer | None:
        link = CURRENT_LINK.get()
        ask = link.ask if link is not None else None
        if ask is None:
            return None
        said = await ask(question)
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

    async def ask(question: str) -> str | None:
        try:
            result = await ctx.session.elicit_form(question, _FORM, ctx.request_id)
        except (OSError, MCPError):
            return None
        if result.action == "decline":
            return "no"
        content = result.content or {}
        said = content.get("answer")
        return said if result.action == "accept" and isinstance(said, str) else None

    return ask
