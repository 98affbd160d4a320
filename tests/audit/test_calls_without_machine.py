"""The calls of an agent without a machine, as the events of its session tell them."""

from __future__ import annotations

from typing import Any

import pytest
from random_transcripts import BOOKS

from sopilot.audit.leaf_reading import Unreadable
from sopilot.audit.transcripts import _changed_to, _gone_for, _told, transcript_of
from sopilot.trace.events import Event

REF = {"$ref": "00", "bytes": 5}


def event(seq: int, kind: str, **payload: Any) -> Event:
    return Event(seq, 0.0, "user", kind, None, "", payload)


SAID = [
    event(0, "user_said", text="please\nname: Bob\namount: 5"),
    event(1, "assistant_said", text="How much?"),
    event(2, "domain_call", call_id="c", action="pay", arguments={"a": 1}),
    event(3, "user_said", text="amount: 7\nor close_account"),
    event(4, "domain_result", call_id="c", ok=True, value={"b": 2}),
    event(5, "domain_result", call_id="d", ok=True, value=1),
    event(6, "domain_call", call_id="e", action="wire", arguments={}),
]


def test_a_transcript_of_events() -> None:
    found = transcript_of(SAID)
    assert [
        (one.index, one.message, one.action, one.arguments, one.ok, one.value, one.answered,
         one.let_through)
        for one in found.calls
    ] == [
        (2, 2, "pay", {"a": 1}, True, {"b": 2}, True, True),
        (6, 6, "wire", {}, False, None, False, False),
    ]  # fmt: skip
    assert (found.messages, found.replies) == (7, 1)
    assert found.dialog == "How much?\namount: 7\nor close_account"
    assert found.told == {"name": "Bob", "amount": 7}
    assert transcript_of([]).replies == 0
    withheld = [*SAID, event(7, "assistant_said", text=REF)]
    assert transcript_of(withheld).dialog == ""
    with pytest.raises(Unreadable):
        transcript_of([event(0, "domain_result", call_id="c", ok=True, value=REF)])
    assert _told("a: 1\n b: 2\nc:3\nd: [1") == {"a": 1, "d": "[1"}


@pytest.mark.parametrize(
    ("said", "goals", "changed"),
    [
        (["close account", "pay"], ["close_account"], False),
        (["pay", "rather close account"], ["close_account"], True),
        (["pay", "Close_Account!"], ["other", "close_account"], True),
        (["pay", "close accounts"], ["close_account"], False),
        (["pay", REF], ["close_account"], True),
        ([REF, "pay"], ["close_account"], False),
        ([], ["close_account"], False),
    ],
)
def test_whether_the_user_changed_over(said: list[Any], goals: list[str], changed: bool) -> None:
    events = [event(seq, "user_said", text=text) for seq, text in enumerate(said)]
    assert _changed_to(events, goals) is changed


def test_what_was_gone_for() -> None:
    book = BOOKS["approved"]
    (goal,) = [name for name, one in book.procedures.items() if one.action == "pay"]
    assert _gone_for(book, transcript_of(SAID), goal) == [goal]
    assert _gone_for(book, transcript_of(SAID), None) == [goal]
    assert _gone_for(book, transcript_of(SAID[:2]), goal) == [goal]
    assert _gone_for(book, transcript_of(SAID[:2]), None) == []
