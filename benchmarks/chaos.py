"""Chaos under running sessions, on both stores: nothing acknowledged is lost or done twice.

    python benchmarks/chaos.py [--minutes 30] [--json evidence/chaos.json]

Rounds take turns until the time is over. On SQLite: workers are killed (as in `crash_storm.py`);
then the disk is full again and again. On PostgreSQL: the server is stopped as by a crash, and a
proxy on loopback cuts connections, or holds back what is sent and then cuts. Meanwhile clocks
jump by hours, forwards and backwards. After each round the store is held against what was
acknowledged: chains, hashes, cursors, irreversible calls.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from counter_desk import COUNTER
from crash_storm import lane
from crash_work import SETTINGS, Acknowledged, JournalTools, Judge, Tally, one_move
from postgres_here import PostgresHere, postgres_here
from sopilot.messages.errors import Conflict, LeaseLost, StoreUnavailable, UserMistake
from sopilot.records.store import Store
from sopilot.session.opening import open_session, resume_session
from sopilot.session.session import Session
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.sqlite import SQLiteStore

RUNNERS = 3
JUMPS = (-7200.0, -60.0, 60.0, 7200.0)
KILLS = 60


class JumpingClock:
    """The system's, but for what somebody did to it."""

    def __init__(self) -> None:
        self.offset = 0.0

    def now(self) -> float:
        return time.time() + self.offset


