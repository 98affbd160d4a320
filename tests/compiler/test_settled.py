"""What earlier checks have settled is dropped, and `show --as explanation` says so."""

from __future__ import annotations

import pytest

from sopilot.compiler.pipeline import Compiled, Compiler
from sopilot.handbook.model import Action, ActionCall, Handbook, Input, Predicate, Procedure
from sopilot.handbook.requirements import All, AnyOf, First, InOrder, Leaf, Name, Tree
from sopilot.program.model import Check

X = (("v", Name("x")),)


def leaf(name: str, wanted: bool = True) -> Leaf:
    return Leaf(name, X, wanted)


def compiled(
    tree: Tree, *, free: str = "", gate: str = "", changing: str = "", complete: bool = False
) -> Compiled:
    actions = {"goal": Action("goal", (Input("x"),))}
    predicates = {}
    for name in "abcd":
        look = f"look_{name}"
        changes = ("things",) if name == changing else None
        actions[look] = Action(look, (Input("v"),), changes=changes)
        call = ActionCall(look, (("v", Name("v")),))
        if name in gate:
            predicates[name] = Predicate(name, ("v",), f"{name}.", established_by=call)
        elif name in free:
            predicates[name] = Predicate(name, ("v",), f"{name}.", tool_free=True)
        else:
            predicates[name] = Predicate(name, ("v",), f"{name}.", recipes=((call,),))
    procedures = {"goal": Procedure("goal", "goal", tree)}
    handbook = Handbook("h", actions=actions, predicates=predicates, procedures=procedures)
    compiler = Compiler(actions, predicates, evidence_complete=complete)
    return compiler.compile(handbook, handbook.procedures["goal"])


def test_an_option_that_contradicts_what_is_required_is_dropped() -> None:
    found = compiled(InOrder((leaf("a"), First((leaf("a", False), leaf("b"))))))
    assert found.explanation.tree == InOrder((leaf("a"), leaf("b")))
    (gone,) = found.explanation.dropped
    assert (gone.what, gone.known, gone.impossible) == (leaf("a", False), leaf("a"), True)


def test_a_repeat_in_another_group_is_dropped() -> None:
    tree = InOrder((leaf("a"), First((InOrder((leaf("a"), leaf("b"))), leaf("c")))))
    found = compiled(tree)
    assert found.explanation.tree == InOrder((leaf("a"), First((leaf("b"), leaf("c")))))
    assert [gone.impossible for gone in found.explanation.dropped] == [False]


def test_what_an_option_asks_before_it_fails_is_still_asked() -> None:
    """Evidence is owed in the order of the chain, and for every option of an `any`."""
    chain = First((InOrder((leaf("b"), leaf("a", False))), leaf("c")))
    assert compiled(InOrder((leaf("a"), chain))).explanation.dropped == ()
    every = AnyOf((All((leaf("a", False), leaf("b"))), leaf("c")))
    assert compiled(InOrder((leaf("a"), every))).explanation.dropped == ()


def test_a_gate_may_open_and_a_verifier_may_change_things() -> None:
    tree = InOrder((leaf("a", False), leaf("b"), First((leaf("a"), leaf("c")))))
    assert compiled(tree, gate="a").explanation.dropped == ()
    assert compiled(tree, changing="b").explanation.dropped == ()
    assert compiled(tree).explanation.dropped != ()


def test_what_nothing_could_satisfy_stays_as_it_was_written() -> None:
    found = compiled(InOrder((leaf("a"), leaf("a", False))))
    assert found.explanation.dropped == ()


@pytest.mark.parametrize(
    ("tree", "scheduled"),
    [
        (AnyOf((leaf("d"), leaf("a"))), First((leaf("a"), leaf("d")))),
        (
            AnyOf((leaf("a"), leaf("d"), leaf("b"))),
            First((AnyOf((leaf("a"), leaf("b"))), leaf("d"))),
        ),
        (AnyOf((leaf("a"), leaf("b"))), AnyOf((leaf("a"), leaf("b")))),
    ],
)
def test_options_that_owe_no_evidence_are_tried_while_nothing_holds(
    tree: Tree, scheduled: Tree
) -> None:
    found = compiled(tree, free="d")
    assert found.explanation.tree == scheduled
    assert found.explanation.postponed == ((leaf("d"),) if tree != scheduled else ())


@pytest.mark.parametrize("free", ["", "d", "ad", "abd"])
def test_the_papers_schedule_checks_every_option_before_it_decides(free: str) -> None:
    """Lemma 2: each child of an ordinary `any` is called on every path to its result."""
    tree = AnyOf((leaf("d"), leaf("a"), leaf("b")))
    found = compiled(tree, free=free, complete=True)
    assert found.explanation.tree == tree
    assert found.explanation.postponed == ()
    (body,) = [
        one for one in found.program.functions.values()
        if {step.function for step in one.steps if isinstance(step, Check)} == set("dab")
    ]  # fmt: skip
    checks = [step for step in body.steps if isinstance(step, Check)]
    assert [step.function for step in checks] == ["d", "a", "b"]
    assert not [step for step in body.steps[:2] if not isinstance(step, Check)]


def test_options_behind_one_that_holds_are_dropped_once_by_what_settled_it_last() -> None:
    both = All((leaf("a"), leaf("b")))
    found = compiled(InOrder((leaf("a"), leaf("b"), First((both, leaf("c"), leaf("d"))))))
    assert [(one.what, one.known, one.impossible) for one in found.explanation.dropped] == [
        (leaf("a"), leaf("a"), False),
        (leaf("b"), leaf("b"), False),
        (leaf("c"), leaf("b"), False),
        (leaf("d"), leaf("b"), False),
    ]
