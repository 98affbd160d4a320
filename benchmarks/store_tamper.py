"""Manipulations of a whole store: every one is found against the last sealed head.

    python benchmarks/store_tamper.py [--manipulations 100000] [--seconds 0] [--json FILE]

The manipulator writes whatever it likes into the store's tables, hashes included, and has not
the sealing key. Sessions are deleted (with their log entries, renumbered, or not), inserted,
reordered, exchanged, cut, written anew with correct hashes, the log is truncated or written
anew whole, an older copy is restored, rows of the register are dropped or altered, and so are
payloads, programs and what the store says a session is about; events are deleted as if
somebody had pruned them, contents as if they were under a key. Each manipulation is made in a
transaction that is taken back afterwards. One that leaves every byte of every table as it was
is none, and is not counted: that is seen before anything is verified. It counts as found when
`verify_store` reports a gap, and as named when a session that was touched is named.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from counter_desk import COUNTER, CountingTools, HandClock, wander
from sopilot.records.journal import write
from sopilot.records.log import SealFile, read_seals, write_seals
from sopilot.records.sealing import seal_store, verify_store
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.signing import generate_key
from store_manipulations import MANIPULATIONS, bytes_of


async def prepare(folder: Path, source: random.Random) -> tuple[SQLiteStore, SealFile, str]:
    """Sessions, a seal, an old copy; more sessions, and the seal that counts."""
    key, settings = generate_key(), Settings(by_reference=frozenset({"arguments"}))
    store = SQLiteStore(folder / "store.db", synchronous="NORMAL")
    text = ""
    for count in (3, 2):
        for _ in range(count):
            session = await open_session(
                store, COUNTER, tools=CountingTools(), clock=HandClock(), settings=settings,
                handbook="counter", model="m", view="pg", requester="una",
            )  # fmt: skip
            await wander(session, source, 9)
            await session.release()
        await write(store, "people", "demanded", {"what": "x", "on": True}, clock=HandClock())
        await write(store, "privacy", "columns_named", {"columns": []}, clock=HandClock())
        sealing = await seal_store(store, key, at=5.0)
        if count == 3:
            db = (await store.driver.open()).connection
            with sqlite3.connect(folder / "old.db") as old:
                db.backup(old)
            old.close()
        before = len(read_seals(text).lines) if text else 0
        text += write_seals(sealing.entries[before:], sealing.seal)
    return store, read_seals(text), key.public


def in_memory() -> str | None:
    """A folder that no disk is behind, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


async def campaign(manipulations: int, seconds: float, seed: int) -> dict[str, object]:
    source = random.Random(seed)
    made: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    unnamed: Counter[str] = Counter()
    unchanged: Counter[str] = Counter()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=in_memory()) as folder:
        store, seals, key = await prepare(Path(folder), source)
        assert (await verify_store(store, seals, [key])).complete
        db = (await store.driver.open()).connection
        db.execute("ATTACH ? AS old", (str(Path(folder) / "old.db"),))
        names, whole = list(MANIPULATIONS), bytes_of(db)
        for number in itertools.count():
            if sum(made.values()) == manipulations:
                break
            if seconds and time.monotonic() - begun > seconds:
                break
            name = names[number % len(names)]
            db.execute("BEGIN")
            try:
                touched = MANIPULATIONS[name](db, source)
                if bytes_of(db) == whole:
                    unchanged[name] += 1
                    continue
                made[name] += 1
                found = await verify_store(store, seals, [key])
            finally:
                db.execute("ROLLBACK")
            if found.complete:
                missed[name] += 1
            elif touched and not touched & {gap.session_id for gap in found.gaps}:
                unnamed[name] += 1
        assert (await verify_store(store, seals, [key])).complete
        await store.close()
    return {
        "manipulations": sum(made.values()),
        "missed": sum(missed.values()),
        "unnamed": sum(unnamed.values()),
        "by kind": dict(made),
        "changed nothing, not counted": dict(unchanged),
        "missed by kind": dict(missed),
        "unnamed by kind": dict(unnamed),
        "seconds": round(time.monotonic() - begun, 1),
        "seed": seed,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--manipulations", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after this long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    figures = asyncio.run(campaign(given.manipulations, given.seconds, given.seed))
    print(json.dumps(figures, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if figures["missed"] or figures["unnamed"] else 0)


if __name__ == "__main__":
    main()
