"""Who gets in, and who gets at whose session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import httpx2
import mcp_types as types
from gateway_scenes import until
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_servers import ACCEPT, INITIALIZE, PING, bank_pool, serving
from reference_client import texts

from sopilot.integrations.mcp.client_call import SESSION_HEADER
from sopilot.integrations.mcp.content import SESSION_META
from sopilot.integrations.mcp.http import HttpApp
from sopilot.integrations.mcp.options import PATH, HttpSettings
from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.services import source_service
from sopilot.integrations.mcp.sessions import SessionPool
from sopilot.messages.errors import UserMistake
from sopilot.runner.sources import open_source
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.task import Simulation
from sopilot.views.catalogue import view_named
from sopilot.views.step_tool import TOOL_NAME

ANNA, BEN = "a" * 32, "b" * 32
PORT = 8321
OWN = f"127.0.0.1:{PORT}"
TOKENS = {"anna": ANNA, "ben": BEN}


@asynccontextmanager
async def served(settings: HttpSettings) -> AsyncIterator[httpx2.ASGITransport]:
    """The whole application, as uvicorn would run it."""
    server = McpServer(bank_pool())
    app: Any = HttpApp(server, settings)
    async with app.starlette.router.lifespan_context(app.starlette):
        yield httpx2.ASGITransport(app)
    await server.close()


LET_IN = 400
"""What the transport itself says to a ping without a connection: the gatekeeper let it pass."""

LOOPBACK = HttpSettings(port=PORT)
WITH_TOKENS = HttpSettings(port=PORT, tokens=TOKENS)
OTHER = HttpSettings("127.0.0.2", PORT)
SIX = HttpSettings("2001:db8:0::1", PORT, TOKENS)
PUBLIC = HttpSettings(
    "0.0.0.0", PORT, TOKENS, ("desk.example", "desk.example:443"), ("https://a.example",)
)


def gate(
    settings: HttpSettings, status: int, host: str = OWN, origin: str = "", *tokens: str
) -> Any:
    """A case: where the request says that it goes, where it comes from, and its tokens."""
    headers = [("host", host)]
    headers += [("origin", origin)] if origin else []
    headers += [("authorization", token) for token in tokens]
    return pytest.param(settings, headers, status)


BEARER = f"Bearer {ANNA}"
DESK = "desk.example"


@pytest.mark.parametrize(
    ("settings", "headers", "status"),
    [
        gate(LOOPBACK, LET_IN),
        gate(LOOPBACK, LET_IN, f"localhost:{PORT}"),
        gate(LOOPBACK, LET_IN, f"[::1]:{PORT}"),
        gate(OTHER, LET_IN, f"127.0.0.2:{PORT}", f"http://127.0.0.2:{PORT}"),
        gate(OTHER, 421, f"127.0.0.3:{PORT}"),
        gate(HttpSettings("::1", PORT), LET_IN, f"[::1]:{PORT}"),
        gate(SIX, 401, f"[2001:db8::1]:{PORT}"),
        gate(SIX, 421, f"2001:db8::1:{PORT}"),
        gate(replace(PUBLIC, hosts=("2001:db8::2",)), 401, f"[2001:db8::2]:{PORT}"),
        gate(LOOPBACK, 421, "127.0.0.1:9"),
        gate(LOOPBACK, 421, "evil.example"),
        gate(LOOPBACK, 421, f"127.0.0.1.evil.example:{PORT}"),
        gate(LOOPBACK, 421, f"evil.example:{PORT}"),
        gate(LOOPBACK, 421, ""),
        pytest.param(LOOPBACK, [("host", "evil.example"), ("host", OWN)], 421),
        gate(LOOPBACK, LET_IN, OWN, f"http://{OWN}"),
        gate(LOOPBACK, 403, OWN, "http://evil.example"),
        gate(LOOPBACK, 403, OWN, "null"),
        gate(LOOPBACK, 403, OWN, f"http://127.0.0.1.evil.example:{PORT}"),
        gate(LOOPBACK, 403, OWN, f"https://{OWN}"),
        gate(WITH_TOKENS, 401),
        gate(WITH_TOKENS, LET_IN, OWN, "", BEARER),
        gate(WITH_TOKENS, LET_IN, OWN, "", f"bearer {BEN}"),
        gate(WITH_TOKENS, 401, OWN, "", "Bearer wrong"),
        gate(WITH_TOKENS, 401, OWN, "", "Bearer "),
        gate(WITH_TOKENS, 401, OWN, "", ANNA),
        gate(WITH_TOKENS, 401, OWN, "", f"Basic {ANNA}"),
        gate(WITH_TOKENS, 401, OWN, "", f"{BEARER}x"),
        gate(WITH_TOKENS, 401, OWN, "", "Bearer wrong", BEARER),
        gate(WITH_TOKENS, 421, "evil.example", "", BEARER),
        gate(PUBLIC, LET_IN, f"{DESK}:{PORT}", "", BEARER),
        gate(PUBLIC, LET_IN, f"{DESK}:443", "", BEARER),
        gate(PUBLIC, LET_IN, DESK, "", BEARER),
        gate(PUBLIC, 421, OWN, "", BEARER),
        gate(PUBLIC, 421, f"0.0.0.0:{PORT}", "", BEARER),
        gate(PUBLIC, 401, DESK),
        gate(PUBLIC, LET_IN, DESK, "https://a.example", BEARER),
        gate(PUBLIC, 403, DESK, "https://b.example", BEARER),
    ],
)
async def test_the_gate(
    settings: HttpSettings, headers: list[tuple[str, str]], status: int
) -> None:
    async with (
        served(settings) as transport,
        httpx2.AsyncClient(transport=transport) as http,
    ):
        base = [("accept", "application/json, text/event-stream")]
        answer = await http.post(f"http://{OWN}{PATH}", json=PING, headers=[*base, *headers])
        assert answer.status_code == status


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (HttpSettings("0.0.0.0"), "unprotected-server"),
        (HttpSettings("192.0.2.7"), "unprotected-server"),
        (HttpSettings("::"), "unprotected-server"),
        (HttpSettings("desk.example"), "unprotected-server"),
        (HttpSettings("0.0.0.0", tokens=TOKENS), "unknown-host-name"),
        (HttpSettings("127.0.0.1", tokens={"anna": "short"}), "short-token"),
    ],
)
def test_it_refuses_to_start(settings: HttpSettings, code: str) -> None:
    with pytest.raises(UserMistake) as refused:
        settings.check()
    assert [one.code for one in refused.value.diagnostics] == [code]
    assert "".join(TOKENS.values()) not in repr(settings)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.9.1"])
def test_loopback_needs_no_token(host: str) -> None:
    HttpSettings(host).check()


@asynccontextmanager
async def client_of(
    transport: httpx2.ASGITransport | None,
    token: str,
    session_id: str | None = None,
    hear: Any = None,
    url: str = f"http://{OWN}{PATH}",
) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"}
    if session_id is not None:
        headers[SESSION_HEADER] = session_id
    http = httpx2.AsyncClient(transport=transport, headers=headers)
    stream = streamable_http_client(url, http_client=http)
    async with http, Client(stream, message_handler=hear) as client:
        yield client


async def started(client: Client, goal: str) -> types.CallToolResult:
    result = await client.call_tool(TOOL_NAME, {"operation": "start", "goal": goal})
    assert isinstance(result, types.CallToolResult)
    return result


async def test_a_session_is_its_owners() -> None:
    async with served(WITH_TOKENS) as transport:
        async with client_of(transport, ANNA) as anna:
            mine = await started(anna, "transfer")
            session_id = (mine.meta or {})[SESSION_META]
            assert len(session_id) == 32
        # Another connection of the same owner goes on with it.
        async with client_of(transport, ANNA, session_id) as again:
            frame = await again.read_resource("sopilot://frame")
            assert frame.contents[0].text == texts(mine)[-1]  # type: ignore[union-attr]
        # Somebody else's session is as unknown as one that does not exist.
        problems = []
        for wanted in (session_id, "0" * 32):
            async with client_of(transport, BEN, wanted) as ben:
                with pytest.raises(MCPError) as unknown:
                    await ben.read_resource("sopilot://frame")
                problems.append(unknown.value.error.message.replace(wanted, "ID"))
                refused = await ben.call_tool(TOOL_NAME, {"operation": "complete"})
                assert isinstance(refused, types.CallToolResult)
                assert refused.is_error
        assert problems[0] == problems[1]


async def test_connections_of_one_owner_have_sessions_of_their_own() -> None:
    async with (
        served(WITH_TOKENS) as transport,
        client_of(transport, ANNA) as one,
        client_of(transport, ANNA) as other,
    ):
        first, second = await asyncio.gather(started(one, "transfer"), started(other, "issue_card"))
        assert texts(first)[-1].startswith("process transfer(")
        assert texts(second)[-1].startswith("process issue_card(")
        assert (first.meta or {})[SESSION_META] != (second.meta or {})[SESSION_META]


async def test_changes_are_told_to_those_who_watch_that_session() -> None:
    """Two connections on one session both hear; another owner's hears nothing."""
    heard: dict[str, list[str]] = {"one": [], "two": [], "ben": []}

    def listener(name: str) -> Any:
        async def hear(message: object) -> None:
            if isinstance(message, types.ResourceUpdatedNotification):
                heard[name].append(str(message.params.uri))

        return hear

    settings = HttpSettings(port=0, tokens=TOKENS)
    async with (
        serving(McpServer(bank_pool()), settings) as at,
        AsyncExitStack() as stack,
    ):

        async def join(name: str, token: str, session_id: str | None = None) -> Client:
            client = await stack.enter_async_context(
                client_of(None, token, session_id, listener(name), at.url)
            )
            capabilities = client.server_capabilities
            assert capabilities.resources is not None
            assert capabilities.resources.subscribe
            assert capabilities.tools is not None
            assert capabilities.tools.list_changed
            return client

        one = await join("one", ANNA)
        first = await started(one, "transfer")
        clients = [one, await join("two", ANNA, (first.meta or {})[SESSION_META])]
        clients.append(await join("ben", BEN))
        for client in clients:
            with pytest.warns(MCPDeprecationWarning):
                await client.subscribe_resource("sopilot://frame")
        await clients[1].call_tool(TOOL_NAME, {"operation": "start", "goal": "issue_card"})
        await clients[1].call_tool(TOOL_NAME, {"operation": "fail", "reason": "enough"})
        await until(lambda: len(heard["one"]) == len(heard["two"]) == 2)
        assert heard["one"] == heard["two"] == ["sopilot://frame"] * 2
        assert heard["ben"] == []


