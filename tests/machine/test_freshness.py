"""What is remembered of every call, and until when its answer says how things are."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from vm_programs import PROGRAMS
from vm_runs import Run

from sopilot.handbook.model import ASK_USER, CONFIRM
from sopilot.machine.evidence import is_current, may_disturb, stale_since
from sopilot.machine.layout import Limits, Programs
from sopilot.machine.state import CallRecord, Configuration
from sopilot.program.model import ActionFacts
from sopilot.trace.events import DomainCall, DomainResult, Note, UserSaid
from sopilot.values.json import JSON, key_of

FACTS = {
    "read_money": ActionFacts({}, changes=(), reads=("money",)),
    "read_all": ActionFacts({}, changes=()),
    "pay": ActionFacts({}, changes=("money",), reads=("money",)),
    "rename": ActionFacts({}, changes=("names",), reads=("names",)),
    "reset": ActionFacts({}),
}
GUARDED = Programs({}, {}, Limits(), frozenset({"pay"}), FACTS)
UNGUARDED = Programs({}, {}, Limits(), frozenset({"pay"}))


@pytest.mark.parametrize(
    ("programs", "action", "verifier", "may"),
    [
        (GUARDED, "pay", "read_money", True),
        (GUARDED, "rename", "read_money", False),
        (GUARDED, "rename", "read_all", True),
        (GUARDED, "reset", "read_money", True),
        (GUARDED, "read_all", "read_money", False),
        (GUARDED, "nobody_said", "read_money", True),
        (GUARDED, "rename", "nobody_said", True),
        (GUARDED, "read_money", "nobody_said", False),
        (UNGUARDED, "pay", "read_money", True),
        (UNGUARDED, "rename", "read_money", False),
    ],
)
def test_what_may_change_what_is_read(
    programs: Programs, action: str, verifier: str, may: bool
) -> None:
    assert may_disturb(programs, action, verifier) is may


SEEN = CallRecord(10, "c", "read_money", {"a": 1}, seq=12, ok=True, value=5)
READ = SEEN._replace(succeeded=12, success_call=10, touched=12)


def after(action: str, arguments: Mapping[str, JSON], touched: int) -> Configuration:
    done = CallRecord(1, "d", action, arguments, seq=touched, ok=True, touched=touched)
    answers = {"read_money": {key_of(READ.arguments): READ}}
    answers[action] = {**answers.get(action, {}), key_of(arguments): done}
    return Configuration(answers=answers)


@pytest.mark.parametrize(
    ("action", "touched", "stale"),
    [
        ("pay", 9, False),
        ("pay", 10, False),
        ("pay", 11, True),  # while it was being read
        ("pay", 13, True),
        ("pay", -1, False),
        ("rename", 13, False),
        ("reset", 13, True),
    ],
)
def test_stale_by_what_was_done_since_it_was_asked(action: str, touched: int, stale: bool) -> None:
    now = after(action, {}, touched)
    found = stale_since(GUARDED, now, "read_money", READ)
    assert found == (f"`{action}` (#{touched}) may have changed it since" if stale else "")
    assert is_current(GUARDED, now, SEEN) is not stale


# --- what is remembered of a call -----------------------------------------------------


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
