"""Random handbooks with every kind of rule, compiled, and the truth of their predicates."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sopilot.compiler.pipeline import Compiler
from sopilot.handbook.model import (
    Action,
    ActionCall,
    Approval,
    Handbook,
    Input,
    Predicate,
    Procedure,
    Recipe,
)
from sopilot.handbook.requirements import All, AnyOf, First, InOrder, Leaf, Name, Tree
from sopilot.machine.layout import Position
from sopilot.machine.machine import Machine
from sopilot.program.model import Check, Kind, Local, Program

INPUTS = ("x", "y")
GOALS = ("move", "close")
EXTRA = "wander"
"""An action that no recipe asks for."""
SHARED = ("read",)
"""Verifiers that predicates share, so that one result can serve twice."""
EXPIRES = 100
VALUE = {"type": ["string", "number"]}
"""Of every input: both kinds of value go everywhere, and ``1`` is never ``"1"``."""


def _input(name: str) -> Input:
    return Input(name, schema=VALUE)


@dataclass(frozen=True)
class World:
    """Programs with the machine that runs them."""

    handbook: Handbook
    programs: Mapping[str, Program]
    machine: Machine


def random_world(rng: random.Random) -> World:
    predicates = {p.name: p for p in (_predicate(rng, n) for n in range(rng.randint(3, 6)))}
    actions = {name: Action(name, (_input("v"),)) for name in (*SHARED, EXTRA)}
    for predicate in predicates.values():
        calls = [call for recipe in predicate.recipes for call in recipe]
        if predicate.established_by is not None:
            calls.append(predicate.established_by)
        for call in calls:
            inputs = ("v", "secret") if call.action.startswith("open") else ("v",)
            actions.setdefault(call.action, Action(call.action, tuple(map(_input, inputs))))
    gates = [name for name, p in predicates.items() if p.is_gate]
    for name in [n for n in actions if n.startswith("look")]:
        if gates and rng.random() < 0.3:
            required = Leaf(gates[0], (("v", Name("v")),))
            actions[name] = replace(actions[name], requires=required)
    for goal in GOALS:
        approval = None
        if rng.random() < 0.3:
            approval = Approval(("boss", "auditor"), rng.choice((1, 2)), EXPIRES)
        actions[goal] = Action(
            goal,
            tuple(map(_input, INPUTS)),
            irreversible=rng.random() < 0.4,
            approval=approval,
        )
    procedures = {
        goal: Procedure(
            goal,
            goal,
            _tree(rng, list(predicates), rng.randint(1, 9)),
            says=f"How to {goal}.",
            arguments=tuple((name, Name(name)) for name in INPUTS),
        )
        for goal in GOALS
    }
    book = Handbook("random", actions=actions, predicates=predicates, procedures=procedures)
    compiler = Compiler(book.actions, book.predicates)
    programs = {
        name: compiler.compile(book, one, source_hash="0").program
        for name, one in procedures.items()
    }
    hashes = dict.fromkeys(programs, "0" * 64)
    return World(book, programs, Machine(programs, hashes=hashes))


def _predicate(rng: random.Random, number: int) -> Predicate:
    name = f"p{number}"
    plain = Predicate(
        name,
        ("v",),
        says=f"P{number} holds of {{v}}.",
        remedy=f"Mend {name}.",
        judged_by_model=rng.random() < 0.8,
    )
    roll = rng.random()
    if roll < 0.2:
        call = ActionCall(f"open{number}", (("v", Name("v")), ("secret", Name("secret"))))
        return replace(plain, established_by=call)
    if roll < 0.3:
        return replace(plain, tool_free=True)
    own = ActionCall(f"look{number}", (("v", Name("v")),))
    second = ActionCall(f"peek{number}", (("v", Name("v")),))
    shared = ActionCall(SHARED[0], (("v", Name("v")),))
    recipes: tuple[Recipe, ...] = rng.choice(
        (
            ((own,),),
            ((own, second),),
            ((own,), (shared,)),
            ((shared,),),
            ((shared,),),
            ((own, shared), (second,)),
        )
    )
    verdict = f"result.{name}" if rng.random() < 0.7 else None
    return replace(plain, recipes=recipes, verdict=verdict)


def _tree(rng: random.Random, names: list[str], leaves: int, depth: int = 0) -> Tree:
    if leaves == 1 or depth > 3:
        name = rng.choice(names)
        return Leaf(name, (("v", Name(rng.choice(INPUTS))),), rng.random() < 0.8)
    parts = rng.randint(2, min(leaves, 4))
    cuts = sorted(rng.sample(range(1, leaves), parts - 1))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, leaves], strict=True)]
    operator = rng.choice((All, AnyOf, InOrder, First))
    tree: Tree = operator(tuple(_tree(rng, names, size, depth + 1) for size in sizes))
    return tree


def judge(expression: str, variables: Mapping[str, Any]) -> bool | None:
    """The verdicts of these handbooks: ``result.p3``."""
    result = variables["result"]
    said = result.get(expression.removeprefix("result.")) if isinstance(result, dict) else None
    return said if isinstance(said, bool) else None


def leaf_calls(here: Position, values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every call that a rule of the program asks for under the values of the goal's call."""

    def below(name: str, known: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        function = here.source.functions[name]
        for step in function.steps:
            if isinstance(step, Check):
                passed = {
                    parameter: known[term.name]
                    for parameter, term in step.arguments
                    if isinstance(term, Local) and term.name in known
                }
                yield from below(step.function, passed)
        if function.kind is Kind.RULE and "v" in known:
            layout = here.program.functions[name]
            for act in layout.recipe_acts:
                yield act.action, {"v": known["v"]}

    made: list[tuple[str, dict[str, Any]]] = []
    for one in below(here.source.entry, values):
        if one not in made:
            made.append(one)
            yield one
