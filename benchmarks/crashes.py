"""Crashes under running sessions: nothing acknowledged is lost or done twice.

    python benchmarks/crashes.py sessions [--kills 10000] [--stops 500] [--json FILE]
    python benchmarks/crashes.py chaos [--minutes 30] [--json FILE]
    python benchmarks/crashes.py records [--points 1000] [--json FILE]
    python benchmarks/crashes.py duels [--races 1000] [--json FILE]

`sessions` kills workers of SQLite stores with SIGKILL at random moments and stops PostgreSQL with
`pg_ctl -m immediate`. `chaos` takes turns until the time is over: kills, full disks, stops of
PostgreSQL, and a proxy that cuts or delays its connections, while clocks jump by hours. Afterwards
chains, acknowledged hashes, cursors and irreversible calls are checked (`crash_judge.py`).
`records` breaks off before every statement of the database; `duels` lets processes race for one
session.

A killed process leaves its page cache behind: this shows atomicity and order, not survival of a
power cut.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

from campaign import parts
from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, walk, wander
from crash_judge import SETTINGS, Acknowledged, JournalTools, Judge, Tally, one_move
from postgres_here import PostgresHere, postgres_here
from sopilot.messages.errors import (
    Conflict,
    LeaseHeld,
    LeaseLost,
    RunEnded,
    StoreUnavailable,
    UserMistake,
)
from sopilot.records.journal import entries, write
from sopilot.records.loading import Traces
from sopilot.records.log import NO_ACTIONS, SealFile, digest_of
from sopilot.records.sealing import seal_store, verify_store
from sopilot.records.store import Store
from sopilot.session.opening import open_session, resume_session
from sopilot.session.session import Session
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.chain import verify_chain
from sopilot.trace.signing import generate_key

WORKERS = 2
"""Processes at work on one SQLite store."""
RUNNERS = 4
"""Tasks at work on one store of a storm, each with its own connection."""
JUMPS = (-7200.0, -60.0, 60.0, 7200.0)
KILLS_PER_ROUND = 60


# --- SIGKILL on SQLite ----------------------------------------------------------------


async def work(path: Path, journal: Path, name: str, seed: int) -> None:
    """Run until killed. A line on the pipe acknowledges what the store has promised."""
    store = SQLiteStore(path, busy_seconds=30)
    tools = JournalTools(journal)
    source = random.Random(seed)
    while True:
        session = await own_session(store, tools, name)
        os.write(3, Acknowledged.of(session).line())
        while await one_move(session, source):
            os.write(3, Acknowledged.of(session).line())
        await session.release()


async def own_session(store: Store, tools: JournalTools, name: str) -> Session:
    """The session that this worker's predecessor left, or a new one."""
    for record in await store.sessions(limit=2 * WORKERS):
        if record.metadata["extra"]["worker"] == name and record.owner:
            return await resume_session(
                store, record.id, tools=tools, programs=COUNTER, take_over=True
            )
    return await open_session(
        store, COUNTER, tools=tools, settings=SETTINGS, extra={"worker": name}
    )


class Worker:
    """A forked process: starting it takes milliseconds, since everything is imported."""

    def __init__(self, folder: Path, name: str, seed: int) -> None:
        self._pipe, end = os.pipe()
        sys.stdout.flush()
        self._pid = os.fork()
        if self._pid == 0:
            os.dup2(end, 3)
            asyncio.run(work(folder / "sessions.db", folder / "journal", name, seed))
            os._exit(1)
        os.close(end)
        os.set_blocking(self._pipe, False)
        self._text = b""

    def read(self) -> list[Acknowledged]:
        with suppress(BlockingIOError):
            while more := os.read(self._pipe, 65536):
                self._text += more
        *whole, self._text = self._text.split(b"\n")
        return [Acknowledged.read(line) for line in whole]

    def kill(self) -> list[Acknowledged]:
        """Kill it; return what it had acknowledged. A worker that was dead already is a fault."""
        if os.waitpid(self._pid, os.WNOHANG) != (0, 0):
            raise RuntimeError("a worker died before it was killed")
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        heard = self.read()
        os.close(self._pipe)
        return heard


