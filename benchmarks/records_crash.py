"""Crashes between trace, register, log and journals: after the next start they agree.

    python benchmarks/crashes.py records [--points 1000] [--seed 1] [--json FILE]

The same work (sessions, a journal, a sealing) is begun anew for every point and broken off before
the n-th statement that reaches the database; what a killed process leaves (the file and its
write-ahead log as they are at that moment) is opened elsewhere. There every session must verify,
its rows in the register must be those that its trace makes, it must stand in the log, the log
must have no hole, the last sealed head must hold, and work must go on.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, walk, wander
from sopilot.records.journal import entries, write
from sopilot.records.loading import Traces
from sopilot.records.log import NO_ACTIONS, SealFile, digest_of
from sopilot.records.sealing import seal_store, verify_store
from sopilot.records.store import Store
from sopilot.session.opening import open_session
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.signing import generate_key

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


async def work(store: Store, seed: int) -> None:
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
                asyncio.run(work(store, seed))
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


def campaign(points: int, seed: int) -> dict[str, object]:
    """Break off before every statement of the database; trace, register and log must agree."""
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
