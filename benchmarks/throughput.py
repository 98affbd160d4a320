"""How much one machine carries: events a second alone and together, requests, audits.

    python benchmarks/throughput.py [--small] [--json FILE]

*Group commit*: events a second of one session, and of 200 at once, each durable when it is
acknowledged (SQLite FULL; PostgreSQL with synchronous commits). *Requests*: 200 clients of
`sopilot serve --http --stateless` over PostgreSQL, as many as it answers, no request lost; the
clients run on the same machine. The figures name the cost of a request for the server, for
PostgreSQL and for the clients, and the cost of the MCP library alone under the same clients.
*Audit*: sessions from a store, verified and judged, in one process. Exit 1 where something is lost
or the group is less than five times as quick; the other times are told, with the load, and are
the machine's.
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

import psycopg

from counter_desk import COUNTER, CountingTools, walk
from mcp_load import under_load, until_served
from mcp_processes import ECHO, free_port
from postgres_here import postgres_here
from sopilot.audit.audit import audit_trace
from sopilot.handbook.expressions import judge
from sopilot.records.loading import Traces
from sopilot.records.store import Store
from sopilot.session.opening import open_session
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.sqlite import SQLiteStore

TOGETHER = 200
LEAST_RATIO = 5.0
"""Of 200 sessions with group commit to one."""
LEAST_REQUESTS, MOST_AUDIT_MINUTES = 100, 10
ENTRY = "from sopilot.cli.main import main; main()"


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


async def requests(dsn: str, seconds: float) -> dict[str, Any]:
    port = free_port()
    limits = ["connections=5000", "requests=5000", "sessions=5000", "sessions-of-one=5000",
              "clients=100000", "initializes=100000"]  # fmt: skip
    options = [part for one in limits for part in ("--limit", one)]
    command = [
        sys.executable, "-c", ENTRY, "serve", "bank", "--http", f"127.0.0.1:{port}",
        "--store", f"postgres:{dsn}", "--stateless", *options,
    ]  # fmt: skip
    with psycopg.connect(dsn) as db:
        row = db.execute("SHOW data_directory").fetchone()
    assert row is not None
    postgres = int((Path(row[0]) / "postmaster.pid").read_text().split()[0])
    call = {"name": "find_account", "arguments": {"username": "carla"}}
    return await served(command, port, seconds, call, postgres=postgres)


async def library_alone(seconds: float) -> dict[str, Any]:
    """The MCP library itself with a constant answer, in one process: no session, no store."""
    port = free_port()
    command = [*ECHO, "--http", str(port), "--stateless"]
    call = {"name": "echo", "arguments": {"username": "x"}}
    return await served(command, port, seconds, call)


async def served(
    command: list[str],
    port: int,
    seconds: float,
    call: dict[str, Any],
    **beside: int,
) -> dict[str, Any]:
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        await until_served(port)
        who = {"server": server.pid, **beside}
        return await under_load(port, TOGETHER, seconds, call, who)
    finally:
        server.terminate()
        server.wait(30)


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
    figures["requests"] = await requests(dsn, seconds)
    figures["library_alone"] = await library_alone(seconds / 4)
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
    lost += figures["requests"]["lost"]
    sys.exit(0 if not lost and (given.small or _quick(figures)) else 1)


def _quick(figures: dict[str, Any]) -> bool:
    return (
        all(one["ratio"] >= LEAST_RATIO for one in figures["group_commit"].values())
        and figures["requests"]["requests_a_second"] >= LEAST_REQUESTS
        and figures["audit"]["minutes_for_100000_on_two_cores"] <= MOST_AUDIT_MINUTES
    )


if __name__ == "__main__":
    main()
