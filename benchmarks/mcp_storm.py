"""Many clients at once, all with the same request ids: none misrouted, none lost.

    python benchmarks/mcp_storm.py [--clients 200] [--requests 100000] [--json FILE]

Clients speak raw JSON-RPC over HTTP, so that every one of them counts its requests from 1.
Each call carries a mark of its client and its number; the answer must carry the same, and at
the end every session's trace must hold exactly its own client's calls, in order.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import tempfile
import time
from pathlib import Path
from typing import Any

from campaign import main
from mcp_load import Client
from mcp_processes import ECHO, echo_gateway, free_port, serving
from sopilot.integrations.mcp.content import SESSION_META
from sopilot.machine.replay import whole_events
from sopilot.stores.sqlite import SQLiteStore


class MarkedClient(Client):
    """A client whose calls carry its mark and their number."""

    def __init__(self, port: int, mark: str) -> None:
        super().__init__(port)
        self.mark, self.trace = mark, ""
        self.misrouted = self.lost = self.made = 0

    async def call(self, number: int) -> None:
        sent = {"mark": self.mark, "number": number}
        status, headers, content = await self.post(
            "tools/call", {"name": "echo", "arguments": sent}, number
        )
        if status != 200:
            self.lost += 1
            return
        response = payload(headers, content)
        result = response.get("result", {})
        if response.get("id") != number or result.get("structuredContent") != sent:
            self.misrouted += 1
            return
        session_id = result["_meta"][SESSION_META]
        self.misrouted += bool(self.trace) and session_id != self.trace
        self.trace = session_id


def payload(headers: dict[str, str], content: bytes) -> dict[str, Any]:
    """The JSON-RPC response of a POST, from JSON or from an event stream."""
    text = content.decode()
    if headers.get("content-type", "").startswith("text/event-stream"):
        text = [line[6:] for line in text.splitlines() if line.startswith("data: {")][-1]
    result: dict[str, Any] = json.loads(text)
    return result


async def storm(clients: int, requests: int, home: Path) -> dict[str, Any]:
    own = free_port()
    address = ("--http", f"127.0.0.1:{own}")
    command = echo_gateway(shlex.join(ECHO), *address, "--share-upstream")
    each = requests // clients
    with serving(command, own, home):
        everyone = [MarkedClient(own, f"client-{number}") for number in range(clients)]
        await asyncio.gather(*(client.connect() for client in everyone))
        begun = time.perf_counter()

        async def work(client: MarkedClient) -> None:
            for number in range(1, each + 1):
                await client.call(number)
                client.made += 1

        done = [asyncio.create_task(work(client)) for client in everyone]
        while not all(task.done() for task in done):
            await asyncio.wait(done, timeout=30)
            made = sum(client.made for client in everyone)
            print(f"{time.perf_counter() - begun:.0f} s, {made} requests", flush=True)
        for task in done:
            task.result()
        seconds = time.perf_counter() - begun
        for client in everyone:
            client.close()
    in_traces, foreign = await counted(home / "sessions.db", everyone)
    return {
        "clients": clients,
        "requests": each * clients,
        "seconds": round(seconds, 1),
        "requests_per_second": round(each * clients / seconds, 1),
        "lost": sum(client.lost for client in everyone),
        "misrouted": sum(client.misrouted for client in everyone),
        "sessions": len({client.trace for client in everyone}),
        "calls_in_traces": in_traces,
        "calls_in_wrong_trace": foreign,
    }


async def counted(path: Path, everyone: list[MarkedClient]) -> tuple[int, int]:
    store = SQLiteStore(path)
    total = foreign = 0
    for client in everyone:
        sealed, payloads = await store.events(client.trace), await store.payloads(client.trace)
        answers = [
            event.payload["value"]
            for event in whole_events(sealed, payloads)
            if event.kind == "domain_result" and event.payload["ok"]
        ]
        numbers = [answer["number"] for answer in answers]
        total += len(answers)
        foreign += sum(answer["mark"] != client.mark for answer in answers)
        foreign += numbers != sorted(numbers)
    await store.close()
    return total, foreign


def measure(clients: int, requests: int) -> dict[str, Any]:
    # Routing is on trial, not the disk: the store lies in memory where the system allows.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        figures = asyncio.run(storm(clients, requests, Path(folder)))
    whole = figures["calls_in_traces"] == figures["requests"]
    wrong = figures["lost"] + figures["misrouted"] + figures["calls_in_wrong_trace"]
    same = figures["sessions"] == figures["clients"]
    return {"passed": whole and same and not wrong, **figures}


if __name__ == "__main__":
    main(__doc__, measure, clients=200, requests=100_000)
