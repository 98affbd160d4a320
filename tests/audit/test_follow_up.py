"""What follows a refusal: shown with it, and noted where nobody started it."""

from __future__ import annotations

import pytest
from audit_desk import Desk

from small_desks import programs_of
from sopilot.audit.report import Report
from sopilot.audit.text import render_text
from sopilot.program.codec import program_from_yaml, program_to_yaml
from sopilot.trace.events import (
    AssistantSaid,
    Call,
    DomainCall,
    DomainResult,
    Fail,
    Operation,
    Return,
    Start,
)

HANDBOOK = """
handbook: door-desk
actions:
  open: {input: {user: string}}
  hand_over: {}
  look: {input: {user: string}}
predicates:
  member(user): {says: "{user} is a member.", verify: look(user)}
  calm(user): {says: "{user} is calm.", verify: arguments}
procedures:
  open:
    requires:
      in_order:
        - {requires: member(user), otherwise: hand_over}
        - {requires: calm(user), otherwise: Come back tomorrow.}
  hand_over: {}
"""
PROGRAMS = {
    name: program_from_yaml(program_to_yaml(program))
    for name, program in programs_of(HANDBOOK).items()
}
LOOKED = (DomainCall("c1", "look", {"user": "ann"}), DomainResult("c1", True, {}))
STRANGER: tuple[Operation, ...] = (
    Start("open", {"user": "ann"}),
    Call(),
    *LOOKED,
    Return(False, ("#4",)),
    Fail("no member"),
)
ANGRY: tuple[Operation, ...] = (
    *STRANGER[:4],
    Return(True, ("#4",)),
    Call(),
    Return(False),
    Fail("not calm"),
)


def audited(*operations: Operation) -> Report:
    return Desk(PROGRAMS).do(*operations).report()


def notes(report: Report) -> list[str]:
    return [one.code for one in report.findings if one.code == "otherwise-not-started"]


@pytest.mark.parametrize(
    ("operations", "follows"),
    [(STRANGER, "then start `hand_over`"), (ANGRY, "tell the user: Come back tomorrow.")],
)
def test_a_refusal_says_what_follows_the_requirement(
    operations: tuple[Operation, ...], follows: str
) -> None:
    report = audited(*operations)
    assert [one.follows for one in report.refusals] == [follows]
    assert f"    next: {follows}" in render_text(report).splitlines()
    assert notes(report) == []  # nothing came after it: who knows


def test_what_was_to_be_started_and_was_not_is_a_note() -> None:
    assert notes(audited(*STRANGER, AssistantSaid("Sorry."))) == ["otherwise-not-started"]
    assert notes(audited(*ANGRY, AssistantSaid("Come back tomorrow."))) == []
    assert notes(audited(*STRANGER, AssistantSaid("Sorry."), Start("hand_over", {}))) == []
    by_tool = (DomainCall("c2", "hand_over", {}), DomainResult("c2", True, {}))
    assert notes(audited(*STRANGER, *by_tool)) == []
