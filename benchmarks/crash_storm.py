"""Crashes at random points of running sessions: nothing acknowledged is lost or done twice.

    python benchmarks/crash_storm.py [--kills 10000] [--stops 500] [--json FILE]

Workers run sessions on a SQLite store, go on with what an earlier crash left, and
acknowledge every operation that returned through a pipe. They are killed with
SIGKILL at random moments, two at work on each store. PostgreSQL is stopped with
`pg_ctl -m immediate` under running sessions. What the crashes left is checked:
chains hold, every acknowledged event is there with its hash, replay stands at the
acknowledged configuration, no trace was forked, and no irreversible call was
carried out twice or before it was recorded.

A killed process leaves its page cache behind: this shows atomicity and order, not
survival of a power cut.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from counter_desk import COUNTER
from crash_stops import postgres_stops
from crash_work import SETTINGS, Acknowledged, JournalTools, Judge, Tally, one_move
from sopilot.records.store import Store
from sopilot.session.opening import open_session, resume_session
from sopilot.session.session import Session
from sopilot.stores.sqlite import SQLiteStore

WORKERS = 2
"""On one store, at the same time."""


async def work(path: Path, journal: Path, name: str, seed: int) -> None:
    """Runs until killed. A line on the pipe acknowledges what the store has promised."""
    store = SQLiteStore(path, busy_seconds=30)
    tools = JournalTools(journal)
    source = random.Random(seed)
    while True:
        session = await _session(store, tools, name)
        os.write(3, Acknowledged.of(session).line())
        while await one_move(session, source):
            os.write(3, Acknowledged.of(session).line())
        await session.release()


async def _session(store: Store, tools: JournalTools, name: str) -> Session:
    """What this worker's predecessor left, or a new one."""
    for record in await store.sessions(limit=2 * WORKERS):
        if record.metadata["extra"]["worker"] == name and record.owner:
            return await resume_session(
                store, record.id, tools=tools, programs=COUNTER, take_over=True
            )
    return await open_session(
        store, COUNTER, tools=tools, settings=SETTINGS, extra={"worker": name}
    )


class Worker:
    """A forked process: starting one costs milliseconds, since everything is imported."""

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
        while True:
            try:
                more = os.read(self._pipe, 65536)
            except BlockingIOError:
                break
            if not more:
                break
            self._text += more
        *whole, self._text = self._text.split(b"\n")
        found = []
        for line in whole:
            session_id, seq, sealed, digest = line.decode().split()
            found.append(Acknowledged(session_id, int(seq), sealed, digest))
        return found

    def kill(self) -> list[Acknowledged]:
        """SIGKILL, then what it had acknowledged. A worker that was dead already is a fault."""
        if os.waitpid(self._pid, os.WNOHANG) != (0, 0):
            raise RuntimeError("a worker died before it was killed")
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        heard = self.read()
        os.close(self._pipe)
        return heard


def lane(folder: Path, kills: int, seed: int) -> Tally:
    """Kills on one store. The store is checked every few kills, with workers running, and at
    the end; in between the next worker meets the files exactly as the crash left them."""
    folder.mkdir(parents=True)
    source = random.Random(seed)
    names = [f"w{number}" for number in range(WORKERS)]
    workers = {name: Worker(folder, name, source.getrandbits(32)) for name in names}
    heard: list[Acknowledged] = []
    tally = Tally()
    judge = Judge(SQLiteStore(folder / "sessions.db", busy_seconds=30), folder / "journal")
    for number in range(kills):
        # Some die while opening, most in the middle of an operation.
        time.sleep(source.uniform(0.0, 0.004) if source.random() < 0.2 else source.uniform(0, 0.05))
        name = source.choice(names)
        heard.extend(workers[name].kill())
        workers[name] = Worker(folder, name, source.getrandbits(32))
        for other in workers.values():
            heard.extend(other.read())
        if number % 25 == 24 or number == kills - 1:
            if number == kills - 1:
                for worker in workers.values():
                    heard.extend(worker.kill())
                tally.crashes += len(workers)
            heard = _judged(judge, heard)
    tally.crashes += kills
    tally.add(judge.finish())
    return tally


def _judged(judge: Judge, heard: list[Acknowledged]) -> list[Acknowledged]:
    for one in heard:
        judge.heard(one)

    async def check() -> None:
        await judge.check()
        # No connection may live through the next fork.
        await judge.close()

    asyncio.run(check())
    return []


def sqlite_kills(kills: int, seed: int, folder: Path, lanes: int) -> Tally:
    source = random.Random(seed)
    shares = [kills // lanes + (number < kills % lanes) for number in range(lanes)]
    tasks = [
        (folder / f"lane{number}", share, source.getrandbits(32))
        for number, share in enumerate(shares)
    ]
    tally = Tally()
    with multiprocessing.get_context("fork").Pool(lanes) as pool:
        for one in pool.starmap(lane, tasks):
            tally.add(one)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--stops", type=int, default=500)
    parser.add_argument("--lanes", type=int, default=4, help="stores at the same time")
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sopilot-crashes-"))
    report: dict[str, object] = {"command": " ".join(["crash_storm.py", *sys.argv[1:]])}
    failed = False
    try:
        for name, count in (("sqlite", options.kills), ("postgres", options.stops)):
            if not count:
                continue
            begun = time.monotonic()
            if name == "sqlite":
                tally = sqlite_kills(count, options.seed, folder, options.lanes)
            else:
                tally = postgres_stops(count, options.seed, folder)
            seconds = round(time.monotonic() - begun, 1)
            report[name] = {**tally.as_json(), "seconds": seconds}
            failed = failed or bool(tally.faults) or tally.crashes < count
            print(f"{name}: {json.dumps(report[name])}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
