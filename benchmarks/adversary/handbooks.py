"""A handbook with everything the adversary must know of it: its text, programs and trees."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from adversary.catalogue import FACTS, Fact
from adversary.newer_tools import ASK, CONFIRM, subject
from adversary.recipes import written
from adversary.requirements import (
    Procedure,
    Requirements,
    Tree,
    Words,
    is_met,
    leaves_of,
    operators_of,
    procedure_values,
    written_tree,
)
from adversary.tools import OPTIONAL, TOOLS
from adversary.values import JSON, is_number
from adversary.world import World
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.machine.machine import Machine
from sopilot.messages.errors import SopilotError
from sopilot.program.model import Program

PARAMETERS: dict[str, JSON] = {"largest": 500, "circle": "vip"}


@dataclass
class Plan:
    """What a handbook is to say. ``inputs``: action → input → type; ``extra``: action → keys."""

    procedures: list[Procedure]
    actions: list[str]
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)
    optional: set[tuple[str, str]] = field(default_factory=set)
    extra: dict[str, dict[str, JSON]] = field(default_factory=dict)
    action_requires: dict[str, Tree] = field(default_factory=dict)
    confirmed: frozenset[str] = frozenset()
    """Actions that the user must say yes to."""
    factor_survives_logout: bool = False
    private: bool = False


@dataclass(frozen=True)
class Book:
    text: str
    plan: Plan
    programs: Mapping[str, Program]
    machine: Machine
    procedures: Mapping[str, Procedure]
    guarded: frozenset[str]
    inputs: Mapping[str, Mapping[str, str]]
    facts: Mapping[str, Fact]
    tools: Sequence[str]
    """Everything that can be called, the goal actions too."""
    predicates_of: Mapping[str, tuple[str, ...]]
    """Procedure → the predicates of its requirement, and the constructs of it."""
    trusting: bool
    """Whether a model may judge something."""
    reads_clock: bool

    def world_allows(
        self,
        world: World,
        goal: str,
        arguments: Mapping[str, JSON],
        words: Words | None = None,
    ) -> bool:
        """Whether the world shows all that the procedure (and its action) requires, now."""
        procedure = self.procedures[goal]
        values = procedure_values(procedure, arguments)
        if values is None:
            return False
        if not is_met(procedure.requires, world, {**PARAMETERS, **values}, True, words):
            return False
        if procedure.computed and not _is_computed(world, arguments):
            return False
        if procedure.action in self.plan.confirmed:
            said = world.consents.get(subject(goal, arguments))
            if said != "yes" and not world.friendly:
                return False
        requires = self.plan.action_requires.get(procedure.action)
        return requires is None or is_met(
            requires, world, {**PARAMETERS, **dict(arguments)}, True, words
        )

    def answers_needed(
        self, world: World, goal: str, arguments: Mapping[str, JSON], words: Words | None
    ) -> frozenset[tuple[str, str]]:
        """The answers of the user without which the world would not allow it: it uses them up."""
        needed = set()
        for key in world.said:
            without = world.copy()
            without.said = {one: said for one, said in world.said.items() if one != key}
            if not self.world_allows(without, goal, arguments, words):
                needed.add(key)
        return frozenset(needed)


def _constructs(plan: Plan, procedure: Procedure) -> Iterator[str]:
    """What a procedure is made of beside predicates, for the count of what was carried out."""
    yield from {f"`{one}`" for one in operators_of(procedure.requires)} & _NEWER
    if procedure.computed:
        yield "`arguments`"
    if procedure.action in plan.confirmed:
        yield "`confirm`"
    if isinstance(plan.extra.get(procedure.action, {}).get("approval"), dict):
        yield "`approval … when`"


_NEWER = frozenset({"`when`", "`otherwise`", "`named`"})


def _is_computed(world: World, arguments: Mapping[str, JSON]) -> bool:
    account = world.accounts.get(arguments.get("user", ""))
    points = account.get("points") if account is not None else None
    amount = arguments.get("amount")
    return is_number(points) and is_number(amount) and bool(amount == points * 10)


def build(plan: Plan) -> Book:
    text = json.dumps(_handbook(plan), indent=1)
    handbook = load_handbook(text, "adversary.yaml")
    programs = {goal: unit.program for goal, unit in compile_handbook(handbook).items()}
    facts = {fact.name: fact for fact in _facts(plan)}
    guarded = {one.action for program in programs.values() for one in program.guarded}
    return Book(
        text,
        plan,
        programs,
        Machine(programs),
        {procedure.name: procedure for procedure in plan.procedures},
        frozenset(guarded),
        {
            action: plan.inputs.get(action, TOOLS[action].inputs)
            for action in (*plan.actions, CONFIRM, ASK)
        },
        facts,
        (*plan.actions, *_asked(plan, facts)),
        {
            procedure.name: (
                *{leaf.fact.name for leaf in leaves_of(procedure.requires)},
                *_constructs(plan, procedure),
            )
            for procedure in plan.procedures
        },
        any(fact.judged == "model" for fact in facts.values()),
        "in_time" in facts,
    )


def _asked(plan: Plan, facts: Mapping[str, Fact]) -> tuple[str, ...]:
    """The machine's own tools that this handbook has."""
    asks = (ASK,) if any(fact.question for fact in facts.values()) else ()
    return (*asks, *((CONFIRM,) if plan.confirmed else ()))


