"""Many clients of an MCP server over HTTP, light enough to share two cores with it.

Each keeps one connection and reads and writes it by hand: a client library takes longer for a
request than the server does. What a request costs is told in time of the processor, by process.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import time
from collections.abc import Mapping
from typing import Any

ABOUT: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "load", "version": "1"},
}
_APART_SECONDS = 0.005
"""Clients come one after the other, as they do."""


class Client:
    """One connection, one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.session = ""

    async def connect(self) -> None:
        """Connect and initialize; retry if the server refuses."""
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self._port, limit=1 << 22
        )
        while True:
            status, headers, body = await self.post("initialize", ABOUT)
            self.session = headers.get("mcp-session-id", "")
            if status == 200:
                return
            print(status, body[:200])
            await asyncio.sleep(0.2)

    async def post(
        self, method: str, params: Mapping[str, Any], number: int = 0
    ) -> tuple[int, dict[str, str], bytes]:
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        data = json.dumps(body).encode()
        own = f"mcp-session-id: {self.session}\r\n" if self.session else ""
        head = (
            f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\n"
            "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
            f"{own}content-length: {len(data)}\r\n\r\n"
        )
        self._writer.write(head.encode() + data)
        read = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = read.lower().rstrip().split("\r\n")
        headers = {
            name: value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        if headers.get("transfer-encoding") == "chunked":
            answer = await self._reader.readuntil(b"\r\n0\r\n\r\n")
        else:
            answer = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return int(first.split()[1]), headers, answer

    def close(self) -> None:
        self._writer.close()


async def under_load(
    port: int,
    clients: int,
    seconds: float,
    call: Mapping[str, Any],
    processes: Mapping[str, int],
) -> dict[str, Any]:
    """Calls a second of this tool, once all are connected; an answer that does not name its
    client's session is a lost one. ``processes``: the roots of the trees whose time is told."""
    everybody = [Client(port) for _ in range(clients)]
    counts = {"answered": 0, "lost": 0}

    connected: list[Client] = []

    async def connect(number: int, client: Client) -> None:
        await asyncio.sleep(number * _APART_SECONDS)
        await client.connect()
        connected.append(client)
        while len(connected) < clients:
            # A connection that nobody uses is closed after a while.
            await asyncio.sleep(1)
            await client.post("ping", {})

    async def talk(client: Client, until: float) -> None:
        own = f'"sopilot/session":"{client.session}"'.encode() if client.session else b'"result"'
        number = 0
        while time.monotonic() < until:
            number += 1
            status, _, answer = await client.post("tools/call", call, number)
            whole = status == 200 and own in answer and f'"id":{number},'.encode() in answer
            counts["answered" if whole else "lost"] += 1

    await asyncio.gather(*(connect(number, client) for number, client in enumerate(everybody)))
    begun, before = time.monotonic(), _seconds_of(processes)
    await asyncio.gather(*(talk(client, begun + seconds) for client in everybody))
    spent, after = time.monotonic() - begun, _seconds_of(processes)
    for client in everybody:
        client.close()
    answered = max(1, counts["answered"])
    cost = {name: round((after[name] - before[name]) / answered * 1e6) for name in before}
    return {
        "clients": clients,
        **counts,
        "requests_a_second": round(counts["answered"] / spent),
        "cpu_microseconds_a_request": cost,
    }


def _seconds_of(processes: Mapping[str, int]) -> dict[str, float]:
    psutil = importlib.import_module("psutil")
    seconds = {"clients": time.process_time()}
    for name, root in processes.items():
        seconds[name] = 0.0
        process = psutil.Process(root)
        for each in (process, *process.children(recursive=True)):
            try:
                times = each.cpu_times()
                seconds[name] += times.user + times.system
            except psutil.NoSuchProcess:
                continue
    return seconds
