"""`for_each` over a list: machine and audit agree on where it ends."""

from __future__ import annotations

import pytest

from small_desks import AnsweringTools, programs_of
from sopilot.audit.audit import audit_trace
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.machine.automation import Automation
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Start

BOOK = load_handbook("""
handbook: legs
actions:
  read_booking: {input: {booking: string}, read_only: true}
  read_flight: {input: {number: integer}, read_only: true}
  cancel: {input: {booking: string}, irreversible: true, confirm: false}
predicates:
  all_late(booking):
    says: Every flight of {booking} is late.
    verify:
      all:
        - read_booking(booking)
        - {call: read_flight(leg), for_each: read_booking.legs as leg}
    verdict: results.read_flight.all(one, one.late)
procedures:
  cancel: {requires: all_late(booking)}
""")
PROGRAMS = programs_of(BOOK)


@pytest.mark.parametrize(("legs", "cancelled"), [(3, 1), (1_000, 1), (1_001, 0)])
async def test_machine_and_audit_end_at_the_same_element(legs: int, cancelled: int) -> None:
    """Every leg is the same flight, so that one call reads all."""
    tools = AnsweringTools(lambda *_: {"legs": [7] * legs, "late": True})
    settings = Settings(automation=Automation(enter_calls=True, machine_verdicts=True))
    session = await open_session(MemoryStore(), PROGRAMS, tools=tools, settings=settings)
    await session.operate(Start("cancel", {"booking": "b"}))
    await session.call_tool("read_booking", {"booking": "b"})
    await session.call_tool("read_flight", {"number": 7})
    await session.call_tool("cancel", {"booking": "b"})
    assert len(tools.given("cancel")) == cancelled
    report = audit_trace(
        PROGRAMS, await session.whole_events(), judge=judge, ended=False,
        chain=session.events, session_id=session.id,
    )  # fmt: skip
    codes = {one.code for one in report.findings}
    assert not codes & {"inconsistent-trace", "guard-disagrees", "unproven-verdict"}, codes
    assert report.clean or not cancelled, report.findings
