"""Calls, chains, words and places, each by a table of cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from readings_at_hand import REF, audit_state
from vm_programs import ERRAND, TRANSFER
from vm_runs import Run, decided

from sopilot.audit.audit import audit_trace, judge_chain
from sopilot.audit.state import SessionCall, calls_of, newest_answer
from sopilot.handbook.model import CONFIRM
from sopilot.messages.diagnostic import Severity
from sopilot.trace.chain import genesis, seal_all
from sopilot.trace.events import DomainCall, DomainResult, Note, Start
from sopilot.trace.redaction import has_withheld, is_reference

# --- calls of a session ---------------------------------------------------------------


def made(seq: int, answered: int | None, message: Any = None, **more: Any) -> SessionCall:
    value = None if message is None else {"message": message}
    arguments = more.pop("arguments", {"a": 1})
    action = more.pop("action", "look")
    return SessionCall(seq, action, arguments, answered=answered, ok=True, value=value, **more)


@pytest.mark.parametrize(
    ("action", "calls", "newest"),
    [
        ("look", [], None),
        ("look", [(1, 2)], 1),
        ("look", [(1, 4), (2, 3)], 1),
        ("look", [(1, 2), (3, None)], 3),
        ("look", [(1, None), (2, 3)], 2),
        ("look", [(1, None)], 1),
        ("look", [(1, 4, 9), (2, 5, 8)], 2),
        (CONFIRM, [(1, 4, 9), (2, 5, 8)], 1),
        (CONFIRM, [(1, 4, 8), (2, 5, 9)], 2),
        (CONFIRM, [(1, 4, 8), (2, 5, 8)], 2),
        (CONFIRM, [(1, 4, 8), (2, 5)], 2),
        (CONFIRM, [(1, 4, 1), (2, 5, 0)], 1),
        (CONFIRM, [(1, None), (2, 5, 9)], 1),
    ],
)
def test_the_newest_answer(action: str, calls: list[tuple[Any, ...]], newest: int | None) -> None:
    several = [made(*one, action=action) for one in calls]
    several.append(made(7, 8, action=action, arguments={"a": 2}))
    several.append(made(9, 10, action="other"))
    found = newest_answer(several, action, {"a": 1.0})
    assert (found.seq if found is not None else None) == newest
    assert [one.seq for one in calls_of(several, action, {"a": 1})] == [
        one[0] for one in reversed(calls)
    ]


@pytest.mark.parametrize(
    ("answered", "ok", "unknown", "awaited", "may_have_run", "done_by"),
    [
        (None, False, False, True, True, float("inf")),
        (5, True, False, False, True, 5),
        (5, False, True, False, True, float("inf")),
        (5, False, False, False, False, 5),
        (0, False, False, False, False, 0),
    ],
)
def test_whether_a_call_may_have_run(
    answered: int | None, ok: bool, unknown: bool, awaited: bool, may_have_run: bool, done_by: float
) -> None:
    call = SessionCall(1, "pay", {}, answered=answered, ok=ok, unknown=unknown)
    assert (call.awaited, call.may_have_run, call.done_by()) == (awaited, may_have_run, done_by)


# --- values ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "withheld", "some"),
    [
        (REF, True, True), ({**REF, "x": 1}, False, False), ({"a": REF}, False, True),
        ([1, [REF]], False, True), ((REF,), False, True), ([], False, False),
        ("$ref", False, False), ({}, False, False), (None, False, False),
    ],
)  # fmt: skip
def test_what_is_withheld(value: Any, withheld: bool, some: bool) -> None:
    assert is_reference(value) is withheld
    assert has_withheld(value) is some


# --- chains and outcomes --------------------------------------------------------------


def test_a_chain_and_where_it_breaks() -> None:
    events = decided().events
    sealed = seal_all(events, genesis("s"))
    assert judge_chain([], "s", None) == (None, None)
    assert judge_chain(events, "s", None) == (None, None)
    assert judge_chain([*sealed[:1], *events[1:]], "s", None) == (None, None)
    assert judge_chain(sealed, "s", None) == (None, True)
    broken, whole = judge_chain([*sealed[:2], *sealed[3:]], "s", None)
    assert whole is False
    assert broken is not None
    assert (broken.code, broken.seq) == ("tampering", 3)
    assert broken.explanation == "the chain breaks at index 2: event 2 is not what was sealed"


def test_an_outcome_that_is_settled_is_history() -> None:
    run = Run({"errand": ERRAND})
    run.ok(Start("errand", {"what": "x"}))
    run.ok(DomainCall("c1", "search"))
    run.ok(Note("outcome_unknown", {"call_id": "c1"}))
    last = run.events[-1]
    run.events[-1] = last._replace(actor="runtime")

    def told() -> list[tuple[int, Severity, str]]:
        found = audit_trace({"errand": ERRAND}, run.events, ended=False).findings
        return [
            (one.seq, one.severity, one.explanation)
            for one in found
            if one.code == "unknown-outcome"
        ]

    words = "nobody knows whether `search` took effect"
    assert told() == [(2, Severity.WARNING, words)]
    run.ok(DomainResult("c1", True, "found"))
    assert told() == [(2, Severity.NOTE, f"{words} until it was settled")]


def test_an_action_that_only_reads() -> None:
    run = audit_state({"transfer": replace(TRANSFER, read_only=("look",))})
    assert run.only_reads("look") is True
    assert run.only_reads("read_balance") is False
    assert run.only_reads("transfer") is False
    opened = replace(TRANSFER, read_only=("login", "transfer"))
    run = audit_state({"transfer": opened})
    assert run.only_reads("login") is False
    assert run.only_reads("transfer") is False
