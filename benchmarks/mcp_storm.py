"""Many clients at once, all with the same request ids: none misrouted, none lost.

    python benchmarks/mcp_storm.py [--clients 200] [--requests 100000] [--json FILE]

Clients speak raw JSON-RPC over HTTP, so that every one of them counts its requests from 1.
Each call carries a mark of its client and its number; the answer must carry the same, and at
the end every session's trace must hold exactly its own client's calls, in order.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp_processes import ECHO, SOPILOT, free_port, process
from sopilot.integrations.mcp.content import SESSION_META
from sopilot.stores.sqlite import SQLiteStore

ACCEPT = {"accept": "application/json, text/event-stream"}


class Wire:
    """One kept-alive connection; as little HTTP as the measurement needs."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(
        self, body: dict[str, Any], headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        if self._reader is None or self._writer is None:
            opened = await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
            self._reader, self._writer = opened
        text = json.dumps(body).encode()
        lines = [
            "POST /mcp HTTP/1.1",
            f"host: 127.0.0.1:{self._port}",
            "content-type: application/json",
            f"content-length: {len(text)}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self._writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + text)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        given = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in head[1:])}
        if "content-length" in given:
            content = await self._reader.readexactly(int(given["content-length"]))
        elif given.get("transfer-encoding") == "chunked":
            content = b""
            while size := int(await self._reader.readline(), 16):
                content += await self._reader.readexactly(size)
                await self._reader.readline()
            await self._reader.readline()
        else:
            content = b""
        return int(head[0].split()[1]), given, content

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def payload(headers: dict[str, str], content: bytes) -> dict[str, Any]:
    """The JSON-RPC response of a POST, from JSON or from an event stream."""
    text = content.decode()
    if headers.get("content-type", "").startswith("text/event-stream"):
        text = [line[6:] for line in text.splitlines() if line.startswith("data: {")][-1]
    found: dict[str, Any] = json.loads(text)
    return found


class RawClient:
    def __init__(self, port: int, mark: str) -> None:
        self.wire, self.mark = Wire(port), mark
        self._headers = dict(ACCEPT)
        self.session_id = ""
        self.misrouted = 0
        self.lost = 0
        self.made = 0

    async def open(self) -> None:
        hello = {
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                       "clientInfo": {"name": self.mark, "version": "1"}},
        }  # fmt: skip
        status, headers, content = await self.wire.post(hello, self._headers)
        assert status == 200, content
        self._headers["mcp-session-id"] = headers["mcp-session-id"]
        version = payload(headers, content)["result"]["protocolVersion"]
        self._headers["mcp-protocol-version"] = version
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.wire.post(ready, self._headers)

    async def call(self, number: int) -> None:
        given = {"mark": self.mark, "number": number}
        request = {
            "jsonrpc": "2.0", "id": number, "method": "tools/call",
            "params": {"name": "echo", "arguments": given},
        }  # fmt: skip
        status, headers, content = await self.wire.post(request, self._headers)
        if status != 200:
            self.lost += 1
            return
        response = payload(headers, content)
        result = response.get("result", {})
        if response.get("id") != number or result.get("structuredContent") != given:
            self.misrouted += 1
            return
        session_id = result["_meta"][SESSION_META]
        if self.session_id and session_id != self.session_id:
            self.misrouted += 1
        self.session_id = session_id


async def storm(clients: int, requests: int, home: Path) -> dict[str, Any]:
    own = free_port()
    command = [*SOPILOT, "gateway", "--view", "pg",
        "--handbook", "bank", "--http", f"127.0.0.1:{own}",
        "--upstream",
               f"echo={shlex.join(ECHO)}", "--share-upstream"]  # fmt: skip
    each = requests // clients
    async with process(command, own, {"SOPILOT_HOME": str(home)}):
        everyone = [RawClient(own, f"client-{number}") for number in range(clients)]
        await asyncio.gather(*(one.open() for one in everyone))
        begun = time.perf_counter()

        async def work(one: RawClient) -> None:
            for number in range(1, each + 1):
                await one.call(number)
                one.made += 1

        done = [asyncio.create_task(work(one)) for one in everyone]
        while not all(task.done() for task in done):
            await asyncio.wait(done, timeout=30)
            made = sum(one.made for one in everyone)
            print(f"{time.perf_counter() - begun:.0f} s, {made} requests", flush=True)
        for task in done:
            task.result()
        seconds = time.perf_counter() - begun
        for one in everyone:
            one.wire.close()
    in_traces, foreign = await counted(home / "sessions.db", everyone)
    return {
        "clients": clients,
        "requests": each * clients,
        "seconds": round(seconds, 1),
        "requests_per_second": round(each * clients / seconds, 1),
        "lost": sum(one.lost for one in everyone),
        "misrouted": sum(one.misrouted for one in everyone),
        "sessions": len({one.session_id for one in everyone}),
        "calls_in_traces": in_traces,
        "calls_in_wrong_trace": foreign,
    }


async def counted(path: Path, everyone: list[RawClient]) -> tuple[int, int]:
    store = SQLiteStore(path)
    total = foreign = 0
    for one in everyone:
        numbers = []
        for sealed in await store.events(one.session_id):
            event = sealed.event
            if event.kind == "domain_result" and event.payload["ok"]:
                total += 1
                value = event.payload["value"]
                foreign += value["mark"] != one.mark
                numbers.append(value["number"])
        foreign += numbers != sorted(numbers)
    await store.close()
    return total, foreign


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    # Routing is on trial, not the disk: the store lies in memory where the system allows.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        figures = await storm(given.clients, given.requests, Path(folder))
    print(json.dumps(figures, indent=2))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")
    whole = figures["calls_in_traces"] == figures["requests"]
    wrong = figures["lost"] + figures["misrouted"] + figures["calls_in_wrong_trace"]
    return 0 if whole and not wrong and figures["sessions"] == figures["clients"] else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
