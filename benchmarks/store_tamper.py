"""Manipulations of a whole store: every one is found against the last sealed head.

    python benchmarks/store_tamper.py [--manipulations 100000] [--seconds 0] [--json FILE]

The manipulator writes whatever it likes into the store's tables, hashes included, and has not
the sealing key. Sessions are deleted (with their log entries, renumbered, or not), inserted,
reordered, exchanged, cut, written anew with correct hashes, the log is truncated or written
anew whole, an older copy is restored, rows of the register are dropped or altered, and so are
payloads, programs and what the store says a session is about. Each manipulation is made in a
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
from collections.abc import Callable
from pathlib import Path

from counter_desk import COUNTER, CountingTools, HandClock, wander
from sopilot.adapters.sqlite_schema import EVENTS_PER_SESSION
from sopilot.adapters.sqlite_store import SQLiteStore
from sopilot.runtime.records.log import LogEntry, SealFile, digest_of, read_seals, write_seals
from sopilot.runtime.session import Settings, open_session
from sopilot.runtime.session.journal import is_journal, write
from sopilot.runtime.session.sealing import seal_store, verify_store
from sopilot.runtime.trace import decode_line, encode_line, generate_key, genesis, seal_all

TABLES = (
    "sessions", "heads", "events", "payloads", "programs", "signatures", "actions", "log", "seals",
)  # fmt: skip
Manipulation = Callable[[sqlite3.Connection, random.Random], set[str]]
"""The sessions it touched."""


def bytes_of(db: sqlite3.Connection) -> str:
    """Everything that the store holds, in the order of its rows' own numbers or keys."""
    return repr([db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES])


def sessions_of(db: sqlite3.Connection) -> list[tuple[int, str]]:
    return db.execute("SELECT number, id FROM sessions ORDER BY number").fetchall()


def lines_of(db: sqlite3.Connection, number: int) -> list[str]:
    rows = db.execute(
        "SELECT line FROM events WHERE place / ? = ? ORDER BY place", (EVENTS_PER_SESSION, number)
    )
    return [line for (line,) in rows]


def write_lines(db: sqlite3.Connection, number: int, lines: list[str], session_id: str) -> None:
    """The session's events and head, as if they had always been these."""
    db.execute("DELETE FROM events WHERE place / ? = ?", (EVENTS_PER_SESSION, number))
    first = number * EVENTS_PER_SESSION
    db.executemany(
        "INSERT INTO events VALUES (?, ?)", [(first + n, line) for n, line in enumerate(lines)]
    )
    last = decode_line(lines[-1]).hash if lines else genesis(session_id)
    db.execute(
        "UPDATE heads SET seq = ?, hash = ? WHERE session = ?", (len(lines) - 1, last, number)
    )


def remove(db: sqlite3.Connection, number: int) -> None:
    for table in ("heads", "payloads", "signatures", "actions"):
        db.execute(f"DELETE FROM {table} WHERE session = ?", (number,))
    db.execute("DELETE FROM events WHERE place / ? = ?", (EVENTS_PER_SESSION, number))
    db.execute("DELETE FROM sessions WHERE number = ?", (number,))


def log_of(db: sqlite3.Connection) -> list[LogEntry]:
    return [LogEntry(*row) for row in db.execute("SELECT * FROM log ORDER BY number")]


def write_log(db: sqlite3.Connection, entries: list[LogEntry]) -> None:
    db.execute("DELETE FROM log")
    db.executemany(
        "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)",
        [one._replace(number=n) for n, one in enumerate(entries)],
    )


def delete_session(db: sqlite3.Connection, source: random.Random) -> set[str]:
    number, session_id = source.choice(sessions_of(db))
    remove(db, number)
    return {session_id}


