"""What a row of a report says of each kind of event, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from sopilot.audit.text import LONGEST, rows_of_trace, rows_of_transcript
from sopilot.audit.transcript_files import read_messages, success_first_outcome
from sopilot.trace.events import Event

REF = {"$ref": "00", "bytes": 5}
SAID: list[tuple[str, dict[str, Any], str]] = [
    ("start", {"goal": "pay", "arguments": {"amount": 5}}, "pay(amount=5)"),
    ("start", {"goal": "pay", "arguments": {}, "reactivated": True}, "pay() again"),
    ("start", {"goal": "pay", "arguments": [1]}, "pay((withheld))"),
    ("start", {"goal": "pay"}, "pay((not an object))"),
    ("amend", {"arguments": {"a": REF}}, "a=(withheld)"),
    ("call", {"function": "known", "resolved": {"who": "ann"}}, "known(who=ann)"),
    ("call", {"slot": "known", "resolved": {}}, "known()"),
    ("return", {"function": "known", "bound": {"holds": True}, "grade": "proven"},
     "known holds (proven)"),
    ("return", {"function": "known", "bound": {"holds": False}}, "known does not hold"),
    ("return", {"function": "known", "holds": True}, "known holds"),
    ("return", {"function": "known"}, "known is undecided"),
    ("reuse", {"result": 4}, "takes over #4"),
    ("reuse", {"function": "known", "producer": 4}, "known from #4"),
    ("select_branch", {"label": "yes", "target": "end"}, "yes → end"),
    ("emit_artifact", {"name": "note", "content": {"a": 1}}, 'note: {"a": 1}'),
    ("emit_artifact", {"name": "note", "content": {"a": "ä"}}, 'note: {"a": "ä"}'),
    ("domain_call", {"action": "pay", "arguments": {"a": None}}, "pay(a=null)"),
    ("domain_result", {"action": "pay", "ok": True, "value": "ä"}, "pay → ä"),
    ("domain_result", {"action": "pay", "value": [1]}, "pay → failed: [1]"),
    ("decision", {"decision": "approve", "call_id": "c", "by": "Sue", "role": "head"},
     "approve c by Sue as head (unauthenticated)"),
    ("decision", {"decision": "expire", "call_id": "c", "by": "x",
      "principal": {"method": "token"}},
     "expire c by x (token)"),
    ("note", {"name": "held_call", "details": {"a": 1}}, 'call held back {"a": 1}'),
    ("note", {"name": "lease_lost"}, "lease lost {}"),
    ("rejected", {"operation": {"operation": "return"}, "reason": "not here"}, "return: not here"),
    ("rejected", {"operation": "x", "reason": REF}, "?: (withheld)"),
    ("user_said", {"text": "hello"}, "hello"),
    ("complete", {"summary": "paid", "goal": "pay"}, "paid"),
    ("fail", {"reason": "no money"}, "no money"),
    ("ended", {"goal": "pay"}, "pay"),
    ("ended", {}, ""),
    ("user_said", {"text": "x" * LONGEST}, "x" * LONGEST),
    ("user_said", {"text": "x" * (LONGEST + 1)}, "x" * (LONGEST - 1) + "…"),
]  # fmt: skip


def event(kind: str, payload: dict[str, Any], frame: str = "") -> Event:
    return Event(7, 1.5, "model", kind, None, frame, payload)


@pytest.mark.parametrize(("kind", "payload", "says"), SAID)
def test_an_event_in_words(kind: str, payload: dict[str, Any], says: str) -> None:
    (row,) = rows_of_trace([event(kind, payload)])
    assert (row.says, row.seq, row.at, row.actor, row.kind) == (says, 7, 1.5, "model", kind)


def test_what_it_cites_how_deep_it_is_and_how_it_sounds() -> None:
    rows = rows_of_trace(
        [
            event(
                "return", {"bound": {"holds": True, "evidence": [3, True, "4", 5]}}, "p1/r2/g3@x"
            ),
            event("return", {"evidence": "none"}, "p1@x"),
            event("domain_result", {"ok": True, "evidence": [2]}),
            event("domain_result", {"ok": False}),
            event("complete", {}),
            event("fail", {}),
            event("rejected", {}),
            event("note", {"name": "model_request", "details": {"tokens": 5}}),
        ]
    )
    assert [(one.depth, one.evidence, one.tone) for one in rows] == [
        (2, (3, 5), ""), (0, (), ""), (0, (2,), "good"), (0, (), "bad"), (0, (), "good"),
        (0, (), "bad"), (0, (), "bad"),
    ]  # fmt: skip


def test_a_transcripts_calls_in_words() -> None:
    def call(number: str) -> dict[str, Any]:
        return {
            "id": number,
            "type": "function",
            "function": {"name": "pay", "arguments": '{"a": 1}'},
        }

    messages = [
        {"role": "assistant", "content": "", "tool_calls": [call("1"), call("2")]},
        {"role": "tool", "tool_call_id": "1", "content": '{"ok": true}'},
    ]
    rows = rows_of_transcript(read_messages(messages, effects=frozenset({"pay"})))
    assert [(one.seq, one.actor, one.kind, one.depth) for one in rows] == [
        (0, "model", "domain_call", 0),
        (1, "model", "domain_call", 0),
    ]
    assert [(one.says, one.tone, one.place) for one in rows] == [
        ('pay(a=1) → {"ok": true}', "good", "message 0"),
        ("pay(a=1) → no answer", "", "message 0"),
    ]


@pytest.mark.parametrize(
    ("native", "ok", "value", "let_through"),
    [
        (True, True, True, True),
        (False, False, False, False),
        ((True, {"a": 1}), True, {"a": 1}, True),
        ((False, "no"), False, "no", True),
        ({"a": 1}, True, {"a": 1}, True),
        (None, False, None, True),
    ],
)
def test_a_tools_own_answer_is_read(
    native: object, ok: bool, value: object, let_through: bool
) -> None:
    found = success_first_outcome(native)
    assert (found.ok, found.value, found.let_through) == (ok, value, let_through)
