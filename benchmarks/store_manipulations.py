"""Manipulations by somebody who writes to every table of a store without the sealing key."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from typing import Any

from sopilot.records.log import PREFIX, LogEntry, digest_of, is_journal
from sopilot.stores.schema import EVENTS_PER_SESSION
from sopilot.trace.chain import decode_line, encode_line, genesis, seal_all, seal_line
from sopilot.trace.events import Event

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
    return [bytes(line).decode() for (line,) in rows]


def write_lines(db: sqlite3.Connection, number: int, lines: list[str], session_id: str) -> None:
    """The session's events and head, as if they had always been these."""
    db.execute("DELETE FROM events WHERE place / ? = ?", (EVENTS_PER_SESSION, number))
    first = number * EVENTS_PER_SESSION
    db.executemany(
        "INSERT INTO events VALUES (?, ?)",
        [(first + n, line.encode()) for n, line in enumerate(lines)],
    )
    last = decode_line(lines[-1]).hash if lines else genesis(session_id)
    db.execute(
        "UPDATE heads SET seq = ?, hash = ? WHERE session = ?", (len(lines) - 1, last, number)
    )


def events_of(db: sqlite3.Connection, number: int) -> list[Event]:
    return [decode_line(line).event for line in lines_of(db, number)]


def write_events(
    db: sqlite3.Connection, number: int, events: list[Event], session_id: str
) -> list[str]:
    """The session as if these events had happened, with their hashes."""
    sealed = seal_all(events, genesis(session_id))
    write_lines(db, number, [encode_line(each) for each in sealed], session_id)
    return [each.hash for each in sealed]


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
        [entry._replace(number=n) for n, entry in enumerate(entries)],
    )


def delete_session(db: sqlite3.Connection, source: random.Random) -> set[str]:
    number, session_id = source.choice(sessions_of(db))
    remove(db, number)
    return {session_id}


