"""Handbooks of labelled traces, compiled.

``random_world`` has trees over every kind of rule, whose truths its predicates have by value.
``value_world`` has one guarded payment, and leaves of every kind that a proof can rest on.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from random_handbooks import random_tree

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
from sopilot.handbook.requirements import (
    All,
    AnyOf,
    Constant,
    First,
    InOrder,
    Leaf,
    Name,
    Path,
    Tree,
)
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


class World:
    """Programs with the machine that runs them."""

    def __init__(self, handbook: Handbook) -> None:
        self.handbook = handbook
        compiler = Compiler(handbook.actions, handbook.predicates)
        self.programs: Mapping[str, Program] = {
            name: compiler.compile(handbook, procedure, source_hash="0").program
            for name, procedure in handbook.procedures.items()
        }
        self.machine = Machine(self.programs, hashes=dict.fromkeys(self.programs, "0" * 64))


def random_world(rng: random.Random) -> World:
    predicates = {p.name: p for p in (_random_predicate(rng, n) for n in range(rng.randint(3, 6)))}
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

    def leaf() -> Leaf:
        name = rng.choice(list(predicates))
        return Leaf(name, (("v", Name(rng.choice(INPUTS))),), rng.random() < 0.8)

    procedures = {
        goal: Procedure(
            goal,
            goal,
            random_tree(rng, rng.randint(1, 9), leaf, widest=4),
            says=f"How to {goal}.",
            arguments=tuple((name, Name(name)) for name in INPUTS),
        )
        for goal in GOALS
    }
    return World(Handbook("random", actions=actions, predicates=predicates, procedures=procedures))


def _random_predicate(rng: random.Random, number: int) -> Predicate:
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


# --- one guarded payment -----------------------------------------------------------------

PAY, OTHER = "pay", "touch"
TOPICS = ("money", "weather")
LIMIT = 100
SIDES = ("read", "covers", "both", "last", "named", "linked", "each", "two_ways", "gate", "model")
"""Kinds of leaves beside the one that a trace is about."""


@dataclass
class ValueWorld(World):
    """``kinds`` are the predicates' and ``truths`` what they are; ``target`` is the predicate
    that a violation is about. ``topic`` is what the other goal changes, where it says so."""

    handbook: Handbook
    kinds: Mapping[str, str]
    truths: Mapping[str, bool]
    target: str
    topic: str | None

    def __post_init__(self) -> None:
        super().__init__(self.handbook)


def value_world(
    rng: random.Random,
    kind: str,
    *,
    negated: bool = False,
    approval: bool = False,
    topic: str | None = None,
) -> ValueWorld:
    kinds = {"p0": kind, "fine": "read"}
    truths = {"p0": not negated, "fine": True}
    target: Tree = _leaf("p0", kind, wanted=not negated)
    leaves = [target]
    for number in range(1, rng.randint(1, 4)):
        side = rng.choice(SIDES)
        kinds[f"p{number}"], truths[f"p{number}"] = side, True
        leaves.append(_leaf(f"p{number}", side))
    if rng.random() < 0.4:
        # The first of two ways is shut, and the program goes by the other.
        kinds["shut"], truths["shut"] = "read", False
        way = rng.choice((AnyOf, First))
        leaves[0] = way((_leaf("shut", "read"), target))
    rng.shuffle(leaves)
    tree = leaves[0] if len(leaves) == 1 else rng.choice((All, InOrder))(tuple(leaves))
    predicates = {name: _predicate(name, one) for name, one in kinds.items()}
    actions = _actions(predicates, topic)
    actions[PAY] = Action(
        PAY,
        (Input("user"), Input("amount", "number")),
        irreversible=not approval,
        approval=Approval(("boss",)) if approval else None,
        recheck=False,
    )
    procedures = {
        PAY: Procedure(PAY, PAY, tree, arguments=(_own("user"), _own("amount"))),
        OTHER: Procedure(OTHER, OTHER, _leaf("fine", "read"), arguments=(_own("user"),)),
    }
    book = Handbook("values", actions=actions, predicates=predicates, procedures=procedures)
    return ValueWorld(book, kinds, truths, "p0", topic)


def _own(name: str) -> tuple[str, Name]:
    return name, Name(name)


def _parameters(kind: str) -> tuple[str, ...]:
    return ("user", "amount") if kind in ("covers", "quote") else ("user",)


def _leaf(predicate: str, kind: str, *, wanted: bool = True) -> Leaf:
    return Leaf(predicate, tuple(_own(name) for name in _parameters(kind)), wanted)


def _predicate(name: str, kind: str) -> Predicate:
    user = (_own("user"),)
    look, peek = ActionCall(f"look_{name}", user), ActionCall(f"peek_{name}", user)
    plain = Predicate(name, _parameters(kind), says=f"{name} holds of {{user}}.")
    ok = "result.ok"
    match kind:
        case "read":
            return replace(plain, recipes=((look,),), verdict=ok)
        case "covers":
            return replace(plain, recipes=((look,),), verdict="result.limit >= amount")
        case "quote":
            asked = ActionCall(f"quote_{name}", (_own("user"), _own("amount")))
            return replace(plain, recipes=((asked,),), verdict=ok)
        case "both":
            both = f"results.look_{name}.ok && results.peek_{name}.ok"
            return replace(plain, recipes=((look, peek),), verdict=both)
        case "last":
            return replace(plain, recipes=((look, peek),), verdict=ok)
        case "named":
            house = ActionCall(f"look_{name}", (("user", Constant("house")),), "theirs")
            mine = replace(look, name="mine")
            return replace(plain, recipes=((mine, house),), verdict="results.mine.ok")
        case "linked":
            found = Path(f"find_{name}", ("key",))
            case_ = ActionCall(f"case_{name}", (("key", found),))
            return replace(plain, recipes=((ActionCall(f"find_{name}", user), case_),), verdict=ok)
        case "each":
            legs = Path(f"list_{name}", ("legs",))
            leg = ActionCall(
                f"leg_{name}", (("key", Path("leg", ("key",))),), each=legs, element="leg"
            )
            every = "result.all(one, one.ok)"
            recipe = (ActionCall(f"list_{name}", user), leg)
            return replace(plain, recipes=(recipe,), verdict=every)
        case "two_ways":
            return replace(plain, recipes=((look,), (peek,)), verdict=ok)
        case "gate":
            opening = ActionCall(f"login_{name}", (*user, ("secret", Name("secret"))))
            closing = ActionCall(f"logout_{name}", user)
            return replace(plain, established_by=opening, closed_by=closing)
        case "model" | "unsaid":
            return replace(plain, recipes=((look,),), judged_by_model=kind == "model")
    raise AssertionError(kind)


def _actions(predicates: Mapping[str, Predicate], topic: str | None) -> dict[str, Action]:
    reads = None if topic is None else (TOPICS[0],)
    found = {
        EXTRA: Action(EXTRA, (Input("user"),)),
        OTHER: Action(OTHER, (Input("user"),), changes=None if topic is None else (topic,)),
    }
    for predicate in predicates.values():
        calls = [call for recipe in predicate.recipes for call in recipe]
        calls += [one for one in (predicate.established_by, predicate.closed_by) if one is not None]
        for call in calls:
            inputs = tuple(
                Input(name, "number" if name == "amount" else "string")
                for name, _ in call.arguments
            )
            # A login of these worlds looks, and changes nothing that anybody reads.
            quiet = () if predicate.established_by is not None else None
            found.setdefault(call.action, Action(call.action, inputs, reads=reads, changes=quiet))
    return found
