"""The machine's questions over MCP: the client asks its user, or nobody is asked."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types
from mcp.client import Client

sys.path.insert(0, str(Path(__file__).parents[2] / "policies"))

from policy_desk import ALL, HANDBOOK, PROGRAMS, AirTools

from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.sessions import Service, SessionPool
from sopilot.protocols import ToolSchema
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.task import Simulation
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named

SCHEMAS = [
    ToolSchema(
        action.name,
        action.says,
        {"type": "object", "properties": {name: {} for name in action.input_names()}},
    )
    for action in HANDBOOK.actions.values()
]


class Described(AirTools):
    def schemas(self) -> list[ToolSchema]:
        return SCHEMAS


async def cancelling(answer: types.ElicitResult | None) -> tuple[AirTools, list[str]]:
    tools, asked = Described(), []

    async def open_simulation() -> Simulation:
        return Simulation(tools)

    service = Service(
        Briefing(HANDBOOK, PROGRAMS), replace(view_named("pg"), automation=ALL), open_simulation
    )
    server = McpServer(SessionPool(MemoryStore(), service))

    async def elicited(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        assert params.requested_schema["properties"]["answer"]["enum"] == ["yes", "no"]
        assert answer is not None
        return answer

    callback = elicited if answer is not None else None
    try:
        async with Client(server.protocol, elicitation_callback=callback, mode="legacy") as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            assert {"ask_user", "confirm_with_user", "cancel"} <= listed
            step = {"operation": "start", "goal": "cancel"}
            given = {"reservation_id": "R1", "user_id": "ann", "reason": "change"}
            await client.call_tool("pg_program_step", {**step, "arguments": given})
            for name, arguments in (
                ("read_user", {"user_id": "ann"}),
                ("read_reservation", {"reservation_id": "R1"}),
                ("confirm_with_user", {"action": "cancel", "reservation_id": "R1"}),
                ("cancel", {"reservation_id": "R1"}),
            ):
                await client.call_tool(name, arguments)
    finally:
        await server.close()
    return tools, asked


def test_the_client_asks_its_user() -> None:
    yes = types.ElicitResult(action="accept", content={"answer": "yes"})
    tools, asked = asyncio.run(cancelling(yes))
    assert asked[:1] == [
        'Cancels R1. The refund takes 5 to 7 days.\ncancel (reservation_id: "R1")\nyes / no?'
    ]
    assert tools.made("cancel") == [{"reservation_id": "R1"}]


@pytest.mark.parametrize("said", ["Yes, R2 please.", "ok is this from savings", "Why?"])
def test_a_client_that_offers_more_than_yes_and_no_is_asked_again(said: str) -> None:
    answer = types.ElicitResult(action="accept", content={"answer": said})
    tools, asked = asyncio.run(cancelling(answer))
    assert tools.made("cancel") == []
    assert len(asked) == 3


@pytest.mark.parametrize("answer", [types.ElicitResult(action="decline"), None])
def test_without_a_yes_nothing_is_done(answer: types.ElicitResult | None) -> None:
    tools, _ = asyncio.run(cancelling(answer))
    assert tools.made("cancel") == []
