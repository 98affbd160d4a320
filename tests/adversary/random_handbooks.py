"""Random handbooks: every way of verifying, every operator, several procedures at once."""

from __future__ import annotations

import random

from adversary.facts import FACTS, Fact
from adversary.handbooks import PARAMETERS, Book, Plan, build
from adversary.recipes import Constant, is_linked
from adversary.requirements import Argument, Group, Leaf, Not, Procedure, Tree, leaves_of, renamed
from adversary.tools import ASK, CHANGERS, GOALS, OF_A_CONNECTION, TOOLS, TOPICS
from adversary.values import JSON

_OPERATORS = ("all", "all", "in_order", "any", "first", "when")
_PRINCIPALS = ("served", "rang", "badged")
_NEWER = (
    "unknown_account", "was_frozen", "was_credited", "in_time", "slight", "wants", *_PRINCIPALS,
)  # fmt: skip
_NEWEST = (*_NEWER, "marked", "banned")


def random_book(rng: random.Random, *, recheck: bool = False, newer: bool = False) -> Book:
    """``newer``: of the newer constructs alone, as far as it can be."""
    # Recipes of several calls have more to go wrong than what is judged from the arguments.
    weighted = [fact for fact in FACTS.values() for _ in range(_weight(fact))]
    facts = list(
        {fact.name: fact for fact in rng.sample(weighted, rng.choice((2, 3, 3, 4)))}.values()
    )
    if newer:
        facts = [FACTS[name] for name in rng.sample(_NEWEST, 2)]
    elif rng.random() < 0.35:
        facts.append(FACTS["logged_in"])
    if not newer and rng.random() < 0.6:
        facts += [FACTS[name] for name in rng.sample(_NEWER, rng.choice((1, 2)))]
    if any(fact.principal for fact in facts) and rng.random() < 0.6:
        facts.append(FACTS[rng.choice(_PRINCIPALS)])
    facts = list({fact.name: fact for fact in facts}.values())
    often = 0.6 if newer else 0.2
    goals = rng.sample([tool.name for tool in GOALS], rng.choice((1, 1, 2)))
    plan = Plan([], [])
    for goal in goals:
        plan.inputs[goal] = dict(TOOLS[goal].inputs)
        tree = _tree(rng, facts, plan.inputs[goal], rng.choice((1, 1, 2, 2, 3)))
        computed = goal in ("pay", "transfer") and rng.random() < often
        plan.procedures.append(Procedure(goal, goal, _dressed(rng, tree), computed=computed))
        if rng.random() < 0.35:
            plan.procedures.append(_second(rng, goal, facts, plan))
    plan.confirmed = frozenset(goal for goal in goals if rng.random() < often)
    gates = rng.random()
    if gates < 0.15:
        plan.action_requires[goals[0]] = _leaf(rng, FACTS["logged_in"], plan.inputs[goals[0]])
    _choose_actions(rng, plan, goals)
    if newer and rng.random() < 0.4:
        # Guarded, and no procedure is for it: nothing may ever carry it out.
        strays = [tool.name for tool in GOALS if tool.name not in goals and tool.changes]
        stray = rng.choice(strays)
        _add_actions(plan, (stray,))
        plan.extra[stray] = {"irreversible": True}
    if gates > 0.85 and "read_account" in plan.actions:
        plan.private = True
        plan.action_requires["read_account"] = Leaf(FACTS["logged_in"], ("user",))
        _add_actions(plan, gate_actions(FACTS["logged_in"]))
    _mark(rng, plan, goals, recheck=recheck)
    return build(plan)


def _weight(fact: Fact) -> int:
    if any(len(recipe) > 1 and not is_linked(recipe) for recipe in fact.recipes):
        return 8
    return 1 + max((2 * len(recipe) for recipe in fact.recipes), default=0)


# --- trees ----------------------------------------------------------------------------


def _tree(rng: random.Random, facts: list[Fact], inputs: dict[str, str], depth: int) -> Tree:
    if depth <= 1 or rng.random() < 0.2:
        fact = rng.choice(facts)
        leaf = _leaf(rng, fact, inputs)
        return Not(leaf) if not fact.one_sided and rng.random() < 0.3 else leaf
    operator = rng.choice(_OPERATORS)
    count = 2 if operator == "when" else rng.choice((2, 2, 3))
    children = tuple(_tree(rng, facts, inputs, depth - 1) for _ in range(count))
    if operator == "when" and any(leaf.fact.one_sided for leaf in leaves_of(children[0])):
        operator = "all"
    group = Group(operator, children)
    one_sided = any(leaf.fact.one_sided for leaf in leaves_of(group))
    return Not(group) if not one_sided and rng.random() < 0.1 else group


def _dressed(rng: random.Random, tree: Tree) -> Tree:
    """Parts of it under a name, or with an `otherwise` of their own: that changes nothing."""
    if isinstance(tree, Group) and tree.operator in ("all", "in_order"):
        tree = Group(tree.operator, tuple(_dressed(rng, child) for child in tree.children))
    roll = rng.random()
    if roll < 0.15:
        return Group("otherwise", (tree,))
    return Group("named", (tree,)) if roll < 0.25 and not _is_dressed(tree) else tree


def _is_dressed(tree: Tree) -> bool:
    return isinstance(tree, Group) and (
        tree.operator in ("otherwise", "named") or any(map(_is_dressed, tree.children))
    )


