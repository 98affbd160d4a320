"""One client cannot take the server from the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import httpx2

from sopilot.adapters.memory_store import MemoryStore
from sopilot.doors.mcp._http import HttpSettings, listen, serve_http
from sopilot.doors.mcp._limits import Limits
from sopilot.doors.mcp.building import source_service
from sopilot.doors.mcp.hub import Hub
from sopilot.doors.mcp.mcp_server import ProcedureServer
from sopilot.doors.sources import open_source
from sopilot.language.diagnostics import RunEnded
from sopilot.runtime.agent import arm_named

HALF = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1"


@asynccontextmanager
async def listening(limits: Limits) -> AsyncIterator[HttpSettings]:
    service = source_service(open_source("bank-desk"), arm_named("pg"))
    procedures = ProcedureServer(Hub(MemoryStore(), service))
    settings, sockets = listen(HttpSettings(port=0, limits=limits))
    serving = asyncio.create_task(serve_http(procedures, settings, sockets))
    try:
        yield settings
    finally:
        serving.cancel()
        await asyncio.wait({serving})
        for one in sockets:
            one.close()
        await procedures.close()


async def is_served(settings: HttpSettings) -> bool:
    async with httpx2.AsyncClient() as client:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        answer = await client.post(settings.url, json=ping, timeout=20)
        return answer.status_code in (200, 400, 406)


async def cut_off(reader: asyncio.StreamReader) -> bool:
    return await asyncio.wait_for(reader.read(1), 20) == b""


def test_half_a_request_is_cut_off_and_others_are_served() -> None:
    async def case() -> None:
        limits = Limits(header_seconds=0.5, connections=40)
        async with listening(limits) as settings:
            opened = [await asyncio.open_connection("127.0.0.1", settings.port) for _ in range(20)]
            for number, (_, writer) in enumerate(opened):
                writer.write(HALF if number % 2 else b"")
            assert await is_served(settings)
            assert all([await cut_off(reader) for reader, _ in opened])
            for _, writer in opened:
                writer.close()

    asyncio.run(case())


def test_an_address_has_its_share_of_connections() -> None:
    async def case() -> None:
        async with listening(Limits(header_seconds=30, connections=3)) as settings:
            opened = [await asyncio.open_connection("127.0.0.1", settings.port) for _ in range(3)]
            await asyncio.sleep(0.2)
            reader, writer = await asyncio.open_connection("127.0.0.1", settings.port)
            with suppress(ConnectionResetError):
                assert await cut_off(reader)
            writer.close()
            opened[0][1].close()
            await asyncio.sleep(0.2)
            assert await is_served(settings)
            for _, writer in opened:
                writer.close()

    asyncio.run(case())


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async def case() -> None:
        async with listening(Limits(body_seconds=0.3, requests=1)) as settings:
            _reader, writer = await asyncio.open_connection("127.0.0.1", settings.port)
            host = f"Host: 127.0.0.1:{settings.port}\r\n"
            head = "Content-Type: application/json\r\nAccept: application/json\r\n"
            writer.write(f"POST /mcp HTTP/1.1\r\n{host}{head}Content-Length: 90\r\n\r\n{{".encode())
            await asyncio.sleep(0.1)
            async with httpx2.AsyncClient() as client:
                answer = await client.post(settings.url, json={}, timeout=20)
                assert answer.status_code == 429
            await asyncio.sleep(1.5)
            assert await is_served(settings)
            writer.close()

    asyncio.run(case())


def test_one_owner_displaces_only_itself() -> None:
    async def case() -> None:
        service = source_service(open_source("bank-desk"), arm_named("pg"))
        hub = Hub(MemoryStore(), service, most_seats=10, most_of_one=3)
        mine = await hub.seat("anna", "only")
        for number in range(8):
            await hub.seat("flood", str(number))
        assert [seat.owner for seat in hub.seats].count("flood") == 3
        assert mine in hub.seats
        busy = [seat for seat in hub.seats if seat.owner == "flood"]
        async with busy[0].using(), busy[1].using(), busy[2].using():
            with pytest.raises(RunEnded, match="come back later"):
                await hub.seat("flood", "one more")
            assert await hub.seat("ben", "first")
        await hub.close()

    asyncio.run(case())


def test_limits_are_the_servers_own() -> None:
    settings = HttpSettings()
    assert replace(settings, port=1).limits is settings.limits
    assert HttpSettings().limits.connected is not settings.limits.connected
