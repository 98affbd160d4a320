"""What register and log cost a step: the same walk with them and without, taking turns.

    python benchmarks/records_cost.py [--rounds 60] [--json FILE]

The walk is a transfer at the counter desk, from its start to the carried-out call: nine
operations of the machine and its domain calls, of which two change something. In memory
processor time counts, in a SQLite file (FULL) time on the wall. A round is a new session that
walks with both, or with neither; rounds of a pair follow each other, now one first and now the
other, and the ratio is the median of the pairs': a disk that is slow for a while, or whoever
else uses the machine, is slow for both. Without means that no event is folded, no row is
spelled or stored and no entry of the log written.

The log has an entry a session, which is part of its first step; its share is measured too, by
rounds that leave out nothing but the log.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from counter_desk import COUNTER, CountingTools, HandClock, walk
from sopilot.records.actions import Register
from sopilot.records.store import Store
from sopilot.session.opening import open_session
from sopilot.stores import sqlite as sqlite_store
from sopilot.stores.memory import MemoryRecords, MemoryStore
from sopilot.stores.sqlite import SQLiteStore

MOST = 1.1
WARMING = 3
"""Pairs that load everything and let the write-ahead log reach its size."""
WALKS = {"memory": 20, "sqlite": 5}


def without_log(stack: ExitStack) -> None:
    stack.enter_context(patch.object(MemoryRecords, "_add_entry", lambda *_: None))
    stack.enter_context(patch.object(sqlite_store, "add_entry", lambda *_: None))


def without_both(stack: ExitStack) -> None:
    without_log(stack)
    stack.enter_context(patch.object(Register, "fold", lambda *_: None))


async def one_round(store: Store, clock: Callable[[], float], walks: int) -> float:
    """Microseconds a step (an append), the first of which makes the session."""
    session = await open_session(store, COUNTER, tools=CountingTools(), clock=HandClock())
    before, began = session.head.seq, clock()
    for _ in range(walks):
        await walk(session, "transfer")
    taken = clock() - began
    await session.release()
    return taken / (session.head.seq - before) * 1e6


async def pairs(
    make: Callable[[], Store],
    clock: Callable[[], float],
    rounds: int,
    walks: int,
    leave_out: Callable[[ExitStack], None],
) -> list[tuple[float, float]]:
    """Microseconds a step with all of it and without what is left out."""
    found = []
    for number in range(-WARMING, rounds):
        taken = {}
        for whole in (True, False) if number % 2 else (False, True):
            with ExitStack() as stack:
                if not whole:
                    leave_out(stack)
                gc.collect()
                taken[whole] = await one_round(make(), clock, walks)
        if number >= 0:
            found.append((taken[True], taken[False]))
    return found


def measure(
    make: Callable[[], Store], clock: Callable[[], float], rounds: int, walks: int
) -> dict[str, float]:
    both = asyncio.run(pairs(make, clock, rounds, walks, without_both))
    log = asyncio.run(pairs(make, clock, rounds, walks, without_log))
    return {
        "with": round(statistics.median(one for one, _ in both), 2),
        "without": round(statistics.median(one for _, one in both), 2),
        "ratio": round(_ratio(both), 4),
        "ratio of the log alone": round(_ratio(log), 4),
    }


def _ratio(found: list[tuple[float, float]]) -> float:
    return statistics.median(whole / less for whole, less in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "s.db"
        kept = SQLiteStore(file)  # open over all rounds, as in a service
        stores: dict[str, tuple[Callable[[], Store], Callable[[], float]]] = {
            "memory": (MemoryStore, time.process_time),
            "sqlite": (lambda: kept, time.perf_counter),
        }
        measured = {
            name: measure(make, clock, given.rounds, WALKS[name])
            for name, (make, clock) in stores.items()
        }
        asyncio.run(kept.close())
    load = round(os.getloadavg()[0], 1)
    figures: dict[str, Any] = {**measured, "rounds": given.rounds, "load": load}
    print(json.dumps(figures, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    sys.exit(0 if all(one["ratio"] <= MOST for one in measured.values()) else 1)


if __name__ == "__main__":
    main()
