"""Foreign transcripts against a policy: the clock, lists, what users told, several procedures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chat_messages import messages
from sopilot.audit.transcript_files import read_messages
from sopilot.audit.transcripts import audit_transcript
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook

TEXT = """
handbook: trips
actions:
  read_trip: {input: {trip: string}}
  read_leg: {input: {number: string}}
  cancel: {input: {trip: string}, irreversible: true, confirm: false}
predicates:
  fresh(trip):
    says: Trip {trip} is less than a day old.
    verify: read_trip(trip)
    verdict: hours_between(result.made, now) < 24
  sold(trip):
    says: Every leg of {trip} is on sale.
    verify:
      all:
        - read_trip(trip)
        - {call: read_leg(leg.number), for_each: read_trip.legs as leg, name: legs}
    verdict: results.legs.all(one, one.sold)
  ill(reason):
    says: The reason is illness.
    verify: arguments
    verdict: reason == 'illness'
  agreed(trip):
    says: The user gives {trip} up.
    verify: user
    question: Do you give up {trip}?
procedures:
  cancel:
    inputs: {reason: string}
    requires: {in_order: [agreed(trip), first: [fresh(trip), sold(trip), ill(reason)]]}
  cancel_for_nothing:
    action: cancel
    requires: fresh(trip)
"""
HANDBOOK = load_handbook(TEXT)


TRIP = {"made": "2026-01-01T10:00:00Z", "legs": [{"number": "a"}, {"number": "b"}]}
READ = ("read_trip", {"trip": "t"}, TRIP)
CANCEL = ("cancel", {"trip": "t"}, {"done": True})


def leg(number: str, sold: bool) -> tuple[str, dict[str, Any], Any]:
    return ("read_leg", {"number": number}, {"sold": sold})


@pytest.mark.parametrize(
    ("calls", "now", "reason", "codes"),
    [
        ((READ, CANCEL), "2026-01-01T20:00:00Z", "", set()),
        # Too old, and the legs were not looked at: what was not checked is not let off.
        ((READ, CANCEL), "2026-01-03T20:00:00Z", "plans", {"unproven-verdict"}),
        ((READ, CANCEL), "2026-01-03T20:00:00Z", "illness", set()),
        ((READ, leg("a", True), leg("b", True), CANCEL), "2026-01-03T20:00:00Z", "plans", set()),
        # One of two legs is not every leg.
        ((READ, leg("a", True), CANCEL), "2026-01-03T20:00:00Z", "plans", {"unproven-verdict"}),
        (
            (READ, leg("a", True), leg("b", False), CANCEL),
            "2026-01-03T20:00:00Z",
            "plans",
            {"executed-against-condition"},
        ),
    ],
)
def test_calls_of_a_policy(calls: Any, now: str, reason: str, codes: set[str]) -> None:
    transcript = replace(read_messages(messages("Cancel t.", *calls)), now=now)
    if reason:
        transcript = replace(transcript, values={"reason": reason})
    report = audit_transcript(HANDBOOK, transcript, goal=None, judge=judge)
    assert {one.code for one in report.findings} == codes, report.findings
    assert not report.refusals