def delete_with_its_entries(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """Delete a session, and number the log anew so that no hole is left."""
    number, session_id = source.choice(sessions_of(db))
    remove(db, number)
    write_log(db, [entry for entry in log_of(db) if entry.session_id != session_id])
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
    db.execute("INSERT INTO heads VALUES (?, -1, '', 0, '', 1, 0, 'new', 0, '{}')", (made,))
    write_events(db, made, events_of(db, number), new)
    if source.random() < 0.5:
        entries = log_of(db)
        place = source.randrange(len(entries))
        entries.insert(place, LogEntry(0, 1.0, new, -1, genesis(new), digest_of(())))
        write_log(db, entries)
    return {new}


def reorder_entries(db: sqlite3.Connection, source: random.Random) -> set[str]:
    entries = log_of(db)
    first, other = source.sample(range(len(entries)), 2)
    entries[first], entries[other] = entries[other], entries[first]
    write_log(db, entries)
    return {entries[first].session_id, entries[other].session_id}


def truncate_log(db: sqlite3.Connection, source: random.Random) -> set[str]:
    entries = log_of(db)
    keep = source.randrange(len(entries))
    write_log(db, entries[:keep])
    return {entry.session_id for entry in entries[keep:]}


def swap_sessions(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """Their contents, rows of the register included, each sealed under the other's id."""
    (one, one_id), (other, other_id) = source.sample(sessions_of(db), 2)
    first, second = lines_of(db, one), lines_of(db, other)
    honest = source.random() < 0.5
    for number, session_id, lines in ((one, one_id, second), (other, other_id, first)):
        write_lines(db, number, lines, session_id)
        if honest:
            write_events(db, number, events_of(db, number), session_id)
    db.execute("UPDATE actions SET session = -1 WHERE session = ?", (one,))
    db.execute("UPDATE actions SET session = ? WHERE session = ?", (one, other))
    db.execute("UPDATE actions SET session = ? WHERE session = -1", (other,))
    return {one_id, other_id}


def with_another(events: list[Event], source: random.Random) -> list[Event]:
    place = source.randrange(len(events))
    later = events[place]._replace(at=events[place].at + 1)
    return [*events[:place], later, *events[place + 1 :]]


def rewrite_session(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """One event is another, and every hash behind it is right again."""
    number, session_id = source.choice(sessions_of(db))
    write_events(db, number, with_another(events_of(db, number), source), session_id)
    return {session_id}


def rewrite_all(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """Every session, and the log with entries that fit the new ones."""
    places: dict[str, list[str]] = {}
    for number, session_id in sessions_of(db):
        shift = source.randrange(1, 1000)
        moved = [event._replace(at=event.at + shift) for event in events_of(db, number)]
        places[session_id] = write_events(db, number, moved, session_id)
    entries = [
        entry._replace(hash=places[entry.session_id][entry.seq]) if entry.seq >= 0 else entry
        for entry in log_of(db)
    ]
    write_log(db, entries)
    return set(places)


def rewrite_and_go_on(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """An event before the sealed one is another, and the session has grown since."""
    number, session_id = source.choice(sessions_of(db))
    events = with_another(events_of(db, number), source)
    note = {"name": "x", "details": {}}
    events.append(events[-1]._replace(seq=len(events), kind="note", payload=note, actor="user"))
    write_events(db, number, events, session_id)
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
        "UPDATE events SET line = ? WHERE place = ?",
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
    """Change a program: every session that ran it is touched."""
    (sha256,) = source.choice(db.execute("SELECT sha256 FROM programs").fetchall())
    change = source.choice(("artifact = artifact || ' '", "artifact = replace(artifact, 'e', 'a')"))
    db.execute(f"UPDATE programs SET {change} WHERE sha256 = ?", (sha256,))
    return {name for _, name in sessions_of(db) if not is_journal(name)}


def alter_header(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """Change the session's description beside its trace."""
    number, session_id = source.choice(
        [session for session in sessions_of(db) if not is_journal(session[1])]
    )
    row = db.execute("SELECT metadata FROM sessions WHERE number = ?", (number,)).fetchone()
    metadata = json.loads(row[0])
    name = source.choice(("handbook", "model", "view", "goals", "programs", "requester"))
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
        ("at = at + 1", "action = '\"x\"'", "outcome = 'held '", "proof = proof || 'x'",
         "expires_at = coalesce(expires_at, 0) + 1", "arguments = '{}  '", "rest = rest || ' '")
    )  # fmt: skip
    db.execute(f"UPDATE actions SET {change} WHERE session = ? AND call = ?", (number, call))
    return {session_id}


def note(db: sqlite3.Connection, journal: str, name: str, details: dict[str, Any]) -> None:
    """Another entry of a journal, as its own writers make it."""
    session_id = PREFIX + journal
    (number,) = db.execute("SELECT number FROM sessions WHERE id = ?", (session_id,)).fetchone()
    lines = lines_of(db, number)
    last = decode_line(lines[-1])
    event = last.event._replace(seq=last.event.seq + 1, payload={"name": name, "details": details})
    write_lines(db, number, [*lines, seal_line(event, last.hash)[1]], session_id)


def marked(db: sqlite3.Connection, number: int, name: str) -> None:
    (text,) = db.execute("SELECT metadata FROM sessions WHERE number = ?", (number,)).fetchone()
    text = json.dumps({**json.loads(text), name: 1.0})
    db.execute("UPDATE sessions SET metadata = ? WHERE number = ?", (text, number))


def prune_on_record(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """Its events are gone, and the privacy journal says that somebody pruned them, where it stood
    or behind that: there its rows in the register could be any."""
    number, session_id = source.choice(
        [session for session in sessions_of(db) if not is_journal(session[1])]
    )
    if source.random() < 0.5:
        db.execute(
            "UPDATE heads SET seq = seq + 1, hash = ? WHERE session = ?",
            (f"{source.getrandbits(256):064x}", number),
        )
        db.execute("UPDATE actions SET arguments = '{}' WHERE session = ?", (number,))
    head = db.execute("SELECT seq, hash FROM heads WHERE session = ?", (number,)).fetchone()
    db.execute("DELETE FROM events WHERE place / ? = ?", (EVENTS_PER_SESSION, number))
    db.execute("DELETE FROM payloads WHERE session = ?", (number,))
    marked(db, number, "pruned")
    note(db, "privacy", "pruned", {"sessions": {session_id: list(head)}, "why": "old"})
    return {session_id}


def look_locked(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """Make a session look as if its key were missing."""
    rows = db.execute("SELECT DISTINCT session, id FROM payloads JOIN sessions ON number = session")
    number, session_id = source.choice(rows.fetchall())
    marked(db, number, "locked")
    db.execute("DELETE FROM payloads WHERE session = ?", (number,))
    return {session_id}


def rows_of_nobody(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """Add a row of the register for a session that has no head and no entry."""
    number, call, _ = a_row(db, source)
    new = f"{source.getrandbits(128):032x}"
    made = db.execute("INSERT INTO sessions (id, created_at, metadata) VALUES (?, 1, '{}')", (new,))
    db.execute(
        "INSERT INTO actions SELECT ?, call, at, action, outcome, proof, expires_at, arguments,"
        " rest FROM actions WHERE session = ? AND call = ?",
        (made.lastrowid, number, call),
    )
    return {new}


def alter_beside(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """When it began, when it went on, how it stands: for listings and for how long it is kept."""
    number, session_id = source.choice(
        [session for session in sessions_of(db) if not is_journal(session[1])]
    )
    change = source.choice(
        ("heads SET updated_at = updated_at - 500 WHERE session",
         "heads SET summary = '{\"status\":\"ended\"}', status = 'ended' WHERE session",
         "heads SET status = 'ended' WHERE session",
         "heads SET unresolved = 1 - unresolved WHERE session",
         "sessions SET created_at = 1 WHERE number")
    )  # fmt: skip
    db.execute(f"UPDATE {change} = ?", (number,))
    return {session_id}


def restore_copy(db: sqlite3.Connection, source: random.Random) -> set[str]:
    """The store as it was at the seal before: whole in itself, with its own sealed head."""
    missing = {name for _, name in sessions_of(db)}
    for table in TABLES:
        db.execute(f"DELETE FROM {table}")
        db.execute(f"INSERT INTO {table} SELECT * FROM old.{table}")
    return missing - {name for _, name in sessions_of(db)}


MANIPULATIONS: dict[str, Manipulation] = {
    each.__name__: each
    for each in (
        delete_session, delete_with_its_entries, delete_entry, insert_session, reorder_entries,
        truncate_log, swap_sessions, rewrite_session, rewrite_all, rewrite_and_go_on, cut_session,
        alter_event, alter_payload, alter_program, alter_header, drop_row, alter_row, restore_copy,
        prune_on_record, look_locked, rows_of_nobody, alter_beside,
    )
}  # fmt: skip
