"""Other people's transcripts against a policy: what the user said before a call is heard."""

from __future__ import annotations

from typing import Any

import pytest
from policy_desk import TEXT

from sopilot.audit.transcript_files import read_messages
from sopilot.audit.transcripts import audit_transcript
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook

BOOK = load_handbook(
    TEXT.replace("parameters:\n", "parameters:\n  now: '2024-05-15T15:00:00-05:00'\n")
)
RESERVATION = {"user_id": "ann", "created_at": "2024-05-15T10:00:00", "cabin": "economy"}


def called(name: str, arguments: dict[str, Any], answer: object) -> list[dict[str, Any]]:
    return [
        {"role": "assistant", "tool_calls": [{"id": name, "name": name, "arguments": arguments}]},
        {"role": "tool", "tool_call_id": name, "content": answer},
    ]


def transcript(answer: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "yes hello, I am ann, cancel R1"},
        *called("read_user", {"user_id": "ann"}, {"user_id": "ann"}),
        *called("read_reservation", {"reservation_id": "R1"}, RESERVATION),
        {"role": "assistant", "content": "I would cancel R1. Is that right?"},
        {"role": "user", "content": answer},
        *called("cancel", {"reservation_id": "R1"}, {"done": True}),
    ]


@pytest.mark.parametrize(("answer", "found"), [("Yes, go ahead.", False), ("No, wait.", True)])
def test_the_last_word_before_the_call_is_the_answer(answer: str, found: bool) -> None:
    read = read_messages(transcript(answer))
    report = audit_transcript(BOOK, read, goal="cancel", judge=judge)
    about = [one for one in report.findings if "cancel_is_confirmed" in str(one)]
    assert bool(about) is found, report.findings


def test_the_request_is_no_yes_to_anything() -> None:
    messages = [one for one in transcript("") if "Is that right" not in str(one)]
    messages = [one for one in messages if one.get("content") != ""]
    report = audit_transcript(BOOK, read_messages(messages), goal="cancel", judge=judge)
    assert "cancel_is_confirmed" in {one.predicate for one in report.findings}
