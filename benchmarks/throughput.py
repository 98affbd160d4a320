"""How much one machine carries: events a second alone and together, requests, audits.

    python benchmarks/throughput.py [--small] [--json FILE]

*Group commit*: events a second of one session, and of 200 at once, each durable when it is
acknowledged (SQLite FULL; PostgreSQL with synchronous commits). *Requests*: 200 clients of
`sopilot mcp --http --stateless` over PostgreSQL with one worker and with two, as many as they
answer, no request lost; the clients run on the same machine. *Audit*: sessions from a store,
verified and judged, in one process. Exit 1 where something is lost or the group is less than
five times as quick; the other times are told, with the load, and are the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2

from counter_desk import COUNTER, CountingTools, walk
from mcp_processes import free_port
from postgres_here import postgres_here
from sopilot.adapters.postgres_store import PostgresStore
from sopilot.adapters.sqlite_store import SQLiteStore
from sopilot.language.handbook.cel import judge
from sopilot.runtime.audit import audit_trace
from sopilot.runtime.session import Store, open_session
from sopilot.runtime.session.registers import Traces

TOGETHER = 200
LEAST_RATIO = 5.0
"""Of 200 sessions with group commit to one."""
LEAST_OF_TWO_WORKERS, LEAST_REQUESTS, MOST_AUDIT_MINUTES = 1.7, 1000, 10
ENTRY = "from sopilot.doors.cli.main import main; main()"
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


async def events_a_second(store: Store, sessions: int, steps: int) -> dict[str, float]:
    opened = [await open_session(store, COUNTER, tools=CountingTools()) for _ in range(sessions)]

    async def talk(number: int) -> None:
        for _ in range(steps):
            await opened[number].user_said("hello")

    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*map(talk, range(sessions)))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    written = [len(await store.events(one.id)) - 1 for one in opened]
    return {
        "events_a_second": round(sessions * steps / wall),
        "cpu_microseconds": round(cpu / sessions / steps * 1e6),
        "lost": sum(steps - one for one in written),
    }


async def group_commit(store: Store, steps: int) -> dict[str, Any]:
    await events_a_second(store, 3, 5)  # warm
    one = await events_a_second(store, 1, steps * 4)
    many = await events_a_second(store, TOGETHER, steps)
    ratio = many["events_a_second"] / one["events_a_second"]
    return {"one": one, str(TOGETHER): many, "ratio": round(ratio, 2)}


def body(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def client(http: httpx2.AsyncClient, url: str, until: float, counts: dict[str, int]) -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    about["clientInfo"] = {"name": "throughput", "version": "1"}
    while True:
        answer = await http.post(url, json=body(0, "initialize", **about), headers=HEADERS)
        if "mcp-session-id" in answer.headers:
            break
        counts["refused"] += 1  # said so: nothing is lost
        print(answer.status_code, answer.text[:200], file=sys.stderr)
        await asyncio.sleep(0.2)
    headers = {**HEADERS, "mcp-session-id": answer.headers["mcp-session-id"]}
    number = 0
    while time.monotonic() < until:
        number += 1
        wanted = {"name": "find_account", "arguments": {"username": "carla"}}
        answer = await http.post(url, json=body(number, "tools/call", **wanted), headers=headers)
        own = f'"sopilot/session":"{headers["mcp-session-id"]}"' in answer.text
        counts["answered" if answer.status_code == 200 and own else "lost"] += 1


async def requests(dsn: str, workers: int, seconds: float) -> dict[str, Any]:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    limits = ["connections=5000", "requests=5000", "sessions=5000", "sessions-of-one=5000",
              "clients=100000", "initializes=100000"]  # fmt: skip
    options = [part for one in limits for part in ("--limit", one)]
    server = subprocess.Popen(
        [sys.executable, "-c", ENTRY, "mcp", "bank-desk", "--http", f"127.0.0.1:{port}",
         "--store", f"postgres:{dsn}", "--stateless", "--workers", str(workers), *options],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    counts = {"answered": 0, "lost": 0, "refused": 0}
    try:
        async with httpx2.AsyncClient(
            timeout=120, limits=httpx2.Limits(max_connections=TOGETHER)
        ) as http:
            await _until_served(port)
            begun = time.monotonic()
            until = begun + seconds
            await asyncio.gather(*(client(http, url, until, counts) for _ in range(TOGETHER)))
            spent = time.monotonic() - begun
    finally:
        server.terminate()
        server.wait(30)
    rate = round(counts["answered"] / spent)
    return {"workers": workers, "clients": TOGETHER, **counts, "requests_a_second": rate}


async def _until_served(port: int) -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.1)
    raise RuntimeError("the server does not answer")


async def audits(store: Store, sessions: int) -> dict[str, Any]:
    for _ in range(sessions):
        session = await open_session(store, COUNTER, tools=CountingTools())
        await walk(session, "transfer")
        await session.release()
    traces, findings = Traces(store), 0
    heads = [one for one in await store.records.heads() if not one.session_id.startswith("journal")]
    cpu, wall = time.process_time(), time.perf_counter()
    for head in heads:
        loaded = await traces.loaded(head.session_id)
        report = audit_trace(
            loaded.first.programs, loaded.whole, session_id=head.session_id, judge=judge,
            head=loaded.record.head, chain=loaded.events,
        )  # fmt: skip
        findings += len(report.findings)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {
        "sessions": len(heads),
        "events_of_one": len(await store.events(heads[0].session_id)),
        "findings": findings,
        "cpu_milliseconds_each": round(cpu / len(heads) * 1000, 2),
        "minutes_for_100000_on_two_cores": round(wall / len(heads) * 1e5 / 60 / 2, 1),
    }


async def measure(dsn: str, folder: Path, small: bool) -> dict[str, Any]:
    steps, seconds = (5, 3.0) if small else (40, 20.0)
    sqlite = SQLiteStore(folder / "events.db")
    postgres = PostgresStore(dsn)
    await postgres.migrate()
    figures: dict[str, Any] = {
        "cores": os.cpu_count(),
        "load_average_before": round(os.getloadavg()[0], 1),
        "group_commit": {
            "sqlite": await group_commit(sqlite, steps),
            "postgresql": await group_commit(postgres, steps),
        },
    }
    archive = SQLiteStore(folder / "audits.db", synchronous="NORMAL")
    figures["audit"] = await audits(archive, 20 if small else 500)
    for store in (sqlite, postgres, archive):
        await store.close()
    served = [await requests(dsn, workers, seconds) for workers in (1, 2)]
    rates = [one["requests_a_second"] for one in served]
    figures["requests"] = served
    figures["two_workers_to_one"] = round(rates[1] / max(1, rates[0]), 2)
    figures["load_average_after"] = round(os.getloadavg()[0], 1)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true", help="that it works, in half a minute")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with postgres_here() as server, tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measure(server.dsn, Path(folder), given.small))
    print(json.dumps(figures, indent=2))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")
    groups = figures["group_commit"].values()
    lost = sum(one[who]["lost"] for one in groups for who in ("one", str(TOGETHER)))
    lost += sum(one["lost"] for one in figures["requests"])
    sys.exit(0 if not lost and (given.small or _quick(figures)) else 1)


def _quick(figures: dict[str, Any]) -> bool:
    return (
        all(one["ratio"] >= LEAST_RATIO for one in figures["group_commit"].values())
        and figures["two_workers_to_one"] >= LEAST_OF_TWO_WORKERS
        and max(one["requests_a_second"] for one in figures["requests"]) >= LEAST_REQUESTS
        and figures["audit"]["minutes_for_100000_on_two_cores"] <= MOST_AUDIT_MINUTES
    )


if __name__ == "__main__":
    main()
