"""Which values a procedure may leave out, and which actions change nothing."""

from __future__ import annotations

import pytest

from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.program.model import Kind, Program

FEES = """\
handbook: fees
actions:
  read_limit: {input: {user: string, kind: {type: string, required: false}}}
  read_fee: {input: {fee: number}}
  pay:
    input:
      user: string
      fee: {type: number, required: false}
      kind: {type: string, required: false}
      details: {type: object, required: false}
    irreversible: true
    confirm: false
predicates:
  slight(fee): {says: ok, verify: arguments, verdict: "fee == null || fee < 5"}
  reversed(fee): {says: ok, verify: arguments, verdict: "null != fee && fee < 5"}
  unread(user, fee): {says: ok, verify: read_limit(user), verdict: result.ok}
  unsaid(fee): {says: ok, verify: arguments, verdict: "fee < 5"}
  looked_up(fee): {says: ok, verify: read_fee(fee), verdict: "fee == null || result.ok"}
  kept(user, kind): {says: ok, verify: "read_limit(user, kind)", verdict: result.ok}
  detailed(details):
    {says: ok, verify: read_fee(fee=details.fee), verdict: "details == null || result.ok"}
procedures:
  pay: {requires: %s}
"""


def program_of(text: str) -> Program:
    (compiled,) = compile_handbook(load_handbook(text)).values()
    return compiled.program


def optional_of(program: Program) -> dict[str, tuple[str, ...]]:
    return {
        item.predicate: item.optional
        for item in program.functions.values()
        if item.predicate and item.optional
    }


@pytest.mark.parametrize(
    ("requires", "expected"),
    [
        ("slight(fee)", {"slight": ("fee",)}),
        ("reversed(fee)", {"reversed": ("fee",)}),
        # The verdict says nothing about a missing value, or the recipe can't be called without it.
        ("'unread(user, fee)'", {"unread": ("fee",)}),
        ("unsaid(fee)", {}),
        ("looked_up(fee)", {}),
        ("detailed(details)", {}),
        # An optional input may be left out of the recipe's call.
        ("'kept(user, kind)'", {"kept": ("kind",)}),
        ("'kept(user, null)'", {"kept": ("kind",)}),
        ("'kept(user, \"vip\")'", {}),
        # A value that is always there isn't optional, and one use with a value decides.
        ("slight(user)", {}),
        ("['kept(user, kind)', 'kept(user, \"vip\")']", {}),
        # One check that needs the value doesn't hinder another predicate.
        ("[slight(fee), unsaid(fee)]", {"slight": ("fee",)}),
    ],
)
def test_parameters_that_may_have_no_value(
    requires: str, expected: dict[str, tuple[str, ...]]
) -> None:
    assert optional_of(program_of(FEES % requires)) == expected


@pytest.mark.parametrize(
    ("check", "optional"),
    [
        ("slight(fee)", {"fee"}),
        ("unsaid(fee)", set()),
        # `unsaid` needs the fee, so the whole group needs it.
        ("slight(fee), unsaid(fee)", set()),
        ("slight(fee), 'unread(user, fee)'", {"fee"}),
    ],
)
def test_values_that_a_group_of_checks_may_be_called_without(
    check: str, optional: set[str]
) -> None:
    """A function checks seven things at most, so each side becomes a group."""
    here, there = (
        ", ".join(f"'kept(user, \"{side}{n}\")'" for n in range(7)) for side in ("here", "there")
    )
    program = program_of(FEES % f"{{any: [{{all: [{check}, {here}]}}, {{all: [{there}]}}]}}")
    groups = [item for item in program.functions.values() if item.kind is Kind.GROUP]
    assert {name for item in groups for name in item.optional} == optional
    assert any("fee" in item.parameters for item in groups)


READING = """\
handbook: reading
actions:
  enter: {input: {user: string}, read_only: true}
  look: {input: {user: string}, read_only: true}
  peek: {input: {user: string}}
  note: {input: {user: string}, changes: []}
  send: {input: {user: string}}
predicates:
  known(user): {says: ok, verify: peek(user), verdict: result.ok}
  entered(user): {says: ok, established_by: enter(user)}
  sure(user): {says: ok, verify: user, question: Sure?}
procedures:
  send: {requires: [entered(user), known(user), sure(user)]}
"""


def test_actions_that_change_nothing_in_an_unguarded_handbook() -> None:
    """A login changes what is open, so `enter` isn't among them although it only reads."""
    assert program_of(READING).read_only == ("look", "note", "peek", "ask_user")
