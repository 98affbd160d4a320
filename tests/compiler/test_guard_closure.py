"""Lemma 1: the guard closure is the least one, checked against brute force."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import NamedTuple

from abstract_executor import Executor
from random_trees import as_reference, tree_of
from reference_schedule import RefTree, leaf_set, least_closure, truth

from sopilot.compiler.pipeline import Compiled, compile_procedure
from sopilot.handbook.model import Action, ActionCall, Handbook, Input, Predicate, Procedure
from sopilot.handbook.requirements import All, AnyOf, InOrder, Leaf, Name, Tree

X = (("v", Name("x")),)


def gate(name: str, action: str) -> Predicate:
    return Predicate(name, ("v",), says=f"{name}.", established_by=ActionCall(action, X_CALL))


X_CALL = (("v", Name("v")),)


def guarded_handbook(
    rng: random.Random, rules: int, gates: int
) -> tuple[Handbook, dict[str, set[str]]]:
    """Random verifiers and gates; a gate's action may require lower gates only (no cycle).

    Also returns, independently of the compiler, what each predicate directly needs.
    """
    needs: dict[str, set[str]] = {}
    actions = {"goal": Action("goal", (Input("x"), Input("y")))}
    predicates: dict[str, Predicate] = {}
    for number in range(gates):
        below = {f"g{i}" for i in range(number) if rng.random() < 0.35}
        needs[f"g{number}"] = below
        actions[f"open{number}"] = Action(
            f"open{number}", (Input("v"), Input("secret")), requires=_required(rng, below)
        )
        predicates[f"g{number}"] = gate(f"g{number}", f"open{number}")
    for number in range(rules):
        below = {f"g{i}" for i in range(gates) if rng.random() < 0.25}
        needs[f"p{number}"] = below
        requires = _required(rng, below)
        if rng.random() < 0.3 and gates:
            # An optional gate is no requirement: it must not be hoisted.
            optional = AnyOf((Leaf("p0", X_CALL), Leaf(f"g{rng.randrange(gates)}", X_CALL)))
            requires = All((requires, optional))
        actions[f"look{number}"] = Action(f"look{number}", (Input("v"),), requires=requires)
        predicates[f"p{number}"] = Predicate(
            f"p{number}",
            ("v",),
            says=f"p{number}.",
            recipes=((ActionCall(f"look{number}", X_CALL),),),
        )
    return Handbook("guards", actions=actions, predicates=predicates), needs


def _required(rng: random.Random, names: set[str]) -> Tree:
    ordered = sorted(names)
    rng.shuffle(ordered)
    wrapped = [Leaf(name, X_CALL) for name in ordered]
    return InOrder(tuple(wrapped)) if rng.random() < 0.5 else All(tuple(wrapped))


def mixed_tree(rng: random.Random, leaves: int, rules: int, gates: int) -> Tree:
    """A random tree over rules in which some leaves are gates, and every value is ``x``."""

    def rename(tree: Tree) -> Tree:
        if isinstance(tree, Leaf):
            if gates and rng.random() < 0.2:
                return Leaf(f"g{rng.randrange(gates)}", X, True)
            return Leaf(tree.predicate, X, tree.wanted)
        renamed: Tree = type(tree)(tuple(rename(child) for child in tree.children))
        return renamed

    return rename(tree_of(rng, leaves, rules))


class Case(NamedTuple):
    """``needs``: predicate → what it needs directly."""

    handbook: Handbook
    needs: dict[str, set[str]]
    tree: Tree
    compiled: Compiled


def guarded_case(rng: random.Random) -> Case:
    rules, gates = rng.randint(1, 6), rng.randint(0, 6)
    handbook, needs = guarded_handbook(rng, rules, gates)
    tree = mixed_tree(rng, rng.randint(1, 14), rules, gates)
    handbook = replace(handbook, procedures={"goal": Procedure("goal", "goal", tree)})
    return Case(handbook, needs, tree, compile_procedure(handbook, "goal"))


def augmented(case: Case) -> RefTree:
    """The requirement with the hoisted guards in front."""
    hoisted = [g.leaf.predicate for g in case.compiled.explanation.guards if g.hoisted]
    guards = (("leaf", name, (("v", "<x>"),), True) for name in hoisted)
    return ("chain", (*guards, as_reference(case.tree)))


def check_guards(seed: int) -> None:
    rng = random.Random(seed)
    case = guarded_case(rng)
    guards = case.compiled.explanation.guards
    in_tree = leaf_set(as_reference(case.tree))
    expected = least_closure({name for name, _, _ in in_tree}, case.needs.__getitem__)
    found = [guard.leaf.predicate for guard in guards]
    assert set(found) == expected
    assert len(found) == len(set(found)), "a gate was closed over twice"
    for position, name in enumerate(found):
        assert case.needs[name] <= set(found[:position]), "prerequisites come first"
    hoisted = [guard.leaf.predicate for guard in guards if guard.hoisted]
    positive = {name for name, _, wanted in in_tree if wanted}
    assert set(hoisted) == expected - positive, "nothing is hoisted that the tree has"

    reference = augmented(case)
    keys = sorted({(p, a) for p, a, _ in leaf_set(reference)})
    values = {key: rng.random() < 0.75 for key in keys}
    run = Executor(case.compiled.program).run(values.__getitem__)
    assert run.accepted == truth(reference, values.__getitem__)
    assert ("goal" in run.acted) == run.accepted
    judged = [name for name, _ in run.judged]
    assert set(judged) <= {name for name, _, _ in in_tree} | expected
    first = [name for name in dict.fromkeys(judged) if name in hoisted]
    assert judged[: len(first)] == first, "hoisted gates run before everything else"


def test_closure_is_minimal_and_ordered() -> None:
    for seed in range(1_500):
        check_guards(seed)