def lane(folder: Path, kills: int, seed: int) -> Tally:
    """Kills on one store. Every few kills, and at the end, the store is checked; in between the
    next worker meets the files exactly as the crash left them."""
    folder.mkdir(parents=True)
    source = random.Random(seed)
    names = [f"w{number}" for number in range(WORKERS)]
    workers = {name: Worker(folder, name, source.getrandbits(32)) for name in names}
    judge = Judge(SQLiteStore(folder / "sessions.db", busy_seconds=30), folder / "journal")
    heard: list[Acknowledged] = []

    async def check() -> None:
        for acknowledged in heard:
            judge.heard(acknowledged)
        heard.clear()
        await judge.check()
        await judge.close()  # no connection may live through the next fork

    for number in range(kills):
        # Some die while opening, most in the middle of an operation.
        time.sleep(source.uniform(0.0, 0.004) if source.random() < 0.2 else source.uniform(0, 0.05))
        name = source.choice(names)
        heard += workers[name].kill()
        workers[name] = Worker(folder, name, source.getrandbits(32))
        heard += [each for worker in workers.values() for each in worker.read()]
        if number % 25 == 24 and number != kills - 1:
            asyncio.run(check())
    heard += [each for worker in workers.values() for each in worker.kill()]
    asyncio.run(check())
    tally = judge.finish()
    tally.crashes += kills + len(workers)
    return tally


def sqlite_kills(kills: int, seed: int, folder: Path, lanes: int) -> Tally:
    source = random.Random(seed)
    tasks = [
        (folder / f"lane{number}", kills // lanes + (number < kills % lanes),
         source.getrandbits(32))
        for number in range(lanes)
    ]  # fmt: skip
    with multiprocessing.get_context("fork").Pool(lanes) as pool:
        return sum(pool.starmap(lane, tasks), Tally())


# --- faults under sessions of one process ---------------------------------------------


class JumpingClock:
    """The system's clock, plus an offset that the storm changes."""

    def __init__(self) -> None:
        self.offset = 0.0

    def now(self) -> float:
        return time.time() + self.offset


async def run_sessions(
    store: Store, judge: Judge, journal: Path, source: random.Random, over: asyncio.Event,
    clock: JumpingClock,
) -> None:  # fmt: skip
    """Run sessions one after the other. After a loss, continue with the same object, or with the
    stored session as a new process would."""
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
            session = None  # a write in doubt was made after the session was read again
        except UserMistake as mistake:
            # Read again after a loss, the session had the result of the call to retry.
            if mistake.diagnostics[0].code != "unknown-call":
                raise
        except StoreUnavailable:
            await asyncio.sleep(0.01)
            if source.random() < 0.5:
                session = None


Fault = Callable[[random.Random], Awaitable[str]]


async def storm(
    open_store: Callable[[], Store], journal: Path, seed: int, fault: Fault, *,
    seconds: float = 0.0, faults: int = 0, jumps: bool = True,
) -> tuple[Tally, Counter[str]]:  # fmt: skip
    """Faults under running sessions, for so many seconds or until there were so many."""
    source = random.Random(seed)
    judge = Judge(open_store(), journal)
    over, clock = asyncio.Event(), JumpingClock()
    stores = [open_store() for _ in range(RUNNERS)]
    runners = [
        asyncio.create_task(
            run_sessions(store, judge, journal, random.Random(source.getrandbits(32)), over, clock)
        )
        for store in stores
    ]
    did: Counter[str] = Counter()
    ends = time.monotonic() + seconds
    try:
        while (made := did.total() - did["clock jumps"]) < faults or time.monotonic() < ends:
            await work_going_on(judge)
            await asyncio.sleep(source.uniform(0.0, 0.3))
            if jumps and source.random() < 0.3:
                clock.offset += source.choice(JUMPS)
                did["clock jumps"] += 1
            did[await fault(source)] += 1
            if made % 10 == 9:
                await judge.check()
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
    tally = judge.finish()
    tally.crashes = did["stops of the server"]
    return tally, did


async def work_going_on(judge: Judge) -> None:
    """Wait for an acknowledgement: a fault before anybody reconnected would test nothing."""
    before = judge.tally.acknowledgements
    for _ in range(1000):
        if judge.tally.acknowledgements > before:
            return
        await asyncio.sleep(0.005)


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
        for writer in tuple(self._open):
            writer.transport.abort()
        self._flows.set()

    async def close(self) -> None:
        assert self._server is not None
        await self.cut()
        self._server.close()


