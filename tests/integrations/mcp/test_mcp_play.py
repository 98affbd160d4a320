"""A task measured over MCP; sessions that go on; people who decide in between."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types
from click.testing import CliRunner
from mcp.client import Client
from mcp_servers import bank_pool
from reference_client import drive, texts

from sopilot.cli.main import sopilot
from sopilot.integrations.mcp.content import SESSION_META
from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.services import source_service
from sopilot.integrations.mcp.sessions import SessionPool
from sopilot.runner.sources import open_source
from sopilot.stores.sqlite import SQLiteStore
from sopilot.tasks.examples.example import load_example
from sopilot.tasks.task import ReplayedTools, Simulation
from sopilot.views.catalogue import view_named
from sopilot.views.step_tool import TOOL_NAME


async def call(client: Client, name: str, **arguments: object) -> types.CallToolResult:
    result = await client.call_tool(name, dict(arguments))
    assert isinstance(result, types.CallToolResult)
    return result


async def test_a_session_goes_on_in_another_process(tmp_path: Path) -> None:
    """Another server on the same store: simulator and frame are what they were."""
    ids: list[str] = []
    frames: list[str] = []
    for turn in range(2):
        store = SQLiteStore(tmp_path / "s.db")
        server = McpServer(bank_pool(store), session_id=ids[0] if turn else None)
        async with Client(server.protocol) as client:
            if turn == 0:
                await call(client, TOOL_NAME, operation="start", goal="transfer")
                result = await call(client, "read_ledger")
            else:
                result = await call(client, TOOL_NAME, operation="nothing")
            ids.append((result.meta or {})[SESSION_META])
            frames.append(texts(result)[-1])
        await server.close()
        await store.close()
    assert ids[0] == ids[1]
    assert frames[0] == frames[1]


async def test_people_decide_from_the_command_line(tmp_path: Path) -> None:
    """The server lets go of the session between calls; what was decided is seen."""
    example = load_example("bank")
    task = example.task("close-empty")
    path = tmp_path / "s.db"

    async def drive_until_held(client: Client) -> tuple[str, str]:
        driven = await drive(client, example, task, stop_when_held=True)
        assert driven.calls[-1][0] == "close_account"
        assert driven.calls[-1][2], "it waits"
        store = SQLiteStore(path)
        events = [sealed.event for sealed in await store.events(driven.session_id)]
        await store.close()
        (held,) = [
            event.payload["details"]
            for event in events
            if event.kind == "note"
            and event.payload["name"] == "held_call"
            and event.payload["details"]["awaits"] == "approval"
        ]
        return driven.session_id, held["call_id"]

    store = SQLiteStore(path)

    async def open_simulation() -> Simulation:
        return Simulation(ReplayedTools(example.make_tools(task)), simulated=True)

    service = replace(
        source_service(open_source("bank"), view_named("pg")), open_simulation=open_simulation
    )
    server = McpServer(SessionPool(store, service))
    async with Client(server.protocol) as client:
        driven = await drive_until_held(client)
        session_id, call_id = driven
        decided = await asyncio.to_thread(
            CliRunner().invoke,
            sopilot,
            ["approvals", "approve", session_id, call_id, "--as", "Kim", "--role", "supervisor",
             "--store", f"sqlite:{path}"],
        )  # fmt: skip
        assert decided.exit_code == 0, decided.output
        done = await call(client, "close_account", **task.arguments)
        assert texts(done)[0].split(" ")[1] == "(ok):"
    await server.close()
    await store.close()
