"""Entries and rows: what a report shows of each kind of event."""

from __future__ import annotations

from typing import Any

import pytest

from sopilot.audit.timeline import (
    LONGEST,
    about_session,
    entries_of,
    entries_of_transcript,
    rows_of,
)
from sopilot.audit.transcript_files import read_messages
from sopilot.trace.events import Event

REF = {"$ref": "00", "bytes": 5}
ROWS: list[tuple[str, dict[str, Any], str]] = [
    ("start", {"goal": "pay", "arguments": {"amount": 5}}, "pay · amount: 5"),
    ("start", {"goal": "pay", "arguments": REF}, "pay · (withheld)"),
    ("call", {"function": "all_of_6_to_x", "resolved": {}}, "all of 6 requirements"),
    ("call", {"function": "any_of_2_to_x", "resolved": {}}, "one of 2 ways"),
    ("call", {"function": "first_of_x", "resolved": {}}, "the first of the ways that is true"),
    ("call", {"function": "logged_in", "resolved": {}}, "logged_in"),
    ("return", {"function": "known", "bound": {"holds": True}, "grade": "proven"},
     "known · holds: true · proven"),
    ("emit_artifact", {"name": "note", "content": {"a": {"b": ["ä", 2]}}}, "note · a: b: ä, 2"),
    ("note", {"name": "held_call", "details": {"expires_at": 10}},
     "held_call · expires_at: 1970-01-01T00:00:10Z"),
    ("user_said", {"text": REF}, "(withheld)"),
    ("ended", {}, ""),
    ("user_said", {"text": "x" * (LONGEST + 1)}, "x" * (LONGEST - 1) + "…"),
]  # fmt: skip


def event(kind: str, payload: dict[str, Any], seq: int = 7, frame: str = "") -> Event:
    return Event(seq, 1.5, "model", kind, None, frame, payload)


@pytest.mark.parametrize(("kind", "payload", "says"), ROWS)
def test_an_event_in_words(kind: str, payload: dict[str, Any], says: str) -> None:
    (row,) = rows_of([event(kind, payload, frame="p1/all_of_2_to_x/r_2@x")])
    assert (row.says, row.seq, row.kind, row.place) == (says, 7, kind, "p1 › r 2")


def test_the_cost_of_requests_is_no_row() -> None:
    assert rows_of([event("note", {"name": "model_request", "details": {"tokens": 5}})]) == []


def call(*more: tuple[str, dict[str, Any]], held: str = "") -> list[Event]:
    made = {"call_id": "c", "action": "pay", "arguments": {"amount": 5}}
    first = {"name": "held_call", "details": {**made, "awaits": held, "why": "not yet"}}
    kinds = [("note", first)] if held else [("domain_call", made)]
    return [event(kind, payload, seq) for seq, (kind, payload) in enumerate([*kinds, *more])]


RESULT = {"call_id": "c", "action": "pay"}


@pytest.mark.parametrize(
    ("state", "tone", "events"),
    [
        ("unanswered", "", call()),
        ("carried_out", "good", call(("domain_result", {**RESULT, "ok": True}))),
        ("failed", "bad", call(("domain_result", {**RESULT, "ok": False}))),
        ("unknown", "bad", call(("domain_result", {**RESULT, "ok": False, "unknown": True}))),
        ("unknown", "bad", call(("note", {"name": "outcome_unknown", "details": RESULT}))),
        ("blocked", "warn", call(held="root")),
        ("waits", "warn", call(held="approval")),
        ("rejected", "warn", call(("decision", {**RESULT, "decision": "reject"}), held="approval")),
        ("expired", "warn", call(("decision", {**RESULT, "decision": "expire"}), held="approval")),
    ],
)  # fmt: skip
def test_a_call_its_answer_and_its_decisions_are_one_entry(
    state: str, tone: str, events: list[Event]
) -> None:
    (entry,) = entries_of(events, guarded=[0])
    assert (entry.title, entry.state, entry.tone) == ("pay", state, tone)
    assert sorted({*entry.events}) == [item.seq for item in events]


def test_an_amended_call_shows_the_final_values_and_the_requested_ones() -> None:
    other = {"amount": 4}
    events = call(
        ("decision", {**RESULT, "decision": "amend", "by": "Mia", "arguments": other}),
        ("domain_call", {**RESULT, "arguments": other}),
        ("domain_result", {**RESULT, "ok": True, "value": {"paid": 4}}),
        held="approval",
    )
    (entry,) = entries_of(events)
    assert (entry.arguments, entry.requested, entry.answer) == (other, "amount 5", {"paid": 4})
    assert [item.by for item in entry.decisions] == ["Mia"]


def test_the_facts_of_a_session() -> None:
    opened = {"handbook": "desk", "requester": "ann", "programs": {"pay": "0123456789"}}
    changed = {"programs": {"pay": "abcdefabcdef"}}
    events = [
        event("note", {"name": "opened", "details": opened}, 0),
        event("note", {"name": "program_changed", "details": changed}, 1),
    ]
    about = about_session(events)
    assert (about.handbook, about.requester, about.programs) == ("desk", "ann", ("pay abcdefab",))
    assert (about.begin, about.end, about.events) == (1.5, 1.5, 2)


def test_a_transcripts_calls_are_entries() -> None:
    def asked(number: str) -> dict[str, Any]:
        return {"id": number, "function": {"name": "pay", "arguments": '{"a": 1}'}}

    messages = [
        {"role": "assistant", "content": "", "tool_calls": [asked("1"), asked("2")]},
        {"role": "tool", "tool_call_id": "1", "content": '{"ok": true}'},
    ]
    entries = entries_of_transcript(read_messages(messages, effects=frozenset({"pay"})))
    assert [(item.seq, item.arguments, item.state) for item in entries] == [
        (0, {"a": 1}, "answered"),
        (1, {"a": 1}, "unanswered"),
    ]