async def stop_server(server: PostgresHere) -> str:
    await asyncio.to_thread(server.stop_immediately)
    await asyncio.to_thread(server.start)
    return "stops of the server"


async def behind_a_proxy(
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
            return await stop_server(server)
        held = source.uniform(0.0, 0.5) if kind < 0.5 else 0.0
        await proxy.cut(held)
        return "connections held back and cut" if held else "cuts of connections"

    try:
        return await storm(
            lambda: PostgresStore(dsn, schema=f"chaos_{seed}"), folder / f"pg-{seed}", seed, fault,
            seconds=seconds,
        )  # fmt: skip
    finally:
        await proxy.close()


async def on_a_full_disk(folder: Path, seed: int, seconds: float) -> tuple[Tally, Counter[str]]:
    """Files may not grow for a moment: a write behind the end fails, as on a full disk."""
    path = folder / f"full-{seed}.db"

    async def fault(source: random.Random) -> str:
        grown = [file.stat().st_size for file in folder.glob(f"{path.name}*") if file.is_file()]
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (max([*grown, 4096]), hard))
        await asyncio.sleep(source.uniform(0.0, 0.2))
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        return "full disks"

    return await storm(
        lambda: SQLiteStore(path, busy_seconds=10), folder / f"journal-{seed}", seed, fault,
        seconds=seconds,
    )  # fmt: skip


# --- kills and chaos ------------------------------------------------------------------


def sessions(kills: int, stops: int, lanes: int, seed: int) -> dict[str, Any]:
    """Kill workers of SQLite stores; stop PostgreSQL."""
    logging.disable(logging.WARNING)  # the driver reports every lost connection
    tallies: dict[str, Tally] = {}
    with tempfile.TemporaryDirectory(prefix="sopilot-crashes-") as scratch:
        folder = Path(scratch)
        if kills:
            tallies["sqlite"] = sqlite_kills(kills, seed, folder, lanes)
        if stops:
            with postgres_here() as server:
                storms = storm(
                    lambda: PostgresStore(server.dsn), folder / "postgres-journal", seed,
                    lambda _: stop_server(server), faults=stops, jumps=False,
                )  # fmt: skip
                tallies["postgres"] = asyncio.run(storms)[0]
    wanted = {"sqlite": kills, "postgres": stops}
    passed = all(not tally.faults and tally.crashes >= wanted[n] for n, tally in tallies.items())
    return {"passed": passed, **{name: tally.as_json() for name, tally in tallies.items()}}


def chaos(minutes: float, round_seconds: float, seed: int) -> dict[str, Any]:
    """Kills, full disks, stops, cut connections and jumping clocks, in turns."""
    logging.disable(logging.WARNING)
    begun, first = time.monotonic(), seed
    tallies = {"sqlite": Tally(), "postgres": Tally()}
    did: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="sopilot-chaos-") as made, postgres_here() as server:
        folder = Path(made)
        while seed == first or time.monotonic() - begun < minutes * 60:
            killed = lane(folder / f"lane-{seed}", KILLS_PER_ROUND, seed)
            did["kills"] += killed.crashes
            tallies["sqlite"] += killed
            for name, rounds in (
                ("sqlite", on_a_full_disk(folder, seed, round_seconds)),
                ("postgres", behind_a_proxy(server, folder, seed, round_seconds)),
            ):
                tally, faults = asyncio.run(rounds)
                tallies[name] += tally
                did.update(faults)
            print(f"{time.monotonic() - begun:.0f} s: {dict(did)}", flush=True)
            seed += 1
    faults = sum(len(tally.faults) for tally in tallies.values())
    return {
        "passed": not faults,
        "minutes": round((time.monotonic() - begun) / 60, 1),
        "did": dict(did),
        "faults": faults,
        **{name: tally.as_json() for name, tally in tallies.items()},
    }


# --- crashes between trace, register, log and journals --------------------------------

KEY = generate_key()


class Crash(BaseException):
    """Nothing catches it, as nothing catches a kill."""


class Counted(sqlite3.Connection):
    """Breaks off before the statement whose turn it is, and leaves a copy of the files."""

    made = 0
    crash_at = 0
    folder: Path
    left: Path

    def execute(self, *arguments: object) -> sqlite3.Cursor:
        cls = type(self)
        cls.made += 1
        if cls.made == cls.crash_at:
            for file in cls.folder.glob("s.db*"):
                shutil.copy(file, cls.left / file.name)
            raise Crash
        return super().execute(*arguments)  # type: ignore[arg-type]


