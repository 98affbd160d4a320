"""Row 2: a login on one upstream connection licenses nothing on the next one.

The judge is the bundled bank behind the gateway, whose login is kept for each connection.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from gateway_scenes import call
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from reference_client import CLOSING, prove, texts
from served import free_port, gateway, odd_command, process, sopilot_command

from sopilot.integrations.mcp.server import McpServer
from sopilot.records.store import Store
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore
from warm import warm_python

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
    async with AsyncExitStack() as servers:
        first = await servers.enter_async_context(process(command, url))

        async def restart(upstream: Any) -> None:
            first.kill()
            await first.wait()
            await servers.enter_async_context(process(command, url))

        await lost_in_between(restart, url)


DESKS = """
handbook: desks
actions:
  login: {input: {user: string}}
  pay: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  logged_in(user): {says: "{user} has logged in.", established_by: login(user)}
procedures:
  pay: {requires: logged_in(user)}
"""
DOOR = """
import os, pathlib
from mcp.server import MCPServer
server = MCPServer("door")
pathlib.Path("door.pid").write_text(str(os.getpid()))
@server.tool()
def login(user: str) -> bool:
    return True
server.run()
"""
TILL = """
import pathlib
from mcp.server import MCPServer
server = MCPServer("till")
@server.tool()
def pay(user: str) -> str:
    with pathlib.Path("paid").open("a") as paid:
        paid.write(user)
    return "paid"
server.run()
"""


@pytest.mark.parametrize("lost", ["upstream", "gateway"])
async def test_a_login_at_one_server_that_is_gone_opens_no_other_server(
    lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The login was kept by the server that is gone; the payment goes to the other one."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("desks.yaml", DESKS), ("door.py", DOOR), ("till.py", TILL)):
        (tmp_path / name).write_text(text, "utf-8")
    paid = tmp_path / "paid"

    def served(*more: str) -> StdioServerParameters:
        upstreams = [
            word
            for name in ("door", "till")
            for word in ("--upstream", f"{name}={shlex.join((*warm_python(), f'{name}.py'))}")
        ]
        program, *arguments = sopilot_command(
            "gateway", "--handbook", "desks.yaml", *upstreams, "--approve-tools",
            "--store", "sqlite:s.db", *more,
        )  # fmt: skip
        return StdioServerParameters(
            command=program, args=arguments, env={**os.environ, "HOME": str(tmp_path)}
        )

    async def pay(client: Client, *, after_login: bool) -> bool:
        if after_login:
            await call(client, "login", user="anna")
        return not (await call(client, "pay", user="anna")).is_error

    store = SQLiteStore(tmp_path / "s.db")
    async with Client(stdio_client(served())) as client:
        await call(client, "login", user="anna")
        (record,) = await store.sessions()
        if lost == "upstream":
            os.kill(int((tmp_path / "door.pid").read_text()), signal.SIGKILL)
            await asyncio.sleep(0.5)
            assert not await pay(client, after_login=False)
            assert not paid.exists()
            assert await pay(client, after_login=True)
    if lost == "gateway":
        async with Client(stdio_client(served("--session", record.id))) as client:
            assert not await pay(client, after_login=False)
            assert not paid.exists()
            assert await pay(client, after_login=True)
    assert paid.read_text() == "anna"
    await store.close()
