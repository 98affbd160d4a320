"""Tampering with recorded traces and with whole stores: every change is detected.

    python benchmarks/tamper.py traces [--tamperings 100000] [--json FILE]
    python benchmarks/tamper.py store [--manipulations 100000] [--json FILE]

A tampering with a trace is made on the exported file or on its parts: a flipped bit, a deleted,
repeated or reordered event, events spliced in from another session, a whole trace
transplanted under another session's name, a tail cut off, the whole trace written
anew with correct hashes. It counts as detected when reading refuses the file or
verification against the chain and the heads signed earlier names a problem; a
change that leaves every byte as it was is not counted.

A manipulation of a store (`store_manipulations.py`) writes to its tables, hashes included, without
the sealing key, in a transaction that is rolled back afterwards. It is detected when
`verify_store` reports a gap against the last sealed head, and named when a touched session is
named.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from campaign import parts
from counter_desk import COUNTER, CountingTools, HandClock, wander
from sopilot.messages.errors import TraceError
from sopilot.records.journal import write
from sopilot.records.loading import export_trace
from sopilot.records.log import SealFile, read_seals, write_seals
from sopilot.records.sealing import seal_store, verify_store
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.chain import SealedEvent, genesis, head, seal_all
from sopilot.trace.events import Event
from sopilot.trace.files import TraceFile, read_trace, verify_trace, write_trace
from sopilot.trace.signing import SignedHead, SigningKey, generate_key, sign_head
from store_manipulations import MANIPULATIONS, bytes_of

Change = Callable[[TraceFile, TraceFile, random.Random], TraceFile | bytes | None]
"""Given a trace and another session's, the tampered one; ``None`` when nothing came of it."""


def flip(trace: TraceFile, other: TraceFile, source: random.Random) -> bytes | None:
    raw = bytearray(write_trace(trace).encode())
    for _ in range(source.choice((1, 1, 2, 5))):
        raw[source.randrange(len(raw))] ^= 1 << source.randrange(8)
    return bytes(raw)


def delete(trace: TraceFile, other: TraceFile, source: random.Random) -> TraceFile:
    events = list(trace.events)
    del events[source.randrange(len(events) - 1)]
    return replace(trace, events=tuple(events))


def reorder(trace: TraceFile, other: TraceFile, source: random.Random) -> TraceFile:
    events = list(trace.events)
    first, second = source.sample(range(len(events)), 2)
    events[first], events[second] = events[second], events[first]
    return replace(trace, events=tuple(events))


def repeat(trace: TraceFile, other: TraceFile, source: random.Random) -> TraceFile:
    events = list(trace.events)
    events.insert(source.randrange(len(events)), source.choice(events))
    return replace(trace, events=tuple(events))


def splice(trace: TraceFile, other: TraceFile, source: random.Random) -> TraceFile:
    at = source.randrange(1, min(len(trace.events), len(other.events)))
    joint = (*trace.events[:at], *other.events[at:])
    return replace(trace, events=joint)


def edit(trace: TraceFile, other: TraceFile, source: random.Random) -> TraceFile | None:
    """One field of one event, its hash left alone."""
    events = list(trace.events)
    index = source.randrange(len(events))
    changed = _forged(events[index].event, source)
    if changed == events[index].event:
        return None
    events[index] = SealedEvent(changed, events[index].previous, events[index].hash)
    return replace(trace, events=tuple(events))


def transplant(trace: TraceFile, other: TraceFile, source: random.Random) -> TraceFile:
    """Another session's trace under this session's name, as it is or with fresh hashes."""
    events = other.events
    if source.random() < 0.5:
        events = tuple(
            seal_all([sealed.event for sealed in other.events], genesis(trace.session_id))
        )
    if source.random() < 0.5:
        return replace(other, session_id=trace.session_id, events=events)
    return replace(trace, events=events)


def cut_tail(trace: TraceFile, other: TraceFile, source: random.Random) -> TraceFile:
    return replace(trace, events=trace.events[: source.randrange(len(trace.events))])


def rewrite(trace: TraceFile, other: TraceFile, source: random.Random) -> TraceFile | None:
    """A forged event, and every hash behind it worked out again."""
    events = [sealed.event for sealed in trace.events]
    index = source.randrange(len(events))
    changed = _forged(events[index], source)
    if changed == events[index]:
        return None
    events[index] = changed
    return replace(trace, events=tuple(seal_all(events, genesis(trace.session_id))))


def _forged(event: Event, source: random.Random) -> Event:
    choice = source.randrange(4)
    if choice == 0:
        return event._replace(at=event.at + source.choice((1, -1, 0.5)))
    if choice == 1:
        return event._replace(actor=source.choice(("model", "tool", "operator", "machine")))
    if choice == 2:
        return event._replace(frame=event.frame + "x")
    payload = dict(event.payload)
    name = source.choice(sorted(payload)) if payload else "added"
    payload[name] = source.choice((True, False, None, 7, "forged"))
    return event._replace(payload=payload)


