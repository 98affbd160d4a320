"""A handbook with everything the adversary must know of it: its text, programs and trees."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from adversary.catalogue import FACTS, Fact
from adversary.recipes import written
from adversary.requirements import (
    Procedure,
    Tree,
    Words,
    is_met,
    leaves_of,
    procedure_values,
    written_tree,
)
from adversary.tools import OPTIONAL, TOOLS
from adversary.values import JSON
from adversary.world import World
from sopilot.language.compiler import compile_handbook
from sopilot.language.diagnostics import SopilotError
from sopilot.language.handbook import load_handbook
from sopilot.language.program import Program
from sopilot.runtime.vm import Machine

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
    """Procedure → the predicates of its requirement."""
    trusting: bool
    """Whether a model may judge something."""

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
        requires = self.plan.action_requires.get(procedure.action)
        return requires is None or is_met(
            requires, world, {**PARAMETERS, **dict(arguments)}, True, words
        )


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
        {action: plan.inputs.get(action, TOOLS[action].inputs) for action in plan.actions},
        facts,
        tuple(plan.actions),
        {
            procedure.name: tuple({leaf.fact.name for leaf in leaves_of(procedure.requires)})
            for procedure in plan.procedures
        },
        any(fact.judged == "model" for fact in facts.values()),
    )


def _facts(plan: Plan) -> list[Fact]:
    trees = [procedure.requires for procedure in plan.procedures]
    trees += plan.action_requires.values()
    used = {leaf.fact.name for tree in trees for leaf in leaves_of(tree)}
    return [FACTS[name] for name in sorted(used)]


def _handbook(plan: Plan) -> dict[str, JSON]:
    return {
        "handbook": "adversary-desk",
        "parameters": PARAMETERS,
        "actions": {action: _action(plan, action) for action in plan.actions},
        "predicates": {_signature(fact): _predicate(plan, fact) for fact in _facts(plan)},
        "procedures": {one.name: _procedure(one) for one in plan.procedures},
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
    if action in plan.action_requires:
        said["requires"] = written_tree(plan.action_requires[action])
    return said


def _signature(fact: Fact) -> str:
    return f"{fact.name}({', '.join(name for name, _ in fact.parameters)})"


def _predicate(plan: Plan, fact: Fact) -> dict[str, JSON]:
    said: dict[str, JSON] = {"says": f"It is so that {fact.name}."}
    if fact.opened_by:
        said["established_by"] = fact.opened_by
        survives = fact.name == "confirmed" and plan.factor_survives_logout
        if fact.closed_by and not survives and "closed_by" in words():
            said["closed_by"] = fact.closed_by
        return said
    said["verify"] = written(fact.recipes)
    if fact.verdict:
        said["verdict"] = fact.verdict
    if fact.asks:
        said["ask"] = list(fact.asks)
    if fact.judged == "model":
        said["judged_by"] = "model"
    return said


def _procedure(procedure: Procedure) -> dict[str, JSON]:
    said: dict[str, JSON] = {"requires": written_tree(procedure.requires)}
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
