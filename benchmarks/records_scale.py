"""A regulator's question on a large store: three commands, each as a process of its own.

    python benchmarks/records_scale.py [--sessions 100000] [--stores sqlite postgres]
        [--folder FOLDER] [--json FILE]

Sessions are written through the store's own interface, each with a whole trace of its own (one
of a few recorded walks, sealed under the session's id and at its own time). Then the store is
sealed, and the commands are timed from start to end: `register` for the transfers above 1,000
of a quarter, `verify --without-events` against the sealed head, `prove` for one of them. The
best of three runs counts, or of as many as the variable ROUNDS says. In a FOLDER the stores
stay, and are filled once. On a machine with other work, `chrt -f 5` in front gives both cores to
the commands and the database server.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, go_on
from postgres_here import postgres_here
from sopilot.records.actions import Register
from sopilot.records.log import write_seals
from sopilot.records.sealing import seal_store
from sopilot.records.store import Batch, NewSession, Store
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.chain import Head, genesis, seal_all
from sopilot.trace.events import Event, Start
from sopilot.trace.signing import generate_key, write_key
from sopilot.values.json import JSON

MOST_SECONDS = 2.0
YEAR_BEGINS, YEAR = 1_767_225_600.0, 365 * 86_400.0
ROUNDS = int(os.environ.get("ROUNDS", "3"))
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
        batch = Batch(start, sealed, summary={"status": "completed"}, actions=rows)
        await store.append(lease, batch, now=now, lease_seconds=60.0)
        await store.release(lease)


def timed(spec: str, *arguments: str) -> tuple[float, str]:
    best, printed = float("inf"), ""
    for _ in range(ROUNDS):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "sopilot.cli.main", *arguments],
            env={**os.environ, "SOPILOT_STORE": spec},
            capture_output=True,
            text=True,
        )
        best = min(best, time.perf_counter() - began)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        printed = done.stdout
    return round(best, 2), printed


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


def measure(store: Store, spec: str, count: int, folder: Path) -> dict[str, object]:
    filled, sealed = filled_once(store, count, folder)
    head = ("--head", str(folder / "heads.jsonl"))
    register, answer = timed(
        spec, "records", "actions", "--from", "2026-07-01", "--to", "2026-09-30", "--action",
            "transfer",
        "--where", "amount>1000", "--columns", "amount", "--json", "--limit", "10",
    )  # fmt: skip
    found = json.loads(answer)
    one = found["actions"][0]["session"]
    verify, answer = timed(
        spec,
        "records",
        "verify",
        *head,
        "--key",
        str(folder / "seal.key.pub"),
        "--without-events",
        "--json",
    )
    assert json.loads(answer)["sessions"] == count
    prove, _ = timed(spec, "records", "prove", one, *head)
    return {
        "sessions": count,
        "selected": found["selected"],
        "of": found["of"],
        "best of": ROUNDS,
        "seconds": {"register": register, "verify": verify, "prove": prove},
        "seconds to fill": filled,
        "seconds to seal": sealed,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--stores", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--folder", type=Path, help="keep the stores there")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    figures: dict[str, dict[str, object]] = {}
    with ExitStack() as stack:
        for name in given.stores:
            if given.folder is None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            else:
                folder = given.folder / name
                folder.mkdir(parents=True, exist_ok=True)
            if name == "sqlite":
                spec = f"sqlite:{folder}/s.db"
                store: Store = SQLiteStore(folder / "s.db", synchronous="NORMAL")
            else:
                kept = None if given.folder is None else given.folder / f"{name}-server"
                server = stack.enter_context(postgres_here(kept))
                spec, store = server.dsn, PostgresStore(server.dsn)
            figures[name] = measure(store, spec, given.sessions, folder)
            print(json.dumps({name: figures[name]}), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    slow = [
        taken
        for one in figures.values()
        for taken in one["seconds"].values()  # type: ignore[attr-defined]
        if taken > MOST_SECONDS
    ]
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
