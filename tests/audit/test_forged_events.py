"""Ends, returns and amendments that the program does not make there."""

from __future__ import annotations

from typing import Any

import pytest
from vm_programs import ERRAND
from vm_runs import ARGUMENTS, Run, decided, in_rule

from sopilot.audit.audit import audit_trace
from sopilot.trace.events import DomainCall, Event, SelectBranch, Start


def findings(run: Run, *more: Event, **options: Any) -> list[tuple[int, str]]:
    programs = {goal: layout.program for goal, layout in run.machine.programs.layouts.items()}
    report = audit_trace(programs, [*run.events, *more], **options)
    return [(finding.seq, finding.code) for finding in report.findings]


def accepted() -> Run:
    """At the goal's own call."""
    run = decided()
    run.ok(SelectBranch())
    return run


def ending(run: Run, kind: str, place: str, **payload: Any) -> Event:
    seq = len(run.events)
    return Event(seq, float(seq), "model", kind, "p1", place, payload)


def test_a_completion_where_none_is_due() -> None:
    errand = Run({"errand": ERRAND})
    errand.ok(Start("errand", {"what": "x"}))
    for run, place in ((accepted(), "transfer@act"), (errand, "errand@pick")):
        goal, _, label = place.partition("@")
        early = ending(
            run, "complete", place, label=label, accepting=False, summary="", unwound=[goal]
        )
        assert findings(run, early) == [(early.seq, "completion-without-goal")]


@pytest.mark.parametrize(
    ("arguments", "then"),
    [
        ({"amount": 100}, None),
        ({"amount": None}, None),
        ({"amount": 7}, "pays"),
        ({"amount": 7}, "calls"),
    ],
)
def test_an_amendment_that_could_not_be(arguments: Any, then: str | None) -> None:
    run = accepted()
    if then == "pays":
        run.tool("transfer", True, **ARGUMENTS)
    elif then == "calls":
        run.ok(DomainCall("x", "transfer", ARGUMENTS))
    other = ending(run, "amend", run.place, arguments=arguments)
    assert findings(run, other, ended=False) == [(other.seq, "inconsistent-trace")]


@pytest.mark.parametrize("result", [999, "login", "failed"])
def test_evidence_that_could_not_be_taken_over(result: Any) -> None:
    run = in_rule()
    run.tool("read_balance", "no", False, username="bob")
    numbers = {"login": 4, "failed": len(run.events) - 1}
    place = "transfer/any_of_funds/funds_cover@read"
    taken = numbers.get(result, result)
    over = ending(run, "reuse", place, label="read", result=taken, evidence=[taken])
    assert findings(run, over, ended=False)[-1] == (over.seq, "inconsistent-trace")
