"""An agent that only speaks MCP: the reference executor's moves behind a client connection."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from looped import looped
from mcp.client import Client

from sopilot.integrations.mcp.content import SESSION_META
from sopilot.records.store import Store
from sopilot.session.opening import attach_session
from sopilot.tasks.examples.example import Example, load_example
from sopilot.tasks.examples.task import ExampleTask
from sopilot.views.step_tool import TOOL_NAME

BANK = load_example("bank")
CLOSING = BANK.task("close-empty")


@dataclass
class Driven:
    session_id: str = ""
    calls: list[tuple[str, Mapping[str, Any], bool]] = field(default_factory=list)
    ended: bool = False


def texts(result: types.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, types.TextContent)]


async def drive(
    client: Client, example: Example, task: ExampleTask, *, stop_when_held: bool = False
) -> Driven:
    """One task to its end, by the moves of the agent loop. Results have other numbers here."""
    loop = looped(f"{example.name}/{task.id}", "pg")
    answers = iter([message.content for message in loop.dialog if message.role == "tool"])
    numbers: dict[str, str] = {}
    driven = Driven()
    for reply in loop.replies:
        for call in reply.tool_calls:
            written = re.sub(r"#\d+", lambda cited: numbers[cited[0]], call.arguments)
            arguments = json.loads(written or "{}")
            result = await client.call_tool(call.name, arguments)
            assert isinstance(result, types.CallToolResult)
            said = texts(result)
            numbers[next(answers).split()[0]] = said[0].split()[0]
            driven.session_id = (result.meta or {})[SESSION_META]
            driven.calls.append((call.name, arguments, result.is_error))
            if stop_when_held and "is waiting for approval" in said[0]:
                return driven
            if call.name == TOOL_NAME and said[-1].startswith("No process is running."):
                driven.ended = True
                return driven
    return driven


async def prove(client: Client, store: Store) -> str:
    """All that is left of ``CLOSING`` is the irreversible call, which is approved. The session."""
    driven = await drive(client, BANK, CLOSING, stop_when_held=True)
    async with await attach_session(store, driven.session_id) as session:
        (held,) = session.held_calls
        await session.decide("approve", held.call_id, by="Kim", role="supervisor")
    return driven.session_id
