"""Ends, returns and amendments that the program does not make there."""

from __future__ import annotations

from typing import Any

import pytest
from readings_at_hand import accepted, ending, findings
from vm_programs import ERRAND
from vm_runs import ARGUMENTS, Run, logged_in

from sopilot.trace.events import Call, Complete, DomainCall, Start

# --- ends -------------------------------------------------------------------------------


def test_a_completion_where_none_is_due() -> None:
    run = accepted()
    early = ending(run, "complete", "transfer@act", label="act", accepting=False, summary="",
                   unwound=["transfer"])  # fmt: skip
    assert findings(run, early) == [(early.seq, "completion-without-goal")]
    run.tool("transfer", True, **ARGUMENTS)
    assert run.place == "transfer@finish"
    assert findings(run, ended=False) == []
    run.ok(Complete("done"))
    assert findings(run) == []
    errand = Run({"errand": ERRAND})
    errand.ok(Start("errand", {"what": "x"}))
    early = ending(errand, "complete", "errand@pick", label="pick", accepting=False, summary="",
                   unwound=["errand"])  # fmt: skip
    assert findings(errand, early) == [(early.seq, "completion-without-goal")]


def test_what_returns_where_nothing_was_called() -> None:
    run = accepted()
    back = ending(run, "return", "transfer@act", holds=True)
    assert findings(run, back, ended=False) == [(back.seq, "inconsistent-trace")]
    run = logged_in()
    run.ok(Call())
    back = ending(run, "return", "transfer/any_of_funds@check_1", holds=True)
    assert findings(run, back, ended=False) == [(back.seq, "inconsistent-trace")]


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
    run = logged_in()
    run.ok(Call())
    run.ok(Call())
    run.tool("read_balance", "no", False, username="bob")
    numbers = {"login": 4, "failed": len(run.events) - 1}
    place = "transfer/any_of_funds/funds_cover@read"
    taken = numbers.get(result, result)
    over = ending(run, "reuse", place, label="read", result=taken, evidence=[taken])
    assert findings(run, over, ended=False)[-1] == (over.seq, "inconsistent-trace")


# --- what follows a wrong turn ----------------------------------------------------------


def test_nothing_more_is_said_of_a_process_that_is_lost() -> None:
    run = accepted()
    branch = next(one for one in run.events if one.kind == "select_branch")
    wrong = [
        one._replace(payload={**one.payload, "target": "refuse"}) if one is branch else one
        for one in run.events
    ]
    run.events[:] = wrong
    odd = ending(run, "emit_artifact", "nowhere", name="memo")
    (found,) = findings(run, odd, ended=False)
    assert found == (branch.seq, "wrong-branch")
