"""Every view over MCP: the loop's own instructions, slots, tools, answers and trace.

An MCP client keeps the messages of its model itself, and sends one call at a time with no
words beside it. So the loop that is compared with is one whose model does the same; and the
messages that the server would ask with are read from its session afterwards.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types
from looped import (
    APPROVED,
    REFUSED,
    TWO_REQUESTS,
    Looped,
    answers,
    compare_record,
    looped,
    one_call,
)
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_servers import over_http

from sopilot.integrations.mcp.content import SESSION_META
from sopilot.integrations.mcp.server import FRAME_URI, McpServer
from sopilot.integrations.mcp.services import task_service
from sopilot.integrations.mcp.sessions import SessionPool
from sopilot.protocols import ModelReply, ModelRequest, ToolSchema
from sopilot.runner.play import FINISH_TOOL, SAY_TOOL
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.views.catalogue import VIEWS, view_named
from warm import warm_python

OVER = "The session is over: "


async def listed(client: Client) -> list[ToolSchema]:
    tools = (await client.list_tools()).tools
    return [ToolSchema(one.name, one.description or "", one.input_schema) for one in tools]


async def sent(client: Client, reply: ModelReply) -> tuple[str, str, str]:
    """The answer, the slot behind it, and the session."""
    if reply.tool_calls:
        (call,) = reply.tool_calls
        given = await client.call_tool(call.name, json.loads(call.arguments or "{}"))
    else:
        given = await client.call_tool(SAY_TOOL.name, {"text": reply.content})
    assert isinstance(given, types.CallToolResult)
    answer, *slot = [one.text for one in given.content if isinstance(one, types.TextContent)]
    said = re.fullmatch('The user: (".*")', answer)
    session_id = str((given.meta or {})[SESSION_META])
    return json.loads(said[1]) if said else answer, "".join(slot), session_id


def slot_of(request: ModelRequest) -> str:
    last = request.messages[-1]
    has_slot = last.role == "system" and len(request.messages) > 1
    return last.content if has_slot else ""


async def compare(client: Client, loop: Looped) -> str:
    """Every request and every answer; the id of the session."""
    frame = (await client.read_resource(FRAME_URI)).contents[0]
    assert isinstance(frame, types.TextResourceContents)
    slot, session_id = frame.text, ""
    wanted = answers(loop.dialog)
    for number, (request, reply) in enumerate(zip(loop.requests, loop.replies, strict=True)):
        assert client.instructions == request.messages[0].content
        assert await listed(client) == [*request.tools, SAY_TOOL, FINISH_TOOL]
        assert slot == slot_of(request)
        answer, slot, session_id = await sent(client, reply)
        if number < len(loop.replies) - 1:
            assert answer == wanted[number]
        else:
            assert answer == f"{OVER}{loop.result.ending}."
    return session_id


@pytest.mark.parametrize("view", ["pg", "fused", "official"])
async def test_stdio(view: str, tmp_path: Path) -> None:
    loop = looped(REFUSED, view, one_call)

    program, *arguments = warm_python()
    server = StdioServerParameters(
        command=program,
        args=[*arguments, "-m", "sopilot.cli.main", "serve", REFUSED, "--view", view],
        env={"SOPILOT_HOME": str(tmp_path)},
    )
    async with Client(server) as client:
        session_id = await compare(client, loop)
    store = SQLiteStore(tmp_path / "sessions.db")
    await compare_record(store, session_id, loop)
    await store.close()


@pytest.mark.parametrize(
    ("task", "view"),
    [
        *((APPROVED, view) for view in VIEWS),
        *((TWO_REQUESTS, view) for view in ("pg", "fused", "flat")),
    ],
)
async def test_http(task: str, view: str) -> None:
    loop = looped(task, view, one_call)

    store = MemoryStore()
    server = McpServer(SessionPool(store, task_service(task, view_named(view))))
    async with over_http(server) as client:
        session_id = await compare(client, loop)
    await compare_record(store, session_id, loop)
