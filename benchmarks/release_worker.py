"""Runs sessions on a store until it is killed, under whichever release is first on the path.

    python release_worker.py STORE JOURNAL NAME SEED

STORE is a file of SQLite, or a postgresql:// address. Says on stdout what the store has promised:
session, event, hash. Ends with 3 where the store is not for this release. A campaign starts it
with the source and the `benchmarks` folder of a release (`two_releases.py`).
"""

from __future__ import annotations

import asyncio
import random
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from counter_desk import COUNTER
from crash_work import SETTINGS, JournalTools, one_move
from sopilot.adapters.postgres_store import PostgresStore
from sopilot.adapters.sqlite_store import SQLiteStore

NEW = find_spec("sopilot.runtime") is not None
"""Else the release before, which was laid out otherwise."""
sessions: Any = import_module("sopilot.runtime.session" if NEW else "sopilot.session")
diagnostics: Any = import_module("sopilot.language.diagnostics" if NEW else "sopilot.diagnostics")
NOT_FOR_US = 3


async def work(where: str, journal: Path, name: str, seed: int) -> None:
    store: Any = PostgresStore(where) if "://" in where else SQLiteStore(Path(where))
    tools, source = JournalTools(journal), random.Random(seed)
    while True:
        try:
            session = await _session(store, tools, name)
            _promised(session)
            while await one_move(session, source):
                _promised(session)
            await session.release()
        except (sessions.LeaseLost, sessions.Conflict, sessions.StoreUnavailable):
            await asyncio.sleep(0.01)


async def _session(store: Any, tools: JournalTools, name: str) -> Any:
    """What this worker's predecessor left, under whichever release, or a new one."""
    for record in await store.sessions(limit=20):
        if record.metadata.get("extra", {}).get("worker") == name and record.owner:
            return await sessions.resume_session(store, record.id, tools=tools, take_over=True)
    return await sessions.open_session(
        store, COUNTER, tools=tools, settings=SETTINGS, extra={"worker": name}
    )


def _promised(session: Any) -> None:
    head = session.head
    sys.stdout.write(f"{session.id} {head.seq} {head.hash}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        asyncio.run(work(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
    except diagnostics.UserMistake as refused:
        sys.stderr.write(f"{refused}\n")
        sys.exit(NOT_FOR_US)