def _leaf(rng: random.Random, fact: Fact, inputs: dict[str, str]) -> Leaf:
    return Leaf(fact, tuple(_term(rng, name, kind, inputs) for name, kind in fact.parameters))


def _term(rng: random.Random, name: str, kind: str, inputs: dict[str, str]) -> Argument:
    if name == "most":
        return rng.choice(("largest", Constant(50), Constant(7.5)))
    if name == "largest":
        return rng.choice((Constant(5), Constant(50)))
    if name == "group":
        return rng.choice(("circle", Constant("staff"), "circle"))
    if name == "user" and rng.random() < 0.25:
        name = "to"
    if name == "user" and rng.random() < 0.05:
        return Constant("ann")
    inputs.setdefault(name, kind)
    return name


def _second(rng: random.Random, goal: str, facts: list[Fact], plan: Plan) -> Procedure:
    """Another procedure of the same action, with an input fixed or under another name."""
    inputs = plan.inputs[goal]
    fixed: dict[str, Argument] = {}
    if "amount" in inputs and rng.random() < 0.5:
        fixed["amount"] = Constant(rng.choice((5, 50)))
    elif "user" in inputs and rng.random() < 0.6:
        fixed["user"] = "friend"
        if "to" in inputs and rng.random() < 0.5:
            fixed["to"] = "friend"
    names = {name: kind for name, kind in inputs.items() if name not in fixed}
    if "friend" in fixed.values():
        names["friend"] = "string"
    tree = renamed(_tree(rng, facts, dict(inputs), rng.choice((1, 2))), fixed)
    for leaf in leaves_of(tree):
        for (_, kind), term in zip(leaf.fact.parameters, leaf.terms, strict=True):
            if isinstance(term, str) and term not in names and term not in PARAMETERS:
                inputs[term] = names[term] = kind
    return Procedure(f"{goal}_special", goal, tree, fixed)


# --- actions --------------------------------------------------------------------------


def _add_actions(plan: Plan, names: tuple[str, ...]) -> None:
    plan.actions += [name for name in names if name not in plan.actions]


def _choose_actions(rng: random.Random, plan: Plan, goals: list[str]) -> None:
    trees = [one.requires for one in plan.procedures] + [*plan.action_requires.values()]
    used = dict.fromkeys(leaf.fact for tree in trees for leaf in leaves_of(tree))
    readers = {reading.action for fact in used for way in fact.recipes for reading in way}
    readers -= {ASK}
    if any(one.computed for one in plan.procedures):
        readers.add("read_account")
    _add_actions(plan, tuple(sorted(readers)))
    for fact in used:
        _add_actions(plan, gate_actions(fact))
    if "confirm_code" in plan.actions:
        plan.factor_survives_logout = rng.random() < 0.3
    read = {topic for name in readers for topic in TOOLS[name].reads}
    changers = [tool.name for tool in CHANGERS if tool.changes & read]
    rng.shuffle(changers)
    _add_actions(plan, tuple(changers[: rng.choice((0, 1, 2, 3))]))
    _add_actions(plan, tuple(goals))


def gate_actions(fact: Fact) -> tuple[str, ...]:
    """What opens and shuts it; nobody confirms a code without a login."""
    opening = ("login", "confirm_code") if fact.name == "confirmed" else ()
    calls = (fact.opened_by, fact.closed_by, fact.done)
    return (*opening, *(call.split("(")[0] for call in calls if call))


def _mark(rng: random.Random, plan: Plan, goals: list[str], *, recheck: bool) -> None:
    """Guards, and what changes and reads what: nothing, exactly, or more than is so."""
    spared = rng.choice(goals) if len(goals) > 1 and rng.random() < 0.15 else ""
    for name in plan.actions:
        said: dict[str, JSON] = plan.extra.setdefault(name, {})
        tool = TOOLS[name]
        if name in goals and name != spared:
            roll = rng.random()
            if roll < 0.9:
                said["irreversible"] = True
            if roll > 0.8:
                said["approval"] = "supervisor"
                if "amount" in plan.inputs[name] and rng.random() < 0.5:
                    said["approval"] = {"roles": ["supervisor"], "when": "amount > 50"}
            if recheck:
                said["recheck"] = True
        if name == "read_all" and rng.random() < 0.5:
            said["full_state"] = True
        must_say = name == "take_token"  # it stands in a recipe and changes something all the same
        if must_say or ((tool.changes or name in goals) and rng.random() < 0.5):
            said["changes"] = _topics(rng, tool.changes)
        elif tool.reads and rng.random() < 0.5:
            said["reads"] = _topics(rng, tool.reads)
        elif not (tool.changes or name in goals) and rng.random() < 0.2:
            said["read_only"] = True
        if name not in OF_A_CONNECTION and name not in goals and rng.random() < 0.3:
            said["state"] = "shared"
    for goal in goals:
        own = TOOLS[goal].inputs
        for name in plan.inputs[goal]:
            if name not in own and (name == "fee" or rng.random() < 0.15):
                plan.optional.add((goal, name))


def _topics(rng: random.Random, really: frozenset[str]) -> list[str]:
    more = {topic for topic in TOPICS if rng.random() < 0.1}
    return sorted(really | more)