async def test_a_closed_connection_leaves_nothing_open() -> None:
    closed: list[str] = []
    service = source_service(open_source("bank"), view_named("pg"))

    async def open_simulation() -> Simulation:
        simulation = await service.open_simulation()

        async def close() -> None:
            closed.append("simulator")

        return replace(simulation, close=close)

    store = MemoryStore()
    hub = SessionPool(store, replace(service, open_simulation=open_simulation))
    server = McpServer(hub)
    app: Any = HttpApp(server, WITH_TOKENS)
    async with app.starlette.router.lifespan_context(app.starlette):
        transport = httpx2.ASGITransport(app)
        async with client_of(transport, ANNA) as anna:
            await started(anna, "transfer")
            assert closed == []
        assert closed == ["simulator"]
    (record,) = await store.sessions()
    assert record.owner == "", "the lease was given back"
    await server.close()


async def test_another_owners_connection_cannot_be_ridden() -> None:
    async with (
        served(WITH_TOKENS) as transport,
        httpx2.AsyncClient(transport=transport) as http,
    ):
        url = f"http://{OWN}{PATH}"
        opened = await http.post(
            url, json=INITIALIZE, headers={**ACCEPT, "authorization": f"Bearer {ANNA}"}
        )
        connection = {**ACCEPT, "mcp-session-id": opened.headers["mcp-session-id"]}
        for token, status in ((BEN, 404), (ANNA, 200)):
            answer = await http.post(
                url, json=PING, headers={**connection, "authorization": f"Bearer {token}"}
            )
            assert answer.status_code == status


async def test_a_request_without_connection_or_session_is_refused() -> None:
    async with (
        served(LOOPBACK) as transport,
        httpx2.AsyncClient(transport=transport) as http,
    ):
        url = f"http://{OWN}{PATH}"
        stray = Client(streamable_http_client(url, http_client=http), mode="2026-07-28")
        async with stray as client:
            with pytest.raises(MCPError, match="keeps sessions"):
                await client.call_tool(TOOL_NAME, {"operation": "start", "goal": "transfer"})


async def test_no_path_or_address_from_a_client_is_opened() -> None:
    async with served(LOOPBACK) as transport, client_of(transport, ANNA) as client:
        for uri in ("file:///etc/passwd", "http://127.0.0.1:1/", "sopilot://../frame"):
            with pytest.raises(MCPError, match="there is no"):
                await client.read_resource(uri)
