"""A value of another kind is another value, also inside another."""

from __future__ import annotations

from counter_sessions import ready_for
from sopilot.audit.audit import audit_trace
from sopilot.trace.chain import genesis, seal_all


async def test_a_number_is_no_verdict() -> None:
    session = await ready_for("transfer")
    events = [sealed.event for sealed in session.events]
    verdicts = [event for event in events if event.payload.get("bound", {}).get("holds") is True]
    assert verdicts
    for event in verdicts:
        bound = {**event.payload["bound"], "holds": 1}
        forged = event._replace(payload={**event.payload, "bound": bound})
        told = [forged if one is event else one for one in events]
        report = audit_trace(session.programs.programs, seal_all(told, genesis(session.id)))
        assert event.seq in [found.seq for found in report.findings], event