CHANGES: dict[str, Change] = {
    "flip": flip,
    "delete": delete,
    "reorder": reorder,
    "repeat": repeat,
    "splice": splice,
    "edit": edit,
    "transplant": transplant,
    "cut tail": cut_tail,
    "full rewrite": rewrite,
}


RECORDINGS = 40


def recorded(seed: int, key: SigningKey) -> tuple[TraceFile, tuple[SignedHead, ...]]:
    """A session's export, and the heads that were signed while it ran."""

    async def run() -> TraceFile:
        store = MemoryStore()
        session = await open_session(
            store, COUNTER, tools=CountingTools(), clock=HandClock(), handbook="counter"
        )
        await wander(session, random.Random(seed), 12)
        return replace(await export_trace(store, session.id), program_texts={})

    trace = asyncio.run(run())
    half = len(trace.events) // 2
    heads = tuple(
        sign_head(key, head(trace.session_id, events), at=float(number))
        for number, events in enumerate((trace.events[:half], trace.events))
    )
    return trace, heads


def detected(tampered: TraceFile | bytes, heads: Sequence[SignedHead], key: SigningKey) -> bool:
    if isinstance(tampered, bytes):
        try:
            tampered = read_trace(tampered.decode())
        except (UnicodeDecodeError, TraceError):
            return True
    return bool(verify_trace(tampered, heads=heads, keys={key.public}))


def traces(tamperings: int, seed: int) -> dict[str, object]:
    """Tamper with exported traces."""
    source = random.Random(seed)
    key = generate_key()
    material = [recorded(source.getrandbits(32), key) for _ in range(RECORDINGS)]
    for trace, heads in material:
        assert verify_trace(trace, heads=heads, keys={key.public}) == []
    made: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    names = list(CHANGES)
    begun = time.monotonic()
    while made.total() < tamperings:
        name = names[made.total() % len(names)]
        (trace, heads), (other, _) = source.sample(material, 2)
        tampered = CHANGES[name](trace, other, source)
        if tampered is None or tampered in (trace, write_trace(trace).encode()):
            continue
        made[name] += 1
        if not detected(tampered, heads, key):
            missed[name] += 1
    return {
        "passed": not missed,
        "tamperings": made.total(),
        "by_class": dict(made),
        "detected": made.total() - missed.total(),
        "missed": dict(missed),
        "seconds": round(time.monotonic() - begun, 1),
    }


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
            db = (await store.open()).connection
            with sqlite3.connect(folder / "old.db") as old:
                db.backup(old)
            old.close()
        before = len(read_seals(text).lines) if text else 0
        text += write_seals(sealing.entries[before:], sealing.seal)
    return store, read_seals(text), key.public


async def manipulate(manipulations: int, seed: int) -> dict[str, object]:
    source = random.Random(seed)
    made: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    unnamed: Counter[str] = Counter()
    unchanged: Counter[str] = Counter()
    begun = time.monotonic()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        store, seals, key = await prepare(Path(folder), source)
        assert (await verify_store(store, seals, [key])).complete
        db = (await store.open()).connection
        db.execute("ATTACH ? AS old", (str(Path(folder) / "old.db"),))
        whole = bytes_of(db)
        kinds = itertools.cycle(MANIPULATIONS)
        while made.total() < manipulations:
            name = next(kinds)
            db.execute("BEGIN")
            try:
                touched = MANIPULATIONS[name](db, source)
                if bytes_of(db) == whole:
                    unchanged[name] += 1
                    continue
                made[name] += 1
                result = await verify_store(store, seals, [key])
            finally:
                db.execute("ROLLBACK")
            if result.complete:
                missed[name] += 1
            elif touched and not touched & {gap.session_id for gap in result.gaps}:
                unnamed[name] += 1
        assert (await verify_store(store, seals, [key])).complete
        await store.close()
    return {
        "passed": not (missed or unnamed),
        "manipulations": made.total(),
        "missed": missed.total(),
        "unnamed": unnamed.total(),
        "by kind": dict(made),
        "changed nothing, not counted": dict(unchanged),
        "missed by kind": dict(missed),
        "unnamed by kind": dict(unnamed),
        "seconds": round(time.monotonic() - begun, 1),
        "seed": seed,
    }


def store(manipulations: int, seed: int) -> dict[str, object]:
    """Manipulate the tables of a store."""
    return asyncio.run(manipulate(manipulations, seed))


if __name__ == "__main__":
    parts(
        __doc__,
        traces=(traces, {"tamperings": 100_000, "seed": 27}),
        store=(store, {"manipulations": 100_000, "seed": 1}),
    )
