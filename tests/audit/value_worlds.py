"""Handbooks with one guarded payment, and leaves of every kind that a proof can rest on."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from trace_programs import World

from sopilot.compiler.pipeline import Compiler
from sopilot.handbook.model import (
    Action,
    ActionCall,
    Approval,
    Handbook,
    Input,
    Predicate,
    Procedure,
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
from sopilot.machine.machine import Machine
from sopilot.program.model import Program

GOAL, OTHER, WANDER = "pay", "touch", "wander"
TOPICS = ("money", "weather")
LIMIT = 100
SIDES = ("read", "covers", "both", "last", "named", "linked", "each", "two_ways", "gate", "model")
"""Kinds of leaves beside the one that a trace is about."""


@dataclass(frozen=True)
class ValueWorld(World):
    """``kinds`` are the predicates' and ``truths`` what they are; ``target`` is the predicate
    that a violation is about. ``topic`` is what the other goal changes, where it says so."""

    kinds: Mapping[str, str]
    truths: Mapping[str, bool]
    target: str
    topic: str | None


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
    actions[GOAL] = Action(
        GOAL,
        (Input("user"), Input("amount", "number")),
        irreversible=not approval,
        approval=Approval(("boss",)) if approval else None,
        recheck=False,
    )
    procedures = {
        GOAL: Procedure(GOAL, GOAL, tree, arguments=(_own("user"), _own("amount"))),
        OTHER: Procedure(OTHER, OTHER, _leaf("fine", "read"), arguments=(_own("user"),)),
    }
    book = Handbook("values", actions=actions, predicates=predicates, procedures=procedures)
    compiler = Compiler(book.actions, book.predicates)
    programs: dict[str, Program] = {}
    for name, one in procedures.items():
        program = compiler.compile(book, one, source_hash="0").program
        programs[name] = program
    machine = Machine(programs, hashes=dict.fromkeys(programs, "0" * 64))
    return ValueWorld(book, programs, machine, kinds, truths, "p0", topic)


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
        WANDER: Action(WANDER, (Input("user"),)),
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
