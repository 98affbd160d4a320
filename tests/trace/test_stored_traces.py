"""Traces of every released format replay from now on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sopilot.records.loading import replay_trace
from sopilot.trace.files import read_trace, verify_trace, write_trace

STORED = sorted(Path(__file__).parent.glob("v*/*.jsonl"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_stored_trace_still_reads_verifies_and_replays(path: Path) -> None:
    text = path.read_bytes().decode()
    trace = read_trace(text)
    assert verify_trace(trace) == []
    assert len(trace.signatures) == 1
    assert write_trace(trace) == text
    replay_trace(trace)


def test_version_1_ends_where_it_ended() -> None:
    path = Path(__file__).parent / "v1" / "counter.jsonl"
    recovered = replay_trace(read_trace(path.read_bytes().decode()))
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
