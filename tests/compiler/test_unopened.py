"""A check that comes to its turn while its gate may be shut is reported, and no other."""

from __future__ import annotations

import random
from typing import Any

import pytest
from random_trees import as_reference
from reference_schedule import walk
from test_guard_closure import guarded_handbook, mixed_tree

from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.model import Handbook, Procedure
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.requirements import AnyOf, First, Leaf, Tree

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


@pytest.mark.parametrize("seed", range(200))
def test_without_a_report_no_check_meets_a_shut_gate(seed: int) -> None:
    """On trees without ``any``, so that the schedule stops at the first failure."""
    rng = random.Random(seed)
    guarded, needs = guarded_handbook(rng, 3, 3)
    requires = _jumping(mixed_tree(rng, rng.randint(1, 7), 3, 3))
    procedures = {"goal": Procedure("goal", "goal", requires)}
    handbook = Handbook("guards", "", {}, guarded.actions, guarded.predicates, procedures)
    explanation = compile_procedure(handbook, "goal").explanation
    scheduled = as_reference(explanation.tree)
    shut = False
    for _ in range(40):
        holds = {name: rng.random() < 0.6 for name in handbook.predicates}
        opened: set[str] = set()

        def judge(
            key: tuple[str, Any], holds: dict[str, bool] = holds, opened: set[str] = opened
        ) -> bool:
            nonlocal shut
            shut = shut or not needs[key[0]] <= opened
            if holds[key[0]]:
                opened.add(key[0])
            return holds[key[0]]

        walk(scheduled, judge, [])
    assert not shut or explanation.unopened


def _jumping(tree: Tree) -> Tree:
    if isinstance(tree, Leaf):
        return tree
    kind = First if isinstance(tree, AnyOf) else type(tree)
    jumping: Tree = kind(tuple(_jumping(child) for child in tree.children))
    return jumping