def delete_with_its_entries(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """And the log numbered anew, so that no hole is left."""
    number, session_id = source.choice(sessions_of(db))
    remove(db, number)
    write_log(db, [one for one in log_of(db) if one.session_id != session_id])
    return {session_id}


def delete_entry(db: sqlite3.Connection, source: random.Random) -> set[str]:
    entry = source.choice(log_of(db))
    db.execute("DELETE FROM log WHERE number = ?", (entry.number,))
    return {entry.session_id}


def insert_session(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """A copy of another under a new id, chain and all; with an entry in the midst, or without."""
    number, _ = source.choice(sessions_of(db))
    new = f"{source.getrandbits(128):032x}"
    row = db.execute("SELECT created_at, metadata FROM sessions WHERE number = ?", (number,))
    made = db.execute(
        "INSERT INTO sessions (id, created_at, metadata) VALUES (?, ?, ?)", (new, *row.fetchone())
    ).lastrowid
    assert made is not None
    db.execute("INSERT INTO heads VALUES (?, -1, '', 0, '', 1, 0, '{}')", (made,))
    events = [decode_line(line).event for line in lines_of(db, number)]
    write_lines(db, made, [encode_line(one) for one in seal_all(events, genesis(new))], new)
    if source.random() < 0.5:
        entries = log_of(db)
        place = source.randrange(len(entries))
        entries.insert(place, LogEntry(0, 1.0, new, -1, genesis(new), digest_of(())))
        write_log(db, entries)
    return {new}


def reorder_entries(db: sqlite3.Connection, source: random.Random) -> set[str]:
    entries = log_of(db)
    one, other = source.sample(range(len(entries)), 2)
    entries[one], entries[other] = entries[other], entries[one]
    write_log(db, entries)
    return {entries[one].session_id, entries[other].session_id}


def truncate_log(db: sqlite3.Connection, source: random.Random) -> set[str]:
    entries = log_of(db)
    keep = source.randrange(len(entries))
    write_log(db, entries[:keep])
    return {one.session_id for one in entries[keep:]}


def swap_sessions(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """Their contents, rows of the register included, each sealed under the other's id."""
    (one, one_id), (other, other_id) = source.sample(sessions_of(db), 2)
    first, second = lines_of(db, one), lines_of(db, other)
    honest = source.random() < 0.5
    for number, session_id, lines in ((one, one_id, second), (other, other_id, first)):
        if honest:
            events = [decode_line(line).event for line in lines]
            lines = [encode_line(sealed) for sealed in seal_all(events, genesis(session_id))]
        write_lines(db, number, lines, session_id)
    db.execute("UPDATE actions SET session = -1 WHERE session = ?", (one,))
    db.execute("UPDATE actions SET session = ? WHERE session = ?", (one, other))
    db.execute("UPDATE actions SET session = ? WHERE session = -1", (other,))
    return {one_id, other_id}


def rewrite_session(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """One event is another, and every hash behind it is right again."""
    number, session_id = source.choice(sessions_of(db))
    events = [decode_line(line).event for line in lines_of(db, number)]
    place = source.randrange(len(events))
    events[place] = events[place]._replace(at=events[place].at + 1)
    sealed = seal_all(events, genesis(session_id))
    write_lines(db, number, [encode_line(one) for one in sealed], session_id)
    return {session_id}


def rewrite_all(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """Every session, and the log with entries that fit the new ones."""
    places: dict[str, list[str]] = {}
    for number, session_id in sessions_of(db):
        events = [decode_line(line).event for line in lines_of(db, number)]
        shift = source.randrange(1, 1000)
        moved = [event._replace(at=event.at + shift) for event in events]
        sealed = seal_all(moved, genesis(session_id))
        write_lines(db, number, [encode_line(one) for one in sealed], session_id)
        places[session_id] = [one.hash for one in sealed]
    entries = [
        one._replace(hash=places[one.session_id][one.seq]) if one.seq >= 0 else one
        for one in log_of(db)
    ]
    write_log(db, entries)
    return set(places)


def rewrite_and_go_on(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """An event before the sealed one is another, and the session has grown since."""
    number, session_id = source.choice(sessions_of(db))
    events = [decode_line(line).event for line in lines_of(db, number)]
    place = source.randrange(len(events))
    events[place] = events[place]._replace(at=events[place].at + 1)
    note = {"name": "x", "details": {}}
    events.append(events[-1]._replace(seq=len(events), kind="note", payload=note, actor="user"))
    sealed = seal_all(events, genesis(session_id))
    write_lines(db, number, [encode_line(one) for one in sealed], session_id)
    return {session_id}


def cut_session(db: sqlite3.Connection, source: random.Random) -> set[str]:
    number, session_id = source.choice(sessions_of(db))
    lines = lines_of(db, number)
    write_lines(db, number, lines[: source.randrange(len(lines))], session_id)
    return {session_id}


def alter_event(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """One byte of one line, head and hashes left as they are."""
    number, session_id = source.choice(sessions_of(db))
    lines = lines_of(db, number)
    place = source.randrange(len(lines))
    raw = bytearray(lines[place].encode())
    raw[source.randrange(len(raw))] ^= 1 << source.randrange(7)
    db.execute(
        "UPDATE events SET line = CAST(? AS TEXT) WHERE place = ?",
        (bytes(raw), number * EVENTS_PER_SESSION + place),
    )
    return {session_id}


def alter_payload(db: sqlite3.Connection, source: random.Random) -> set[str]:
    rows = db.execute("SELECT session, ref, id FROM payloads JOIN sessions ON number = session")
    number, ref, session_id = source.choice(rows.fetchall())
    change = source.choice(("value = '\"x\"'", "value = value || 'x'", "ref = 'x'"))
    db.execute(f"UPDATE payloads SET {change} WHERE session = ? AND ref = ?", (number, ref))
    return {session_id}


def alter_program(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """What the rules were: every session that ran it is touched."""
    (sha256,) = source.choice(db.execute("SELECT sha256 FROM programs").fetchall())
    change = source.choice(("artifact = artifact || ' '", "artifact = replace(artifact, 'e', 'a')"))
    db.execute(f"UPDATE programs SET {change} WHERE sha256 = ?", (sha256,))
    return {one for _, one in sessions_of(db) if not is_journal(one)}


def alter_header(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """What the store says beside the trace that the session is about."""
    number, session_id = source.choice([one for one in sessions_of(db) if not is_journal(one[1])])
    row = db.execute("SELECT metadata FROM sessions WHERE number = ?", (number,)).fetchone()
    metadata = json.loads(row[0])
    name = source.choice(("handbook", "model", "arm", "goals", "programs", "requester"))
    metadata[name] = {"goals": [], "programs": {}}.get(name, f"{metadata.get(name)}x")
    text = json.dumps(metadata)
    db.execute("UPDATE sessions SET metadata = ? WHERE number = ?", (text, number))
    return {session_id}


def a_row(db: sqlite3.Connection, source: random.Random) -> tuple[int, str, str]:
    rows = db.execute("SELECT session, call, id FROM actions JOIN sessions ON number = session")
    number, call, session_id = source.choice(rows.fetchall())
    return number, call, session_id


def drop_row(db: sqlite3.Connection, source: random.Random) -> set[str]:
    number, call, session_id = a_row(db, source)
    db.execute("DELETE FROM actions WHERE session = ? AND call = ?", (number, call))
    return {session_id}


def alter_row(db: sqlite3.Connection, source: random.Random) -> set[str]:
    number, call, session_id = a_row(db, source)
    change = source.choice(
        ("at = at + 1", "action = '\"x\"'", "outcome = 'held '", "grade = grade || 'x'",
         "expires_at = coalesce(expires_at, 0) + 1", "arguments = '{}  '", "rest = rest || ' '")
    )  # fmt: skip
    db.execute(f"UPDATE actions SET {change} WHERE session = ? AND call = ?", (number, call))
    return {session_id}


def restore_copy(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """The store as it was at the seal before: whole in itself, with its own sealed head."""
    missing = {one for _, one in sessions_of(db)}
    for table in TABLES:
        db.execute(f"DELETE FROM {table}")
        db.execute(f"INSERT INTO {table} SELECT * FROM old.{table}")
    return missing - {one for _, one in sessions_of(db)}


MANIPULATIONS: dict[str, Manipulation] = {
    one.__name__: one
    for one in (
        delete_session, delete_with_its_entries, delete_entry, insert_session, reorder_entries,
        truncate_log, swap_sessions, rewrite_session, rewrite_all, rewrite_and_go_on, cut_session,
        alter_event, alter_payload, alter_program, alter_header, drop_row, alter_row, restore_copy,
    )
}  # fmt: skip


async def prepare(folder: Path, source: random.Random) -> tuple[SQLiteStore, SealFile, str]:
    """Sessions, a seal, an old copy; more sessions, and the seal that counts."""
    key, settings = generate_key(), Settings(by_reference=frozenset({"arguments"}))
    store = SQLiteStore(folder / "store.db", synchronous="NORMAL")
    text = ""
    for count in (3, 2):
        for _ in range(count):
            session = await open_session(
                store, COUNTER, tools=CountingTools(), clock=HandClock(), settings=settings,
                handbook="counter", model="m", arm="pg", requester="una",
            )  # fmt: skip
            await wander(session, source, 9)
            await session.release()
        await write(store, "people", "demanded", {"what": "x", "on": True}, clock=HandClock())
        sealing = await seal_store(store, key, at=5.0)
        if count == 3:
            db = await store._file.connection()
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
        db = await store._file.connection()
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
