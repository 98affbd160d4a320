"""A check that comes to its turn while its gate may be shut is reported, and no other."""

from __future__ import annotations

import pytest

from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.reader import load_handbook

DESK = """\
handbook: desk
actions:
  login: {{input: {{user: string, password: string}}}}
  read_balance: {{input: {{user: string}}, requires: logged_in(user)}}
  look: {{input: {{user: string}}}}
  pay: {{input: {{user: string}}}}
predicates:
  logged_in(user): {{says: "{{user}} is in.", established_by: "login(user, password)"}}
  funds(user): {{says: "{{user}} has funds.", verify: read_balance(user)}}
  known(user): {{says: "{{user}} is known.", verify: look(user)}}
procedures:
  pay: {{requires: {requires}}}
"""


def reported(requires: str) -> list[tuple[str, str, bool]]:
    handbook = load_handbook(DESK.format(requires=requires))
    found = compile_procedure(handbook, "pay").explanation.unopened
    return [(one.check.predicate, one.gate.predicate, one.later) for one in found]


@pytest.mark.parametrize(
    "requires",
    [
        "{in_order: [logged_in(user), funds(user)]}",
        "{all: [funds(user), logged_in(user)]}",  # the order is free, so it is put right
        "funds(user)",  # put in front
        "{any: [{in_order: [logged_in(user), funds(user)]}, known(user)]}",
        "{in_order: [{first: [{all: [logged_in(user), known(user)]}, logged_in(user)]}, "
        "funds(user)]}",
    ],
)
def test_nothing_is_said_where_the_gate_is_open(requires: str) -> None:
    assert reported(requires) == []


@pytest.mark.parametrize(
    ("requires", "later"),
    [
        ("{in_order: [funds(user), logged_in(user)]}", True),
        ("{in_order: [{any: [logged_in(user), known(user)]}, funds(user)]}", False),
        ("{in_order: [{first: [logged_in(user), known(user)]}, funds(user)]}", False),
        ("{any: [logged_in(user), funds(user)]}", False),
        ("{first: [funds(user), logged_in(user)]}", True),
    ],
)
def test_a_check_whose_gate_may_be_shut_is_reported(requires: str, later: bool) -> None:
    assert reported(requires) == [("funds", "logged_in", later)]
