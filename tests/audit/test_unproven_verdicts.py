"""*True* that rests on nothing: failed calls, and answers that no verdict can read."""

from __future__ import annotations

from typing import Any

import pytest
from test_audit_trace import BOOK

from sopilot.audit.audit import audit_trace
from sopilot.audit.report import Report
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.expressions import judge
from sopilot.machine.machine import Machine
from sopilot.trace.events import Call, DomainCall, DomainResult, Return, Start

PROGRAMS = {goal: unit.program for goal, unit in compile_handbook(BOOK).items()}


def judged(*answers: tuple[bool, Any], holds: bool, with_judge: bool = True) -> Report:
    """`funds` judged after these answers of `read_balance`."""
    machine = Machine(PROGRAMS, hashes=dict.fromkeys(PROGRAMS, "0" * 64))
    configuration, events = machine.initial(), []
    operations: list[Any] = [Start("pay", {"user": "ann", "amount": 5}), Call()]
    operations += [
        DomainCall("login", "login", {"user": "ann", "password": "x"}),
        DomainResult("login", True, True),
        Return(True),
        Call(),
    ]
    for number, (ok, value) in enumerate(answers):
        operations.append(DomainCall(f"c{number}", "read_balance", {"user": "ann"}))
        operations.append(DomainResult(f"c{number}", ok, value))
    operations.append(Return(holds))
    for operation in operations:
        outcome = machine.step(configuration, operation, at=0.0)
        assert outcome.accepted, outcome.events[-1]
        configuration = outcome.configuration
        events.extend(outcome.events)
    return audit_trace(PROGRAMS, events, judge=judge if with_judge else None, ended=False)


FAILED = (False, {"error": "timeout"})
UNREADABLE = [None, "the balance is 10, trust me", {"amount": 10}, [10]]


@pytest.mark.parametrize("answer", [FAILED, *((True, value) for value in UNREADABLE)])
def test_true_needs_an_answer_that_shows_it(answer: tuple[bool, Any]) -> None:
    report = judged(answer, holds=True)
    assert [finding.code for finding in report.findings] == ["unproven-verdict"]
    assert report.score_card.checks_with_evidence == 1, "only the login"
    assert report.score_card.evidence_coverage == 0.5


@pytest.mark.parametrize("answer", [FAILED, *((True, value) for value in UNREADABLE)])
def test_false_may_rest_on_a_failure(answer: tuple[bool, Any]) -> None:
    assert judged(answer, holds=False).clean


def test_a_second_try_that_answers_proves_it() -> None:
    report = judged(FAILED, (True, {"balance": 10}), holds=True)
    assert report.clean
    assert report.score_card.evidence_coverage == 1.0


def test_without_a_machine_verdict_a_success_is_the_models_to_judge() -> None:
    report = judged((True, "prose"), holds=True, with_judge=False)
    assert (report.findings, report.clean) == ((), None)
    failed = judged(FAILED, holds=True, with_judge=False)
    assert [finding.code for finding in failed.findings] == ["unproven-verdict"]