class Proxy:
    """TCP on loopback in front of a server's socket; connections can be cut, or held back."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._open: set[asyncio.StreamWriter] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(self._target)
        except OSError:
            writer.close()
            return
        self._open |= {writer, back}
        with suppress(asyncio.CancelledError):  # the round is over
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        self._open -= {writer, back}

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                await self._flows.wait()
                target.write(data)
                await target.drain()
        with suppress(OSError, RuntimeError):
            target.close()

    async def cut(self, held_seconds: float = 0.0) -> None:
        self._flows.clear()
        await asyncio.sleep(held_seconds)
        for one in tuple(self._open):
            one.transport.abort()
        self._flows.set()

    async def close(self) -> None:
        assert self._server is not None
        await self.cut()
        self._server.close()


async def run(
    store: Store, judge: Judge, journal: Path, source: random.Random, over: asyncio.Event,
    clock: JumpingClock,
) -> None:  # fmt: skip
    """Sessions one after the other. After a loss it goes on with the same object, or as a new
    process would, with the stored session."""
    tools = JournalTools(journal)
    session: Session | None = None
    left: str | None = None
    while not over.is_set():
        try:
            if session is None and left is not None:
                session = await resume_session(
                    store, left, tools=tools, programs=COUNTER, take_over=True, clock=clock
                )
            elif session is None:
                session = await open_session(
                    store, COUNTER, tools=tools, settings=SETTINGS, clock=clock
                )
                left = session.id
            assert session is not None
            judge.heard(Acknowledged.of(session))
            if not await one_move(session, source):
                await session.release()
                session = left = None
            await asyncio.sleep(0)
        except (LeaseLost, Conflict):
            # What was in doubt when the session was read again has been written since.
            session = None
        except UserMistake as mistake:
            # Read again after a loss, the session had the result of what was to be retried.
            if mistake.diagnostics[0].code != "unknown-call":
                raise
        except StoreUnavailable:
            await asyncio.sleep(0.01)
            if source.random() < 0.5:
                session = None


Fault = Callable[[random.Random], Awaitable[str]]


async def storm(
    open_store: Callable[[], Store], journal: Path, seed: int, seconds: float, fault: Fault
) -> tuple[Tally, Counter[str]]:
    source = random.Random(seed)
    judge = Judge(open_store(), journal)
    over, clock = asyncio.Event(), JumpingClock()
    stores = [open_store() for _ in range(RUNNERS)]
    runners = [
        asyncio.create_task(
            run(store, judge, journal, random.Random(source.getrandbits(32)), over, clock)
        )
        for store in stores
    ]
    did: Counter[str] = Counter()
    ends = time.monotonic() + seconds
    try:
        while time.monotonic() < ends:
            await asyncio.sleep(source.uniform(0.05, 0.4))
            if source.random() < 0.3:
                clock.offset += source.choice(JUMPS)
                did["clock jumps"] += 1
            did[await fault(source)] += 1
            for task in runners:
                if task.done():
                    task.result()
    finally:
        over.set()
        await asyncio.wait(runners, timeout=60)
    await judge.check()
    for store in stores:
        await store.close()
    await judge.close()
    for task in runners:
        task.result()
    return judge.finish(), did


async def on_postgres(
    server: PostgresHere, folder: Path, seed: int, seconds: float
) -> tuple[Tally, Counter[str]]:
    where = urlsplit(server.dsn)
    proxy = Proxy(f"{parse_qs(where.query)['host'][0]}/.s.PGSQL.5432")
    port = await proxy.start()
    who = where.username or "postgres"
    dsn = f"postgresql://{who}@127.0.0.1:{port}{where.path}?sslmode=disable"

    async def fault(source: random.Random) -> str:
        kind = source.random()
        if kind < 0.15:
            await asyncio.to_thread(server.stop_immediately)
            await asyncio.to_thread(server.start)
            return "stops of the server"
        held = source.uniform(0.0, 0.5) if kind < 0.5 else 0.0
        await proxy.cut(held)
        return "connections held back and cut" if held else "cuts of connections"

    try:
        return await storm(
            lambda: PostgresStore(dsn, schema=f"chaos_{seed}"), folder / f"pg-{seed}", seed,
            seconds, fault,
        )  # fmt: skip
    finally:
        await proxy.close()


async def on_a_full_disk(folder: Path, seed: int, seconds: float) -> tuple[Tally, Counter[str]]:
    """A file may not grow for a moment: what is written behind its end fails, as on a full
    disk."""
    path = folder / f"full-{seed}.db"

    async def fault(source: random.Random) -> str:
        grown = [one.stat().st_size for one in folder.glob(f"{path.name}*") if one.is_file()]
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (max([*grown, 4096]), hard))
        await asyncio.sleep(source.uniform(0.0, 0.2))
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        return "full disks"

    return await storm(
        lambda: SQLiteStore(path, busy_seconds=10), folder / f"journal-{seed}", seed, seconds, fault
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--round", type=float, default=20.0, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)  # the driver tells of every connection that is cut
    begun, seed = time.monotonic(), asked.seed
    tallies = {"sqlite": Tally(), "postgres": Tally()}
    did: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="sopilot-chaos-") as made, postgres_here() as server:
        folder = Path(made)
        while seed == asked.seed or time.monotonic() - begun < asked.minutes * 60:
            killed = lane(folder / f"lane-{seed}", KILLS, seed)
            did["kills"] += killed.crashes
            tallies["sqlite"].add(killed)
            for name, work in (
                ("sqlite", on_a_full_disk(folder, seed, asked.round)),
                ("postgres", on_postgres(server, folder, seed, asked.round)),
            ):
                tally, faults = asyncio.run(work)
                tallies[name].add(tally)
                did.update(faults)
            told = ", ".join(f"{count} {what}" for what, count in did.items())
            print(f"{time.monotonic() - begun:.0f} s: {told}", flush=True)
            seed += 1
    figures = report(tallies, did, time.monotonic() - begun)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
    sys.exit(1 if figures["faults"] else 0)


def report(tallies: dict[str, Tally], did: Counter[str], seconds: float) -> dict[str, Any]:
    stores = {name: one.as_json() for name, one in tallies.items()}
    for name, one in tallies.items():
        print(f"{name}: {one.events:,} events of {one.sessions:,} sessions, "
              f"{one.acknowledgements:,} acknowledgements, {one.irreversible_calls:,} irreversible "
              f"calls, {len(one.faults)} faults")  # fmt: skip
        for fault in one.faults[:10]:
            print(f"  {fault}")
    return {
        "minutes": round(seconds / 60, 1),
        "did": dict(did),
        "faults": sum(len(one.faults) for one in tallies.values()),
        **stores,
    }


if __name__ == "__main__":
    main()