async def recorded_work(store: Store, seed: int) -> None:
    source, clock = random.Random(seed), HandClock()
    for number in range(3):
        session = await open_session(
            store, COUNTER, tools=CountingTools(), clock=clock, session_id=f"s{number}"
        )
        await wander(session, source, 4)
        await walk(session, "transfer")
        await walk(session, "wire", stop_at_action="wire")
        await session.call_tool("wire", ERRANDS["wire"], "w")
        await session.decide("approve", "w", by="Ann", role="supervisor")
        await session.release()
        await write(store, "people", "demanded", {"what": "x", "on": bool(number)}, clock=clock)
        await seal_store(store, KEY, at=float(number))


async def disagreements(store: Store) -> list[str]:
    problems = []
    log = await store.records.log()
    if [entry.number for entry in log] != list(range(len(log))):
        problems.append("the log has a hole")
    traces, digests = Traces(store), await store.records.digests()
    for head in await store.records.heads():
        _, rows = await traces.rows(head.session_id)
        if digest_of(rows) != digests.get(head.session_id, NO_ACTIONS):
            problems.append(f"register and trace of {head.session_id} disagree")
        if head.session_id not in {entry.session_id for entry in log}:
            problems.append(f"{head.session_id} stands in no entry")
    await entries(store, "people")
    seals = await store.records.seals()
    if seals:
        verified = await verify_store(store, SealFile((seals[-1],)), [KEY.public])
        problems += [gap.message for gap in verified.gaps]
    await write(store, "people", "demanded", {"what": "x", "on": True}, clock=HandClock(1e9))
    await seal_store(store, KEY, at=9.0)
    return problems


