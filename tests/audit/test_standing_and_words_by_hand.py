"""Where a program stands, and what was said, once in a thousand traces: case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from readings_at_hand import REF, TRANSFERS, at, audit_state, ending, event, position
from vm_programs import ERRAND, LOGGED_IN, program
from vm_runs import Run, decided

from sopilot.audit.audit import judge_chain, read_events
from sopilot.audit.disclosure import judge_told
from sopilot.audit.domain_calls import _was_said
from sopilot.audit.endings import _not_given, remaining_checks
from sopilot.audit.state import SessionCall, UnmetCheck
from sopilot.handbook.model import CONFIRM
from sopilot.machine.layout import lay_out
from sopilot.messages.diagnostic import Severity
from sopilot.program.model import (
    Act,
    Ask,
    Check,
    Choose,
    CompleteStep,
    Do,
    FailStep,
    Function,
    Kind,
    Literal,
    Local,
    Option,
    Unknown,
)
from sopilot.trace.chain import Head, genesis, seal_all
from sopilot.trace.events import DomainCall, DomainResult, Start

# --- where the program stands -----------------------------------------------------------


ERRANDS = {"errand": ERRAND}
CHECK = Check("c", "logged_in", (("username", Local("u")),), "s", unmet="no")


def test_the_checks_that_are_left_behind_other_steps() -> None:
    steps = (
        Ask("a", ("x",)), Do("d", "Look.", ("search",)),
        Choose("o", "?", (Option("one", "c"), Option("two", "no"))),
        CHECK, CompleteStep("yes"), FailStep("no"),
    )  # fmt: skip
    code = lay_out(program("go", Function("go", Kind.PROCESS, ("u",), steps), LOGGED_IN))
    for label in ("a", "d", "o", "c"):
        assert [one.predicate for one in remaining_checks(at(label, {"u": 1}, code))] == [
            "logged_in"
        ]
    assert remaining_checks(at("yes", {"u": 1}, code)) == []


# --- words ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "heard", "severity"),
    [
        ("the account of ann is frozen", "", Severity.WARNING),
        ("The Account of ann  is FROZEN. Please wait.", "", Severity.WARNING),
        ("it is open: the account of ann is open", "", Severity.WARNING),
        ("please call us", "", None),
        ("please call us at 5551", "", Severity.NOTE),
        ("please call us at 5551", "my number is 5551", None),
        ("please call us at 55510", "", None),
        ("no, 42 and ann and call", "", None),
        ("it says shut", "", Severity.NOTE),
        ("it says odd", "", None),
        ("ann-1 it is", "", None),
    ],
)
def test_what_the_customer_was_told(said: str, heard: str, severity: Severity | None) -> None:
    run, process = audit_state(TRANSFERS), at("act")
    run.processes["p1"] = process
    answer = {"status": "shut", "how": "odd", "phone": 5551, "n": 42, "who": "ann-1", "ok": True}
    run.session_calls.append(
        SessionCall(3, "look", {"user": "ann-1"}, "p1", answered=4, ok=True, value=answer)
    )
    process.unmet.append(
        UnmetCheck("frozen", "frozen", "The account of ann is open.",
                   "The account of ann is frozen.", "", "Please call us.", True, (4,), 6)
    )  # fmt: skip
    process.unmet.append(replace(process.unmet[0], customer_message=""))
    events = [
        event("user_said", 2, "user", text=heard),
        event("assistant_said", 4, text=said),
        event("note", 8, text=said),
        event("assistant_said", 9, text=said),
    ]
    judge_told(run, events)
    assert [(one.seq, one.code, one.severity) for one in run.findings] == (
        [] if severity is None else [(9, "tipped-off", severity)]
    )
    for one in run.findings:
        what = "the sentence" if severity is Severity.WARNING else "what the verifier answered"
        assert one.explanation == (
            f"the customer was told {what} about `frozen`, and may hear only: Please call us."
        )
        assert (one.process, one.predicate, one.sentence) == (
            "p1", "frozen", "The account of ann is open.",
        )  # fmt: skip


def test_what_may_be_said_is_told_to_nobody() -> None:
    """Its own words are no tip-off, even where the sentence stands in them."""
    run, process = audit_state(TRANSFERS), at("act")
    run.processes["p1"] = process
    process.unmet.append(
        UnmetCheck("p", "p", "Please wait.", "Please wait", "", "Please wait. Thanks", False, (), 3)
    )
    judge_told(run, [event("assistant_said", 4, text="please wait. thanks")])
    assert run.findings == []


@pytest.mark.parametrize(
    ("value", "was_said"),
    [
        ({"message": 6, "said": "Yes.", "answer": "yes"}, True),
        ({"message": 6, "said": "Yes.", "answer": "no"}, False),
        ({"message": 6, "said": "yes!", "answer": "yes"}, False),
        ({"message": 5, "said": "Yes.", "answer": "yes"}, False),
        ({"message": 2, "said": "Yes.", "answer": "yes"}, False),
        ({"message": 5, "said": REF, "answer": "yes"}, True),
        ({"message": 6, "said": REF, "answer": "yes"}, True),
        ({"message": 2, "said": REF, "answer": "yes"}, False),
        ({"said": "Yes.", "answer": "yes"}, False),
        ("no object", True),
    ],
)
def test_whether_the_user_said_so(value: Any, was_said: bool) -> None:
    run = audit_state(TRANSFERS)
    run.user_messages = {2: "Yes.", 5: "Yes.", 6: "Yes.", 11: "Yes."}
    told = event("domain_result", 9, "runtime", ok=True, value=value)
    assert _was_said(run, CONFIRM, 3, told) is was_said
    failed = event("domain_result", 9, "runtime", ok=False, value=value)
    assert _was_said(run, CONFIRM, 3, failed) is True
    if isinstance(value, dict) and value.get("message") == 6:
        assert _was_said(run, CONFIRM, 3, told) is False  # a message answers one question


def test_questions_of_other_programs_are_put_anew() -> None:
    run = Run({"errand": ERRAND})
    run.ok(Start("errand", {"what": "x"}))
    run.ok(DomainCall("c1", CONFIRM, {"action": "pay"}))
    run.ok(DomainResult("c1", True, {"said": "yes"}))
    run.ok(DomainCall("c2", "search"))
    run.ok(DomainResult("c2", True, 1))
    last = ending(run, "note", run.place, name="program_changed", details={})
    read = read_events(ERRANDS, [*run.events, last], changes={last.seq: ERRANDS})
    assert [one.action for one in read.session_calls] == ["search"]
    read = read_events(ERRANDS, [*run.events, last])
    assert [one.action for one in read.session_calls] == [CONFIRM, "search"]


def test_what_the_user_said_is_kept_as_it_was_said() -> None:
    run = Run({"errand": ERRAND})
    run.ok(Start("errand", {"what": "x"}))
    said = [ending(run, "user_said", run.place, text=text, moved=None) for text in ("Hi", REF)]
    said[1] = said[1]._replace(seq=2)
    assert read_events(ERRANDS, [*run.events, *said]).user_messages == {1: "Hi", 2: None}


@pytest.mark.parametrize(
    ("spoken", "step", "missing"),
    [
        ([("your username?", "no")], Ask("a", ("username",)), ["username"]),
        ([("your username?", "my username is x")], Ask("a", ("username",)), []),
        ([("your name?", "no")], Ask("a", ("username",)), []),
        ([(None, "no")], Ask("a", ("username",)), []),
        ([("your username?", "no")], Check("c", "f", (("x", Local("username")),), "s"),
         ["username"]),
        ([("your username?", "no")], Act("c", "f", (("x", Unknown("username")),)), ["username"]),
        ([("your username?", "no")], Act("c", "f", (("x", Literal("username")),)), []),
        ([("your username?", "no")], CompleteStep("done"), []),
        ([("the amount?", "no")], Ask("a", ("amount",)), []),
    ],
)  # fmt: skip
def test_what_the_user_was_asked_for_and_did_not_say(
    spoken: list[Any], step: Any, missing: list[str]
) -> None:
    run, process = audit_state(TRANSFERS), at("act", {"amount": 5})
    process.unanswered = spoken
    assert _not_given(process, replace(position(run, process), step=step)) == missing


def test_a_chain_that_was_cut_off() -> None:
    sealed = seal_all(decided().events, genesis("s"))
    head = Head("s", len(sealed) - 1, sealed[-1].hash)
    assert judge_chain(sealed, "s", head) == (None, True)
    broken, whole = judge_chain(sealed[:-1], "s", head)
    assert whole is False
    assert broken is not None
    assert (broken.seq, broken.explanation) == (
        len(sealed) - 1,
        f"the chain breaks at index {len(sealed) - 1}: events behind the last one are missing",
    )
