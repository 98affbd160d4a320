"""What a proof knows of actions and names: types, what is changed, what is read."""

from __future__ import annotations

import pytest

from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.program.model import Program

DESK = """\
handbook: facts-desk
parameters: {most: 3}
actions:
  login: {input: {user: string, password: string}}
  logout: {input: {user: string}}
  read_account: {input: {user: string, year: {type: integer, required: false}}}
  read_rates: {input: {kind: string}, reads: [rates]}
  touch: {input: {user: string}, changes: [stamps]}
  audit_log: {read_only: true}
  note: {input: {user: string}}
  send: {input: {user: string, amount: number}, irreversible: true, changes: [balances]}
  wipe: {input: {user: string}, irreversible: true, recheck: true}
  approve_me: {input: {user: string}, approval: boss}
predicates:
  logged_in(user):
    says: "{user} has logged in."
    established_by: login(user, password)
    closed_by: logout(user)
  covered(user, amount, year):
    says: "{user} covers {amount} in {year}."
    verify: {all: [read_account(user, year), read_rates("day"), touch(user)]}
    verdict: results.read_account.balance >= amount
  approved(user):
    says: "{user} is approved."
    verify: approve_me(user)
    verdict: result.ok
procedures:
  send: {requires: [logged_in(user), "covered(user, amount, 2026)"]}
  read_rates: {requires: logged_in(kind)}
  check_year: {action: audit_log, requires: []}
  wipe: {requires: [approved(user)]}
"""


def _program(name: str = "send", text: str = DESK) -> Program:
    return compile_handbook(load_handbook(text))[name].program


@pytest.mark.parametrize(
    ("action", "changes", "reads"),
    [
        ("read_account", (), None),  # stands in a recipe
        ("login", None, None),  # opens a gate: who looks changes nothing, but this does something
        ("logout", None, None),
        ("audit_log", (), None),  # read_only, although a procedure is there for it
        ("read_rates", None, ("rates",)),  # in a recipe, but a procedure is there for it
        ("touch", ("stamps",), None),  # in a recipe, but it says otherwise
        ("approve_me", None, None),  # in a recipe, but guarded
        ("note", None, None),  # says nothing: it may change everything
        ("send", ("balances",), None),
        ("wipe", None, None),
    ],
)
def test_what_an_action_changes_and_reads(
    action: str, changes: tuple[str, ...] | None, reads: tuple[str, ...] | None
) -> None:
    facts = _program().actions[action]
    assert (facts.changes, facts.reads) == (changes, reads)


def test_a_handbook_that_guards_nothing_needs_no_facts() -> None:
    open_desk = DESK.replace(", irreversible: true", "").replace(", approval: boss", "")
    assert _program("send", open_desk).actions == {}
    assert _program("send", open_desk).types == _program().types


def test_names_have_the_types_of_what_they_become() -> None:
    assert _program().types == {"user": {"type": "string"}, "amount": {"type": "number"}}
    text = DESK.replace("  send: {req", "  send: {action: send(amount=sum), req").replace(
        "covered(user, amount, 2026)", "covered(user, sum, 2026)"
    )
    assert _program("send", text).types == {"user": {"type": "string"}, "sum": {"type": "number"}}