def crashed(point: int, seed: int) -> tuple[bool, list[str]]:
    """Whether the work got that far, and what disagreed afterwards."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        Counted.made, Counted.crash_at = 0, point
        Counted.folder, Counted.left = Path(first), Path(second)
        connect = sqlite3.connect

        def counted(*arguments: object, **options: object) -> sqlite3.Connection:
            return connect(*arguments, factory=Counted, **options)  # type: ignore[call-overload, no-any-return]

        with patch("sopilot.stores.sqlite.sqlite3.connect", counted):
            store = SQLiteStore(Path(first) / "s.db", synchronous="NORMAL")
            try:
                asyncio.run(recorded_work(store, seed))
                return False, []
            except Crash:
                Counted.crash_at = 0
                with suppress(Crash):
                    asyncio.run(store.close())
        left = SQLiteStore(Path(second) / "s.db", synchronous="NORMAL")

        async def look() -> list[str]:
            try:
                return await disagreements(left)
            finally:
                await left.close()

        return True, asyncio.run(look())


def records(points: int, seed: int) -> dict[str, object]:
    """Break off before every statement of the database; trace, register and log must agree.

    The same work (sessions, a journal, a sealing) is begun anew for every point and broken off
    before the n-th statement. What a killed process leaves (the file and its write-ahead log as
    they are at that moment) is opened elsewhere. There every session must verify, its rows in the
    register must be those that its trace makes, it must stand in the log, the log must have no
    hole, the last sealed head must hold, and work must go on.
    """
    reached, wrong = 0, {}
    source = random.Random(seed)
    point = 1
    while reached < points:
        went, problems = crashed(point, seed)
        if not went:  # behind the end of the work: another walk
            seed, point = source.randrange(1 << 30), 1
            continue
        reached += 1
        if problems:
            wrong[f"{seed}:{point}"] = problems
        point += 1
    return {"passed": not wrong, "points": reached, "disagreed": len(wrong), "which": wrong}


# --- races for one session ------------------------------------------------------------

MOST_RESUMERS = 8
KINDS = ("released", "expired", "forced")


def resumer(path: Path, number: int, pipe: Connection, barrier: Barrier) -> None:
    asyncio.run(_resumer(path, number, pipe, barrier))


async def _resumer(path: Path, number: int, pipe: Connection, barrier: Barrier) -> None:
    store = SQLiteStore(path, busy_seconds=60)
    while True:
        order = pipe.recv()
        if order is None:
            return
        session_id, kind, now = order
        session: Session | None = None
        barrier.wait()
        if session_id:
            try:
                session = await resume_session(
                    store,
                    session_id,
                    clock=HandClock(now),
                    programs=COUNTER,
                    take_over=kind == "forced",
                    owner=f"resumer {number}",
                )
            except (LeaseHeld, LeaseLost) as problem:
                answer = type(problem).__name__
        barrier.wait()
        if session is not None:
            try:
                await session.note("mine", {"by": number})
                answer = "owner"
            except LeaseLost:
                answer = "fenced"
        pipe.send(answer if session_id else "idle")


async def race(
    store: SQLiteStore, kind: str, pipes: list[Connection], contenders: set[int]
) -> tuple[Counter[str], str]:
    """The answers, and what is wrong with the outcome."""
    clock = HandClock()
    session = await open_session(store, COUNTER, clock=clock)
    events = len(session.events)
    if kind == "released":
        await session.release()
    elif kind == "expired":
        clock.advance(session.settings.lease_seconds + 1)
    for number, pipe in enumerate(pipes):
        pipe.send((session.id if number in contenders else "", kind, clock.now()))
    answers = Counter(pipe.recv() for pipe in pipes)
    stored = await store.events(session.id)
    if answers["owner"] != 1:
        return answers, f"{answers['owner']} owners"
    if len(stored) != events + 1 or verify_chain(stored, session_id=session.id) is not None:
        return answers, "the trace is not the one owner's"
    if kind != "forced" and answers["LeaseHeld"] != len(contenders) - 1:
        return answers, f"others were not refused: {dict(answers)}"
    try:
        await session.user_said("I was the owner")
    except RunEnded:  # fenced off, or released before
        return answers, ""
    return answers, "the former owner could still write"


async def all_races(
    races: int, seed: int, path: Path, pipes: list[Connection]
) -> dict[str, object]:
    source = random.Random(seed)
    store = SQLiteStore(path, busy_seconds=60)
    faults: list[str] = []
    total: Counter[str] = Counter()
    sizes: Counter[int] = Counter()
    for number in range(races):
        size = 2 + number % (MOST_RESUMERS - 1)
        contenders = set(source.sample(range(MOST_RESUMERS), size))
        kind = KINDS[number % len(KINDS)]
        answers, fault = await race(store, kind, pipes, contenders)
        total.update(answers)
        sizes[size] += 1
        if fault:
            faults.append(f"race {number} ({kind}, {size}): {fault}")
    await store.close()
    return {
        "races": races,
        "contenders": dict(sorted(sizes.items())),
        "answers": dict(total),
        "one_owner": races - len(faults),
        "faults": faults[:20],
    }


def duels(races: int, seed: int) -> dict[str, object]:
    """Let 2 to 8 processes resume one session: exactly one becomes its owner.

    A released session is resumed by all of them at the same moment; then a session whose owner
    died, with an expired lease; then all take it over by force, where every one succeeds in turn
    and only the last may write. Each owner appends an event: a second writer would be seen as a
    second event or a broken chain.
    """
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(MOST_RESUMERS)
    pipes, processes = [], []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sopilot-duels-") as folder:
        path = Path(folder, "sessions.db")
        for number in range(MOST_RESUMERS):
            ours, theirs = context.Pipe()
            arguments = (path, number, theirs, barrier)
            process = context.Process(target=resumer, args=arguments, daemon=True)
            process.start()
            pipes.append(ours)
            processes.append(process)
        try:
            report = asyncio.run(all_races(races, seed, path, pipes))
            for pipe in pipes:
                pipe.send(None)
            for process in processes:
                process.join(10)
        finally:
            for process in processes:
                process.kill()
    passed = report["one_owner"] == races
    return {"passed": passed, **report, "seconds": round(time.monotonic() - begun, 1)}


if __name__ == "__main__":
    parts(
        __doc__,
        sessions=(sessions, {"kills": 10_000, "stops": 500, "lanes": 4, "seed": 27}),
        chaos=(chaos, {"minutes": 30.0, "round_seconds": 20.0, "seed": 1}),
        records=(records, {"points": 1000, "seed": 1}),
        duels=(duels, {"races": 1000, "seed": 27}),
    )
