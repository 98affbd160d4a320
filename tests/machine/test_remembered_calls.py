"""What is remembered of every call and its answer."""

from __future__ import annotations

import pytest
from vm_programs import PROGRAMS
from vm_runs import Run

from sopilot.handbook.model import ASK_USER, CONFIRM
from sopilot.trace.events import DomainCall, DomainResult, Note, UserSaid
from sopilot.values.json import JSON, key_of


def remembered(run: Run, action: str, **arguments: JSON) -> tuple[object, ...]:
    one = run.configuration.answers[action][key_of(arguments)]
    return one.call_seq, one.seq, one.ok, one.succeeded, one.success_call, one.touched


def test_one_answer_to_a_call_and_one_call_under_an_id() -> None:
    run = Run(PROGRAMS)
    assert run.no(DomainResult("c", True, None)) == "no-such-call"
    run.ok(DomainCall("c", "look", {}))
    assert run.no(DomainCall("c", "look", {})) == "call-pending"
    run.ok(DomainResult("c", True, None))
    assert run.no(DomainResult("c", True, None)) == "no-such-call"
    run.ok(DomainCall("c", "look", {}))


@pytest.mark.parametrize("question", [ASK_USER, CONFIRM])
def test_a_question_is_answered_by_the_latest_message(question: str) -> None:
    """By that one and no other."""
    run = Run(PROGRAMS)
    run.ok(DomainCall("early", question, {"x": 1}))  # 0
    run.ok(DomainCall("look", "look", {}))
    run.ok(UserSaid("one"))  # 2
    run.ok(DomainCall("late", question, {"x": 1}))
    run.ok(UserSaid("two"))  # 4
    heard = {name: one.heard for name, one in run.configuration.pending.items()}
    assert heard == {"early": 4, "look": -1, "late": 4}
    run.ok(DomainResult("late", True, {"message": 4}))
    run.ok(DomainResult("early", True, {"message": 2}))
    assert remembered(run, question, x=1) == (3, 5, True, 5, 3, 5)


@pytest.mark.parametrize("answer", [{"message": 3}, {"message": 0}, {}, None, {"message": "1"}])
def test_what_no_message_says_answers_no_question(answer: JSON) -> None:
    run = Run(PROGRAMS)
    run.ok(DomainCall("q", ASK_USER, {"x": 1}))
    run.ok(UserSaid("one"))  # 1
    run.ok(DomainResult("q", True, answer))
    assert remembered(run, ASK_USER, x=1)[2:] == (False, -1, -1, -1)


def test_the_clock_and_a_change_of_programs() -> None:
    run = Run(PROGRAMS)
    run.tool("look")
    run.ok(DomainCall("q", ASK_USER, {}))
    run.ok(UserSaid("yes"))
    run.ok(DomainResult("q", True, {"message": 3}))
    run.ok(Note("clock", {"now": "2026-01-01T00:00:00Z"}))
    assert run.configuration.clock == "2026-01-01T00:00:00Z"
    run.ok(Note("anything", {"now": "later"}))
    assert run.configuration.clock == "2026-01-01T00:00:00Z"
    assert set(run.configuration.answers) == {"look", ASK_USER}
    run.ok(Note("program_changed", {}))
    assert set(run.configuration.answers) == {"look"}
    run.ok(Note("clock", {"now": 5}))
    assert run.configuration.clock == ""
    assert [event.seq for event in run.events] == list(range(9))
