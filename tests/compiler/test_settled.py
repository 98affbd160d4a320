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


A, B, C, D, NOT_A = leaf("a"), leaf("b"), leaf("c"), leaf("d"), leaf("a", False)
MAY_OPEN = InOrder((NOT_A, B, First((A, C))))
Dropped = tuple[Leaf, Leaf, bool]
"""What is dropped, what settled it, and whether it could not hold any more."""
SETTLED: dict[str, tuple[Tree, dict[str, str], Tree | None, list[Dropped]]] = {
    "an option that contradicts what is required": (
        InOrder((A, First((NOT_A, B)))), {}, InOrder((A, B)), [(NOT_A, A, True)],
    ),
    "a repeat in another group": (
        InOrder((A, First((InOrder((A, B)), C)))), {}, InOrder((A, First((B, C)))),
        [(A, A, False)],
    ),
    "options behind one that holds, by what settled it last": (
        InOrder((A, B, First((All((A, B)), C, D)))), {}, InOrder((A, B)),
        [(A, A, False), (B, B, False), (C, B, False), (D, B, False)],
    ),
    "a check that came out otherwise": (MAY_OPEN, {}, InOrder((NOT_A, B, C)), [(A, NOT_A, True)]),
    # Evidence is owed in the order of the chain, and for every option of an `any`.
    "not: asked before the option fails": (
        InOrder((A, First((InOrder((B, NOT_A)), C)))), {}, None, [],
    ),
    "not: an option of an `any`": (InOrder((A, AnyOf((All((NOT_A, B)), C)))), {}, None, []),
    "not: a gate may open": (MAY_OPEN, {"gate": "a"}, None, []),
    "not: a verifier may change things": (MAY_OPEN, {"changing": "b"}, None, []),
    "not: nothing could satisfy it": (InOrder((A, NOT_A)), {}, None, []),
}  # fmt: skip


@pytest.mark.parametrize(("tree", "options", "left", "dropped"), SETTLED.values(), ids=SETTLED)
def test_what_earlier_checks_settle_is_dropped(
    tree: Tree, options: dict[str, str], left: Tree | None, dropped: list[Dropped]
) -> None:
    found = compiled(tree, **options).explanation  # type: ignore[arg-type]
    assert [(gone.what, gone.known, gone.impossible) for gone in found.dropped] == dropped
    assert left is None or found.tree == left


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
