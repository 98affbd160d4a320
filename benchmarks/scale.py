"""Large stores and many sessions: a regulator's question, audits, throughput.

    python benchmarks/scale.py records [--sessions 100000] [--stores sqlite postgres] [--json FILE]
    python benchmarks/scale.py audit [--sessions 100000] [--folder FOLDER] [--json FILE]
    python benchmarks/scale.py throughput [--steps 40] [--seconds 20] [--json FILE]

`records` fills stores with whole traces of recorded walks, seals them and times three commands
from start to end: `records actions` for the transfers above 1,000 of a quarter, `records verify
--without-events`, `records prove`. The best of `--rounds` runs counts. With `--folder` the stores
stay and are filled once. `audit` times `audit --all` on such a store by two processes.

`throughput` measures durable events per second of one session and of 200 at once, and requests of
200 clients to `sopilot serve --http --stateless` over PostgreSQL with their cost by process. It
fails where something is lost or the group is less than five times as quick.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg

from campaign import parts
from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, go_on
from mcp_load import under_load
from mcp_processes import SOPILOT, free_port, serving
from postgres_here import postgres_here
from sopilot.records.actions import Register
from sopilot.records.log import write_seals
from sopilot.records.sealing import seal_store
from sopilot.records.store import Batch, NewSession, Store
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.chain import Head, encode_line, genesis, seal_all
from sopilot.trace.events import Event, Start
from sopilot.trace.signing import generate_key, write_key
from sopilot.values.json import JSON

# --- a regulator's question -----------------------------------------------------------

MOST_SECONDS = 2.0
YEAR_BEGINS, YEAR = 1_767_225_600.0, 365 * 86_400.0
LEASE = {"owner": "bench", "lease_seconds": 60.0}


async def recorded() -> list[tuple[dict[str, JSON], list[Event]]]:
    """Metadata and events of a few sessions with transfers of different amounts."""
    walks = []
    for amount in (20, 400, 1500, 9000):
        store = MemoryStore()
        session = await open_session(
            store, COUNTER, tools=CountingTools(balance=10_000), clock=HandClock(0.0),
            handbook="counter", model="m", view="pg",
        )  # fmt: skip
        await session.operate(Start("transfer", {**ERRANDS["transfer"], "amount": amount}))
        await go_on(session)
        walks.append((dict(session.metadata), [sealed.event for sealed in session.events]))
    return walks


async def fill(store: Store, count: int) -> None:
    walks = await recorded()
    for number in range(count):
        metadata, events = walks[number % len(walks)]
        session_id = hashlib.sha256(str(number).encode()).hexdigest()[:32]
        now = YEAR_BEGINS + YEAR * number / count
        moved = [event._replace(at=event.at + now) for event in events]
        sealed = seal_all(moved, genesis(session_id))
        register = Register(COUNTER.changing)
        for event in moved:
            register.fold(event, event)
        rows = [entry.row() for entry in register.entries.values()]
        new = NewSession(session_id, metadata, COUNTER.texts if number == 0 else {})
        lease = await store.create(new, now=now, **LEASE)  # type: ignore[arg-type]
        start = Head(session_id, -1, genesis(session_id))
        head = Head(session_id, sealed[-1].event.seq, sealed[-1].hash)
        lines = [encode_line(event) for event in sealed]
        batch = Batch(start, head, sealed, lines, summary={"status": "completed"}, actions=rows)
        await store.append(lease, batch, now=now, lease_seconds=60.0)
        await store.release(lease)


def timed(rounds: int, spec: str, *arguments: str) -> tuple[float, Any]:
    """Seconds of the best run, and its JSON."""
    best, printed = float("inf"), ""
    for _ in range(rounds):
        began = time.perf_counter()
        done = subprocess.run(
            [*SOPILOT, *arguments],
            env={**os.environ, "SOPILOT_STORE": spec},
            capture_output=True,
            text=True,
        )
        best = min(best, time.perf_counter() - began)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        printed = done.stdout
    return round(best, 2), json.loads(printed)


async def prepare(store: Store, count: int, folder: Path) -> tuple[float, float]:
    began = time.perf_counter()
    await fill(store, count)
    filled = time.perf_counter()
    key = generate_key()
    write_key(key, folder / "seal.key")
    (folder / "seal.key.pub").write_text(key.public)
    sealing = await seal_store(store, key, at=YEAR_BEGINS + YEAR)
    (folder / "heads.jsonl").write_text(write_seals(sealing.entries, sealing.seal))
    done = time.perf_counter()
    await store.close()
    return round(filled - began, 1), round(done - filled, 1)


def filled_once(store: Store, count: int, folder: Path) -> tuple[float, float]:
    """Seconds to fill and to seal it, then or earlier."""
    done = folder / f"filled-{count}.json"
    if not done.exists():
        done.write_text(json.dumps(asyncio.run(prepare(store, count, folder))))
    filled, sealed = json.loads(done.read_text())
    return filled, sealed


def question(store: Store, spec: str, count: int, folder: Path, rounds: int) -> dict[str, Any]:
    filled, sealed = filled_once(store, count, folder)
    head = ("--head", str(folder / "heads.jsonl"))
    register, report = timed(
        rounds, spec, "records", "actions", "--from", "2026-07-01", "--to", "2026-09-30",
        "--action", "transfer", "--where", "amount>1000", "--columns", "amount", "--limit", "10",
        "--json",
    )  # fmt: skip
    key = ("--key", str(folder / "seal.key.pub"), "--without-events", "--json")
    verify, verified = timed(rounds, spec, "records", "verify", *head, *key)
    assert verified["sessions"] == count
    session = report["actions"][0]["session"]
    prove, _ = timed(rounds, spec, "records", "prove", session, *head)
    return {
        "sessions": count,
        "selected": report["selected"],
        "of": report["of"],
        "best of": rounds,
        "seconds": {"register": register, "verify": verify, "prove": prove},
        "seconds to fill": filled,
        "seconds to seal": sealed,
    }


def records(sessions: int, stores: list[str], rounds: int, folder: Path | None) -> dict[str, Any]:
    """Time three commands of a regulator on large stores."""
    figures: dict[str, Any] = {}
    with ExitStack() as stack:
        base = folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in stores:
            there = base / name
            there.mkdir(parents=True, exist_ok=True)
            if name == "sqlite":
                spec = f"sqlite:{there}/s.db"
                store: Store = SQLiteStore(there / "s.db", synchronous="NORMAL")
            else:
                place = None if folder is None else base / f"{name}-server"
                server = stack.enter_context(postgres_here(place))
                spec, store = server.dsn, PostgresStore(server.dsn)
            figures[name] = question(store, spec, sessions, there, rounds)
    slowest = max(max(row["seconds"].values()) for row in figures.values())
    return {"passed": slowest <= MOST_SECONDS, **figures}


# --- audits of a large store ----------------------------------------------------------

MOST_MINUTES = 10.0


def audit(sessions: int, folder: Path | None) -> dict[str, Any]:
    """Audit every session of a large store by two processes."""
    with ExitStack() as stack:
        base = folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        there = base / "sqlite"
        there.mkdir(parents=True, exist_ok=True)
        spec = f"sqlite:{there / 's.db'}"
        filled_once(SQLiteStore(there / "s.db", synchronous="NORMAL"), sessions, there)
        seconds, printed = timed(1, spec, "audit", "--all", "--json", "--workers", "2")
        report = printed["batch"]
        minutes = round(seconds / report["sessions"] * 1e5 / 60, 1)
        figures: dict[str, Any] = {
            "sessions": report["sessions"],
            "clean": report["clean"],
            "seconds": round(seconds, 1),
            "minutes_for_100000": minutes,
        }
    clean = report["clean"] == report["sessions"] == sessions
    return {"passed": clean and minutes <= MOST_MINUTES, **figures}


# --- throughput -----------------------------------------------------------------------

TOGETHER = 200
LEAST_RATIO = 5.0
"""How many times as many events per second 200 sessions with group commit must write."""
LEAST_REQUESTS = 100


async def events_a_second(store: Store, sessions: int, steps: int) -> dict[str, float]:
    opened = [await open_session(store, COUNTER, tools=CountingTools()) for _ in range(sessions)]

    async def talk(number: int) -> None:
        for _ in range(steps):
            await opened[number].user_said("hello")

    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*map(talk, range(sessions)))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    written = [len(await store.events(session.id)) - 1 for session in opened]
    return {
        "events_a_second": round(sessions * steps / wall),
        "cpu_microseconds": round(cpu / sessions / steps * 1e6),
        "lost": sum(steps - count for count in written),
    }


async def group_commit(store: Store, steps: int) -> dict[str, Any]:
    await events_a_second(store, 3, 5)  # warm
    alone = await events_a_second(store, 1, steps * 4)
    many = await events_a_second(store, TOGETHER, steps)
    ratio = many["events_a_second"] / alone["events_a_second"]
    return {"one": alone, str(TOGETHER): many, "ratio": round(ratio, 2)}


async def requests(dsn: str, seconds: float) -> dict[str, Any]:
    port = free_port()
    limits = ["connections=5000", "requests=5000", "sessions=5000", "sessions-of-one=5000",
              "clients=100000", "initializes=100000"]  # fmt: skip
    options = [part for limit in limits for part in ("--limit", limit)]
    command = [
        *SOPILOT, "serve", "bank", "--http", f"127.0.0.1:{port}",
        "--store", f"postgres:{dsn}", "--stateless", *options,
    ]  # fmt: skip
    with psycopg.connect(dsn) as db:
        row = db.execute("SHOW data_directory").fetchone()
    assert row is not None
    postgres = int((Path(row[0]) / "postmaster.pid").read_text().split()[0])
    call = {"name": "find_account", "arguments": {"username": "carla"}}
    with serving(command, port) as server:
        who = {"server": server.pid, "postgres": postgres}
        return await under_load(port, TOGETHER, seconds, call, who)


async def all_throughput(dsn: str, folder: Path, steps: int, seconds: float) -> dict[str, Any]:
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
    for store in (sqlite, postgres):
        await store.close()
    figures["requests"] = await requests(dsn, seconds)
    figures["load_average_after"] = round(os.getloadavg()[0], 1)
    return figures


def quick(figures: dict[str, Any]) -> bool:
    return (
        all(row["ratio"] >= LEAST_RATIO for row in figures["group_commit"].values())
        and figures["requests"]["requests_a_second"] >= LEAST_REQUESTS
    )


def throughput(steps: int, seconds: float) -> dict[str, Any]:
    """Measure events and requests per second on one machine."""
    with postgres_here() as server, tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(all_throughput(server.dsn, Path(folder), steps, seconds))
    groups = figures["group_commit"].values()
    lost = sum(row[who]["lost"] for row in groups for who in ("one", str(TOGETHER)))
    lost += figures["requests"]["lost"]
    return {"passed": not lost and quick(figures), **figures}


if __name__ == "__main__":
    large = {"sessions": 100_000, "folder": Path}
    parts(
        __doc__,
        records=(records, {**large, "stores": ["sqlite", "postgres"], "rounds": 3}),
        audit=(audit, large),
        throughput=(throughput, {"steps": 40, "seconds": 20.0}),
    )
