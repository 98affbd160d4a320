"""What the register costs a step: the same walk with it and without, taking turns.

    python benchmarks/records_cost.py [--rounds 30] [--json FILE]

The walk is a transfer at the counter desk, from its start to the carried-out call: nine
operations of the machine and its domain calls, of which two change something. In memory
processor time counts, in a SQLite file (FULL) time on the wall; the best walk of each is
compared, because whoever else uses the machine only ever adds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from counter_desk import COUNTER, CountingTools, HandClock, walk
from sopilot.adapters.memory_store import MemoryStore
from sopilot.adapters.sqlite_store import SQLiteStore
from sopilot.runtime.records import Register
from sopilot.runtime.session import Store, open_session

MOST = 1.1
WALKS = 5


async def one_round(make: Callable[[], Store], clock: Callable[[], float]) -> float:
    """Microseconds a step (an append)."""
    store = make()
    session = await open_session(store, COUNTER, tools=CountingTools(), clock=HandClock())
    before, began = session.head.seq, clock()
    for _ in range(WALKS):
        await walk(session, "transfer")
    taken = clock() - began
    steps = session.head.seq - before
    await store.close()
    return taken / steps * 1e6


def measure(make: Callable[[], Store], clock: Callable[[], float], rounds: int) -> dict[str, float]:
    best = {"with": float("inf"), "without": float("inf")}
    for _ in range(rounds):
        best["with"] = min(best["with"], asyncio.run(one_round(make, clock)))
        with patch.object(Register, "fold", lambda self, event, stored: None):
            best["without"] = min(best["without"], asyncio.run(one_round(make, clock)))
    return {**{k: round(v, 2) for k, v in best.items()}, "ratio": best["with"] / best["without"]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "s.db"
        figures = {
            "memory": measure(MemoryStore, time.process_time, given.rounds),
            "sqlite": measure(lambda: SQLiteStore(file), time.perf_counter, given.rounds),
        }
    print(json.dumps(figures, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    sys.exit(0 if all(one["ratio"] <= MOST for one in figures.values()) else 1)


if __name__ == "__main__":
    main()
