"""The moves of a finished run, sent by an MCP client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp.client import Client
from reference_client import texts
from replayed_moves import Move, Renumbered

from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.services import task_service
from sopilot.integrations.mcp.sessions import SessionPool
from sopilot.runner.play import FINISH_TOOL, SAY_TOOL
from sopilot.stores.memory import MemoryStore
from sopilot.views.catalogue import view_named


def over_mcp(task: str, moves: Sequence[Move], *, view: str) -> dict[str, Any]:
    """What is said beside a call stays with the agent: MCP has no place for it."""

    async def run() -> dict[str, Any]:
        server = McpServer(SessionPool(MemoryStore(), task_service(task, view_named(view))))
        async with Client(server.protocol) as client:
            renumbered = Renumbered()
            for move in moves:
                if move.tool:
                    arguments = json.loads(renumbered.arguments(move) or "{}")
                    answer = await client.call_tool(move.tool, arguments)
                    assert isinstance(answer, types.CallToolResult)
                    renumbered.answered(move, texts(answer)[0])
                else:
                    await client.call_tool(SAY_TOOL.name, {"text": move.say})
            done = await client.call_tool(FINISH_TOOL.name, {})
        await server.close()
        assert isinstance(done, types.CallToolResult)
        score: dict[str, Any] = json.loads(texts(done)[0].removeprefix("Done: "))
        return score

    return asyncio.run(run())
