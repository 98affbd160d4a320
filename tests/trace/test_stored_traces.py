"""Traces of every released format replay from now on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sopilot.records.loading import Loaded, load
from sopilot.records.store import Batch, NewSession
from sopilot.stores.memory import MemoryStore
from sopilot.trace.chain import Head, encode_line, genesis
from sopilot.trace.files import TraceFile, read_trace, verify_trace, write_trace

STORED = sorted(Path(__file__).parent.glob("v*/*.jsonl"))


async def loaded(trace: TraceFile) -> Loaded:
    """The session, loaded from a store that holds what is in the file."""
    store, start = MemoryStore(), Head(trace.session_id, -1, genesis(trace.session_id))
    opening = trace.events[0].event.payload["details"]
    metadata = {**opening, "programs": trace.programs, "salt": trace.salt}
    last = trace.events[-1]
    head, lines = Head(trace.session_id, last.event.seq, last.hash), map(encode_line, trace.events)
    first = Batch(start, head, trace.events, [*lines], trace.payloads)
    session = NewSession(trace.session_id, metadata, trace.program_texts, first)
    await store.create(session, owner="", now=0.0, lease_seconds=0.0)
    return await load(store, trace.session_id)


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}/{path.stem}")
async def test_a_stored_trace_still_reads_verifies_and_replays(path: Path) -> None:
    text = path.read_bytes().decode()
    trace = read_trace(text)
    assert verify_trace(trace) == []
    assert len(trace.signatures) == 1
    assert write_trace(trace) == text
    await loaded(trace)


async def test_version_1_ends_where_it_ended() -> None:
    path = Path(__file__).parent / "v1" / "counter.jsonl"
    recovered = await loaded(read_trace(path.read_bytes().decode()))
    ended = {
        process.id: (process.goal, str(process.status), process.ending or process.frames[-1].place)
        for process in recovered.configuration.processes.values()
    }
    assert ended == {
        "p1": ("transfer", "completed", "transfer@done"),
        "p2": ("rename", "completed", "rename@done"),
        "p3": ("wire", "failed", "wire@act"),
        "p4": ("wire", "failed", "wire@done"),
        "p5": ("refund", "completed", "refund@done"),
        "p6": ("transfer", "running", "transfer@check_logged_in"),
    }
    held = {call_id: str(call.state) for call_id, call in recovered.ledger.held.items()}
    assert held == {"w": "rejected", "w.2": "expired", "w.3": "used", "r": "used"}
    assert recovered.ledger.unknown == {}
    kinds = {event.event.kind for event in read_trace(path.read_bytes().decode()).events}
    assert {"reuse", "resumed", "rejected", "decision", "note"} <= kinds
