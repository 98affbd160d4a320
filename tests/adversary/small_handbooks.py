"""Small handbooks, each with two errands and an alphabet of moves, for exhaustive play."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from adversary.errands import act_arguments, value_for
from adversary.facts import FACTS, Fact
from adversary.handbooks import PARAMETERS, Book, Plan, build
from adversary.random_handbooks import gate_actions
from adversary.recipes import Constant, next_call
from adversary.requirements import Argument, Group, Leaf, Not, Procedure, Tree, leaves_of
from adversary.simulator import Simulator
from adversary.tools import CHANGERS, GATE_TOOLS, TOOLS
from adversary.values import JSON
from sopilot.trace.events import Operation, Return, Start


@dataclass(frozen=True)
class Begin:
    """A call that the simulator carries out at once and answers when it is delivered."""

    action: str
    arguments: dict[str, JSON]


@dataclass(frozen=True)
class Deliver:
    """The answer to the oldest call that waits for one."""


Move = Operation | tuple[str, dict[str, JSON]] | Begin | Deliver


@dataclass(frozen=True)
class SmallCase:
    name: str
    book: Book
    sim: Simulator
    alphabet: tuple[Move, ...]


_PAIRS = (
    ("all", "logged_in", "covered"),
    ("in_order", "logged_in", "confirmed"),
    ("all", "covered", "small"),
    ("any", "covered", "frozen"),
    ("first", "covered", "small"),
    ("any", "trusted", "covered"),
    ("first", "frozen", "covered"),
    ("all", "case_closed", "logged_in"),
    ("any", "landed", "logged_in"),
    ("all", "stopped", "backed"),
    ("first", "sober", "small"),
    ("all", "member", "blocked"),
)


def small_cases() -> Iterator[SmallCase]:
    """Every predicate alone, its opposite alone, and pairs under every operator."""
    for name, fact in FACTS.items():
        yield _case(name, _leaf(fact))
        if not fact.one_sided:
            yield _case(f"not {name}", Not(_leaf(fact)))
    for operator, *names in _PAIRS:
        one, other = (_leaf(FACTS[name]) for name in names)
        yield _case(f"{operator} {' '.join(names)}", Group(operator, (one, other)))
        yield _case(f"{operator} not {' '.join(names)}", Group(operator, (Not(one), other)))


_GATES = frozenset(tool.name for tool in GATE_TOOLS)


def _leaf(fact: Fact) -> Leaf:
    terms: list[Argument] = []
    for name, _ in fact.parameters:
        constants: dict[str, Argument] = {
            "most": "largest",
            "largest": Constant(50),
            "group": Constant("vip"),
        }
        terms.append(constants.get(name, name))
    return Leaf(fact, tuple(terms))


def _case(name: str, tree: Tree) -> SmallCase:
    facts = [leaf.fact for leaf in leaves_of(tree)]
    names = {
        term: kind
        for leaf in leaves_of(tree)
        for (_, kind), term in zip(leaf.fact.parameters, leaf.terms, strict=True)
        if isinstance(term, str) and term not in PARAMETERS
    }
    goal = _goal(names)
    plan = Plan([Procedure(goal, goal, tree)], [])
    plan.inputs[goal] = {**TOOLS[goal].inputs, **names}
    read = [reading.action for fact in facts for way in fact.recipes for reading in way]
    plan.actions = list(
        dict.fromkeys([*read, *(one for fact in facts for one in gate_actions(fact))])
    )
    topics = {topic for action in plan.actions for topic in TOOLS[action].reads}
    changers = [tool.name for tool in CHANGERS if tool.changes & topics][:1]
    plan.actions += [*changers, goal]
    plan.extra[goal] = {"irreversible": True}
    if "take_token" in plan.actions:
        plan.extra["take_token"] = {"changes": ["tokens"]}
    book = build(plan)
    sim, right, wrong = _situation(book, goal)
    return SmallCase(name, book, sim, _alphabet(book, sim, goal, right, wrong, facts))


def _goal(names: dict[str, str]) -> str:
    """An action that changes what the requirement is about, where there is one."""
    if "amount" in names and "user" in names:
        return "pay"
    if "booking" in names:
        return "clear_booking"
    if "line" in names:
        return "ban"
    return "close_account" if "user" in names else "open_door"


Values = dict[str, JSON]


def _situation(book: Book, goal: str) -> tuple[Simulator, Values, Values]:
    """A simulator with one errand that is allowed (once gates are open) and one that is not."""
    procedure = book.procedures[goal]
    names = list(book.inputs[goal])
    best: tuple[Simulator, Values, Values] | None = None
    for seed in range(200):
        rng = random.Random(seed)
        sim = Simulator(rng)
        friendly = sim.with_open_gates()
        drawn = [{name: value_for(name, rng) for name in names} for _ in range(12)]
        allowed = [
            one
            for one in drawn
            if book.simulator_allows(friendly, goal, act_arguments(book, procedure, one))
            or book.simulator_allows(sim, goal, act_arguments(book, procedure, one))
        ]
        denied = [one for one in drawn if one not in allowed]
        best = best or (sim, drawn[0], drawn[1])
        if allowed and denied:
            return sim, allowed[0], denied[0]
    assert best is not None
    return best


def _alphabet(
    book: Book, sim: Simulator, goal: str, right: Values, wrong: Values, facts: list[Fact]
) -> tuple[Move, ...]:
    moves: list[Move] = [
        Start(goal, right),
        Start(goal, wrong),
        Start(goal, {}),
        Return(True),
        Return(False),
        (goal, dict(right)),
        (goal, dict(wrong)),
        (goal, _mixed(right, wrong)),
    ]
    for values in (right, wrong):
        for fact in facts:
            for recipe in fact.recipes:
                moves += _readings(book, sim, recipe, values)
    for action in book.tools:
        if action in ("login", "confirm_code"):
            moves += [(action, _secrets(sim, action, values)) for values in (right, wrong)]
        elif action in _GATES:
            inputs = TOOLS[action].inputs
            moves.append((action, {name: right.get(name, "ann") for name in inputs}))
        elif action not in book.guarded and TOOLS[action].changes:
            rng = random.Random(action)
            given = {name: value_for(name, rng) for name in TOOLS[action].inputs}
            moves.append((action, {**given, **{one: right[one] for one in given if one in right}}))
    begun = [
        Begin(*move) for move in moves if isinstance(move, tuple) and _is_awaited(move[0], book)
    ]
    if begun:
        moves += [begun[0], Deliver()]
    unique: list[Move] = []
    for move in moves:
        if move not in unique:
            unique.append(move)
    return tuple(unique)


def _mixed(right: Values, wrong: Values) -> Values:
    """What was checked, but for one value."""
    name = next((name for name in reversed(right) if right[name] != wrong[name]), "")
    return {**right, name: wrong[name]} if name else dict(right)


def _is_awaited(action: str, book: Book) -> bool:
    return action not in book.guarded and (action in _GATES or bool(TOOLS[action].changes))


def _readings(book: Book, sim: Simulator, recipe: object, values: Values) -> list[Move]:
    """The calls that the recipe makes in the simulator as it is at first."""
    made: list[Move] = []
    answers: dict[str, JSON] = {}
    asked = {"voucher": "gift-1", "group": "vip"}
    for _ in range(4):
        found = next_call(recipe, {**PARAMETERS, **asked, **values}, answers)  # type: ignore[arg-type]
        if found is None:
            break
        reading, given = found
        arguments = dict(zip(book.inputs[reading.action], given, strict=False))
        made.append((reading.action, arguments))
        _, answer = TOOLS[reading.action].run(sim, arguments)
        reading.answered(answers, answer)
    return made


def _secrets(sim: Simulator, action: str, values: Values) -> Values:
    user = values.get("user", "ann")
    known = user if isinstance(user, str) else ""
    if action == "login":
        return {"user": user, "password": sim.passwords.get(known, "")}
    return {"user": user, "code": sim.codes.get(known, "")}