def _facts(plan: Plan) -> list[Fact]:
    trees = [procedure.requires for procedure in plan.procedures]
    trees += plan.action_requires.values()
    used = {leaf.fact.name for tree in trees for leaf in leaves_of(tree)}
    return [FACTS[name] for name in sorted(used)]


def _handbook(plan: Plan) -> dict[str, JSON]:
    named: Requirements = {}
    procedures = {one.name: _procedure(one, named) for one in plan.procedures}
    return {
        "handbook": "adversary-desk",
        "parameters": PARAMETERS,
        "actions": {action: _action(plan, action) for action in plan.actions},
        "predicates": {_signature(fact): _predicate(plan, fact) for fact in _facts(plan)},
        "requirements": named,
        "procedures": procedures,
    }


def _action(plan: Plan, action: str) -> dict[str, JSON]:
    inputs = {
        name: {"type": kind, "required": False}
        if (action, name) in plan.optional | OPTIONAL
        else kind
        for name, kind in plan.inputs.get(action, TOOLS[action].inputs).items()
    }
    said: dict[str, JSON] = {"input": inputs} if inputs else {}
    said.update(plan.extra.get(action, {}))
    if action == "look_up":
        said["not_found"] = "result.error == 'no such account'"
    if action in plan.confirmed:
        said["confirm"] = "It will be done."
    if action in plan.action_requires:
        said["requires"] = written_tree(plan.action_requires[action])
    return said


def _signature(fact: Fact) -> str:
    return f"{fact.name}({', '.join(name for name, _ in fact.parameters)})"


def _predicate(plan: Plan, fact: Fact) -> dict[str, JSON]:
    said: dict[str, JSON] = {"says": f"It is so that {fact.name}."}
    if fact.done:
        return {**said, "done": fact.done}
    if fact.question:
        return {**said, "verify": "user", "question": fact.question}
    if fact.principal:
        said["principal"] = True
    if fact.opened_by:
        said["established_by"] = fact.opened_by
        survives = fact.name == "confirmed" and plan.factor_survives_logout
        if fact.closed_by and not survives and "closed_by" in words():
            said["closed_by"] = fact.closed_by
        if fact.verdict:
            said["verdict"] = fact.verdict
        return said
    said["verify"] = written(fact.recipes)
    if fact.verdict:
        said["verdict"] = fact.verdict
    if fact.asks:
        said["ask"] = list(fact.asks)
    if fact.judged == "model":
        said["judged_by"] = "model"
    return said


def _procedure(procedure: Procedure, named: Requirements) -> dict[str, JSON]:
    said: dict[str, JSON] = {"requires": written_tree(procedure.requires, named)}
    if procedure.computed:
        said["arguments"] = {
            "amount": {"verify": "read_account(user)", "value": "result.points * 10"}
        }
    if procedure.name != procedure.action or procedure.fixed:
        bound = (
            f"{name}={term if isinstance(term, str) else json.dumps(term.value)}"
            for name, term in procedure.fixed.items()
        )
        said["action"] = f"{procedure.action}({', '.join(bound)})"
    return said


# --- what the handbook language can say -----------------------------------------------

_PROBES: dict[str, tuple[str, dict[str, JSON], dict[str, JSON]]] = {
    "paths": ("q(user)", {"verify": {"all": ["f(user)", "g(f.id)"]}}, {}),
    "for_each": (
        "q(user)",
        {"verify": {"all": ["f(user)", {"call": "g(one.id)", "for_each": "f.list as one"}]}},
        {},
    ),
    "named": (
        "q(user)",
        {"verify": {"all": [{"call": "f(user)", "name": "a"}, {"call": "f(user)", "name": "b"}]}},
        {},
    ),
    "ask": ("q(user)", {"verify": "g(code)", "ask": ["code"]}, {}),
    "judged_by": ("q(user)", {"verify": "f(user)", "judged_by": "model"}, {}),
    "closed_by": ("q(user)", {"established_by": "f(user)", "closed_by": "g(user)"}, {}),
    "changes": ("q(user)", {"verify": "f(user)"}, {"changes": ["x"], "reads": ["x"]}),
    "recheck": ("q(user)", {"verify": "f(user)"}, {"recheck": True}),
}


@cache
def words() -> frozenset[str]:
    """The newer words of the handbook language that this version reads."""
    known = set()
    for word, (signature, predicate, action) in _PROBES.items():
        book = {
            "handbook": "probe",
            "actions": {
                "f": {"input": {"user": "string"}},
                "g": {"input": {"id": "string"}},
                "h": {"input": {"user": "string"}, "irreversible": True, **action},
            },
            "predicates": {signature: {"says": "It is so.", **predicate}},
            "procedures": {"h": {"requires": "q(user)"}},
        }
        try:
            compile_handbook(load_handbook(json.dumps(book), "probe.yaml"))
        except SopilotError:
            continue
        known.add(word)
    return frozenset(known)
