"""A handbook with everything the adversary must know of it: its text, programs and trees."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from adversary.facts import FACTS, Fact
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
    truths_of,
    written_tree,
)
from adversary.simulator import Simulator
from adversary.tools import ASK, CONFIRM, OPTIONAL, TOOLS, subject
from adversary.values import JSON, is_number
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.machine.machine import Machine
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

    def simulator_allows(
        self,
        sim: Simulator,
        goal: str,
        arguments: Mapping[str, JSON],
        words: Words | None = None,
    ) -> bool:
        """Whether the simulator shows all that the procedure (and its action) requires, now."""
        procedure = self.procedures[goal]
        values = procedure_values(procedure, arguments)
        if values is None:
            return False
        if not is_met(procedure.requires, sim, {**PARAMETERS, **values}, True, words):
            return False
        if procedure.computed and not _is_computed(sim, arguments):
            return False
        if procedure.action in self.plan.confirmed:
            said = sim.consents.get(subject(goal, arguments))
            if said != "yes" and not sim.friendly:
                return False
        requires = self.plan.action_requires.get(procedure.action)
        return requires is None or is_met(
            requires, sim, {**PARAMETERS, **dict(arguments)}, True, words
        )

    def facts_of(
        self, sim: Simulator, goal: str, arguments: Mapping[str, JSON]
    ) -> list[bool | None] | None:
        """What is so of every leaf; ``None`` where not all of them must hold, so that one may
        change without anybody's concern."""
        procedure = self.procedures[goal]
        values = procedure_values(procedure, arguments)
        plain = operators_of(procedure.requires) <= {"all", "in_order"}
        more = procedure.computed or procedure.action in self.plan.action_requires
        if values is None or not plain or more:
            return None
        return truths_of(procedure.requires, sim, {**PARAMETERS, **values})

    def answers_needed(
        self, sim: Simulator, goal: str, arguments: Mapping[str, JSON], words: Words | None
    ) -> frozenset[tuple[str, str]]:
        """The user's answers that it rests on, and uses up."""
        needed = set()
        for key in sim.said:
            without = sim.copy()
            without.said = {one: said for one, said in sim.said.items() if one != key}
            if not self.simulator_allows(without, goal, arguments, words):
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


def _is_computed(sim: Simulator, arguments: Mapping[str, JSON]) -> bool:
    account = sim.accounts.get(arguments.get("user", ""))
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
        if fact.closed_by and not survives:
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
