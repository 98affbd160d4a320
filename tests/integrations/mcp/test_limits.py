"""One client cannot take the server from the others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import httpx2
from mcp_servers import ACCEPT, INITIALIZE, PING, bank_pool, serving

from sopilot.integrations.mcp.options import HttpSettings, Limits, read_limits
from sopilot.integrations.mcp.server import McpServer
from sopilot.messages.errors import RunEnded, UserMistake

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HALF = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1"


@asynccontextmanager
async def listening(limits: Limits) -> AsyncIterator[HttpSettings]:
    server = McpServer(bank_pool())
    async with serving(server, HttpSettings(port=0, limits=limits)) as settings:
        yield settings
    await server.close()


async def is_served(settings: HttpSettings) -> bool:
    async with httpx2.AsyncClient() as client:
        answer = await client.post(settings.url, json=PING, timeout=20)
        return answer.status_code in (200, 400, 406)


@asynccontextmanager
async def connected(settings: HttpSettings, count: int) -> AsyncIterator[list[Connection]]:
    opened = [await asyncio.open_connection("127.0.0.1", settings.port) for _ in range(count)]
    yield opened
    for _, writer in opened:
        writer.close()


async def cut_off(reader: asyncio.StreamReader) -> bool:
    return await asyncio.wait_for(reader.read(1), 20) == b""


async def test_half_a_request_is_cut_off_and_others_are_served() -> None:
    limits = Limits(header_seconds=0.5, connections=40)
    async with listening(limits) as settings, connected(settings, 20) as opened:
        for number, (_, writer) in enumerate(opened):
            writer.write(HALF if number % 2 else b"")
        assert await is_served(settings)
        assert all([await cut_off(reader) for reader, _ in opened])


def busy(settings: HttpSettings) -> bytes:
    """A request whose body does not come."""
    host = f"Host: 127.0.0.1:{settings.port}\r\n"
    head = "Content-Type: application/json\r\nAccept: application/json\r\n"
    return f"POST /mcp HTTP/1.1\r\n{host}{head}Content-Length: 90\r\n\r\n{{".encode()


async def test_a_connection_that_is_used_is_not_cut_off_between_two_requests() -> None:
    """However long ago it was made: from the last answer on it has its time again."""
    limits = Limits(header_seconds=2.0)
    async with listening(limits) as settings, connected(settings, 1) as [(reader, writer)]:
        for pause in (1.5, 1.0):  # made 2.5 seconds ago, silent for one
            await asyncio.sleep(pause)
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            assert head.startswith(b"HTTP/1.1 ")
            length = re.search(rb"content-length: (\d+)", head.lower())
            await reader.readexactly(int(length[1]) if length else 0)
        assert await asyncio.wait_for(reader.read(), 10) == b""  # and then it has not


async def test_an_address_has_its_share_of_connections() -> None:
    limits = Limits(body_seconds=30, connections=3)
    async with listening(limits) as settings, connected(settings, 3) as opened:
        for _, writer in opened:
            writer.write(busy(settings))
        await asyncio.sleep(0.3)
        async with connected(settings, 1) as [(reader, _)]:
            with suppress(ConnectionResetError):
                assert await cut_off(reader)
        opened[0][1].close()
        await asyncio.sleep(0.2)
        assert await is_served(settings)


async def test_who_says_nothing_gives_way_at_once() -> None:
    """Before its time is over: half-open connections cannot lock out others of the address."""
    limits = Limits(header_seconds=60, connections=3)
    async with listening(limits) as settings, connected(settings, 3) as opened:
        opened[0][1].write(HALF)
        await asyncio.sleep(0.2)
        for _ in range(3):
            assert await is_served(settings)
        with suppress(ConnectionResetError):
            assert await cut_off(opened[0][0])


async def connect(client: httpx2.AsyncClient, settings: HttpSettings) -> httpx2.Response:
    return await client.post(settings.url, json=INITIALIZE, headers=ACCEPT, timeout=20)


async def test_clients_that_connect_and_stay_are_counted() -> None:
    async with listening(Limits(clients=2)) as settings, httpx2.AsyncClient() as client:
        first = await connect(client, settings)
        assert (first.status_code, (await connect(client, settings)).status_code) == (200, 200)
        full = await connect(client, settings)
        assert (full.status_code, full.headers["retry-after"]) == (429, "1")
        left = {"mcp-session-id": first.headers["mcp-session-id"]}
        gone = await client.delete(settings.url, headers=left)
        assert gone.status_code == 200
        assert (await connect(client, settings)).status_code == 200


async def test_a_flood_of_initializes_is_stopped() -> None:
    async with listening(Limits(initializes=3)) as settings, httpx2.AsyncClient() as client:
        found = [(await connect(client, settings)).status_code for _ in range(5)]
        assert found == [200, 200, 200, 429, 429]
        known = {"mcp-session-id": "known"}
        ping = await client.post(settings.url, json={}, headers=known)
        assert ping.status_code != 429  # who is connected goes on


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("conections=3", "did you mean `connections`"),
        ("connections=-1", "`-1` is not a whole number above 0"),
        ("connections=1.5", "`1.5` is not a whole number above 0"),
        ("idle-seconds=nan", "`nan` is not a number of seconds above 0"),
        ("idle-seconds=inf", "`inf` is not a number of seconds above 0"),
        ("idle-seconds", "`` is not a number of seconds above 0"),
    ],
)
def test_a_limit_that_is_none_is_a_mistake(given: str, said: str) -> None:
    with pytest.raises(UserMistake) as caught:
        read_limits([given])
    assert said in str(caught.value)


def test_limits_are_read_and_bound_the_processes() -> None:
    limits = read_limits(["idle-seconds=5", "upstreams=10", "sessions=7"])
    assert (limits.idle_seconds, limits.upstreams) == (5.0, 10)
    assert [limits.sessions_with(upstreams) for upstreams in (0, 1, 3, 20)] == [7, 7, 3, 1]


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    limits = Limits(body_seconds=1.0, requests=1)
    # The client first: on a busy machine, making one takes as long as a body may.
    async with listening(limits) as settings, httpx2.AsyncClient() as client:
        await client.post(settings.url, json={}, timeout=20)
        async with connected(settings, 1) as [(_, writer)], asyncio.timeout(20):
            writer.write(busy(settings))
            await asyncio.sleep(0.1)
            answer = await client.post(settings.url, json={}, timeout=20)
            assert answer.status_code == 429
            while not await is_served(settings):
                await asyncio.sleep(0.1)


async def test_one_owner_displaces_only_itself() -> None:
    hub = bank_pool(most=10, most_of_one=3)
    mine = await hub.get("anna", "only")
    for number in range(8):
        await hub.get("flood", str(number))
    assert [seat.owner for seat in hub.live].count("flood") == 3
    assert mine in hub.live
    busy = [seat for seat in hub.live if seat.owner == "flood"]
    async with busy[0].using(), busy[1].using(), busy[2].using():
        with pytest.raises(RunEnded, match="retry later"):
            await hub.get("flood", "one more")
        assert await hub.get("ben", "first")
    await hub.close()


async def test_headers_that_do_not_end_are_cut_off_before_they_fill_the_memory() -> None:
    limits = Limits(header_seconds=20)
    async with listening(limits) as settings, connected(settings, 1) as [(reader, writer)]:
        writer.write(HALF + b"\r\nX-Long: ")
        with suppress(ConnectionError):
            for _ in range(200):
                writer.write(b"x" * 1000)
                await writer.drain()
        with suppress(ConnectionError):
            answer = await asyncio.wait_for(reader.read(), 10)
            assert not answer or answer.startswith(b"HTTP/1.1 400")
        assert await is_served(settings)


def chunked(settings: HttpSettings) -> bytes:
    """The head of a request whose body comes in chunks."""
    host = f"Host: 127.0.0.1:{settings.port}\r\n"
    kind = "Content-Type: application/json\r\nAccept: application/json, text/event-stream"
    head = f"{host}{kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
    return f"POST /mcp HTTP/1.1\r\n{head}".encode()


@pytest.mark.parametrize("endless", [b"X: y\r\n" * 1000, b"X" * 8000], ids=["lines", "one"])
async def test_lines_behind_a_body_do_not_fill_the_memory(endless: bytes) -> None:
    """Trailers come while the request is under way, and no header is waited for."""
    async with asyncio.timeout(60), listening(Limits()) as settings:
        _, writer = await asyncio.open_connection("127.0.0.1", settings.port)
        writer.write(chunked(settings) + b"1\r\n{\r\n0\r\n")
        sent = 0
        with suppress(ConnectionError):
            for _ in range(5000):
                writer.write(endless)
                await writer.drain()
                sent += len(endless)
        writer.close()
        assert await is_served(settings)
    assert sent < 5000 * len(endless)


async def test_a_body_in_many_chunks_is_read() -> None:
    async with asyncio.timeout(60), listening(Limits()) as settings:
        reader, writer = await asyncio.open_connection("127.0.0.1", settings.port)
        writer.write(chunked(settings))
        for part in (b'{"jsonrpc":"2.0","id":1,', b" " * 200_000, b'"method":"ping"}'):
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        writer.write(b"0\r\nX-Last: 1\r\n\r\n")
        await writer.drain()
        answer = await reader.readline()
        writer.close()
    assert answer.split()[1] in (b"200", b"400")
