"""Row 2: a login on one upstream connection licenses nothing on the next one.

The judge is the bundled bank behind the gateway, whose login is kept for each connection.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from gateway_scenes import call
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from reference_client import CLOSING, prove, texts
from served import free_port, gateway, odd_command, process, sopilot_command

from sopilot.integrations.mcp.server import McpServer
from sopilot.records.store import Store
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore

Lose = Callable[[Any], Awaitable[None]]


async def held_on_the_next_connection(client: Client, store: Store, session_id: str) -> None:
    result = await call(client, CLOSING.goal, **CLOSING.arguments)
    assert result.is_error
    assert "earlier connection" in texts(result)[0]
    events = [one.event for one in await store.events(session_id)]
    made = [one.payload["action"] for one in events if one.kind == "domain_call"]
    assert CLOSING.goal not in made
    connected = [
        one.payload["details"]["connection"]
        for one in events
        if one.kind == "note" and one.payload["name"] == "connected"
    ]
    assert len(set(connected)) == len(connected) == 2


def children_running(program: str) -> list[int]:
    own = Path("/proc/self/task").glob("*/children")
    children = [int(pid) for file in own for pid in file.read_text().split()]
    return [pid for pid in children if program in Path(f"/proc/{pid}/cmdline").read_text()]


async def lost_in_between(lose: Lose, url: str = "") -> None:
    store = MemoryStore()
    arguments = ("bank", "close-empty")
    server: McpServer
    async with (
        gateway(*arguments, store=store, told=[], url=url) as server,
        Client(server.protocol) as client,
    ):
        session_id = await prove(client, store)
        seat = next(iter(server.pool.live))
        upstream = next(iter(seat.session.tools._upstreams.values()))  # type: ignore[union-attr]
        await lose(upstream)
        await held_on_the_next_connection(client, store, session_id)


async def test_the_connection_is_closed_between_proof_and_act() -> None:
    await lost_in_between(lambda upstream: upstream._drop())


async def test_the_upstream_process_is_killed_between_proof_and_act() -> None:
    async def kill(upstream: Any) -> None:
        (child,) = children_running("odd_upstream.py")
        os.kill(child, signal.SIGKILL)
        for _ in range(200):
            if upstream._client is None:
                return
            await asyncio.sleep(0.02)

    await lost_in_between(kill)


async def test_an_upstream_over_http_is_started_anew_between_proof_and_act() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    command = odd_command("bank", "close-empty", "--http", str(port))
    async with process(command, url) as first:

        async def restart(upstream: Any) -> None:
            first.kill()
            await first.wait()
            second = await asyncio.create_subprocess_exec(*command)
            started.append(second)
            for _ in range(300):
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.1)
                else:
                    writer.close()
                    return

        started: list[asyncio.subprocess.Process] = []
        try:
            await lost_in_between(restart, url)
        finally:
            for one in started:
                one.terminate()
                await one.wait()


async def test_the_gateway_is_started_again_with_the_session(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    upstream = shlex.join(odd_command("bank", "close-empty"))

    def served(*more: str) -> StdioServerParameters:
        program, *arguments = sopilot_command(
            "gateway", "--view", "pg", "--handbook", "bank",
            "--upstream", f"odd={upstream}", "--approve-tools",
            "--store", f"sqlite:{path}", *more,
        )  # fmt: skip
        return StdioServerParameters(
            command=program, args=arguments, env={**os.environ, "HOME": str(tmp_path)}
        )

    store = SQLiteStore(path)
    async with Client(stdio_client(served())) as client:
        session_id = await prove(client, store)
    async with Client(stdio_client(served("--session", session_id))) as client:
        await held_on_the_next_connection(client, store, session_id)
    await store.close()
