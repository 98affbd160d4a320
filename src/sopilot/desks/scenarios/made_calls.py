"""What the tool calls of a run prove, whatever the run said about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sopilot.desks.scenarios._scenario import Scenario
from sopilot.language.handbook import AnyOf, First, Handbook, Leaf, Name, Tree
from sopilot.runtime.agent import Ending
from sopilot.runtime.session.protocols import JSON
from sopilot.runtime.vm import Event


@dataclass(frozen=True, slots=True)
class MadeCall:
    seq: int
    action: str
    arguments: Mapping[str, JSON]
    ok: bool


def calls_made(events: Iterable[Event]) -> list[MadeCall]:
    """Domain calls with a result, in the order of their results."""
    arguments: dict[int, Mapping[str, JSON]] = {}
    found = []
    for event in events:
        if event.kind == "domain_call":
            arguments[event.seq] = event.payload["arguments"]
        elif event.kind == "domain_result":
            given = arguments.get(event.payload["call"], {})
            made = MadeCall(event.seq, event.payload["action"], given, event.payload["ok"])
            found.append(made)
    return found


def post_goal_calls(calls: Sequence[MadeCall], goal_action: str) -> int | None:
    """R2 of one run: domain calls after the goal action first succeeded; ``None`` where it
    never did."""
    for index, one in enumerate(calls):
        if one.action == goal_action and one.ok:
            return len(calls) - index - 1
    return None


def unproven(scenario: Scenario, handbook: Handbook, calls: Sequence[MadeCall]) -> list[str]:
    """What a run of the scenario rests on without a tool having said anything about it.

    Before the goal action every requirement needs its verifier, one option of a
    disjunction being enough; a refusal needs an attempt at the predicate it
    rests on, unless the user cannot tell what the verifier asks for.
    """
    procedure = handbook.procedures[scenario.goal]
    if scenario.expect.ending is Ending.EXECUTED:
        goal = next((i for i, one in enumerate(calls) if one.action == procedure.action), None)
        if goal is None:
            return []  # the ending says so already
        done = {one.action for one in calls[:goal] if one.ok}
        missing = _missing(procedure.requires, handbook, done)
        return [f"`{name}` was not verified before the goal" for name in missing]
    cause = scenario.expect.cause
    if cause is None or _attempted(cause, scenario, handbook, {one.action for one in calls}):
        return []
    return [f"refused without looking at `{cause}`"]


def _missing(tree: Tree, handbook: Handbook, done: set[str]) -> list[str]:
    if isinstance(tree, Leaf):
        recipes = _recipes(tree.predicate, handbook)
        shown = not recipes or any(done.issuperset(recipe) for recipe in recipes)
        return [] if shown else [tree.predicate]
    gaps = [_missing(child, handbook, done) for child in tree.children]
    if isinstance(tree, AnyOf | First):
        return min(gaps, key=len, default=[])
    return list(dict.fromkeys(name for gap in gaps for name in gap))


def _attempted(cause: str, scenario: Scenario, handbook: Handbook, tried: set[str]) -> bool:
    recipes = _recipes(cause, handbook)
    if not recipes or any(tried.intersection(recipe) for recipe in recipes):
        return True
    predicate = handbook.predicates[cause]
    gate = predicate.established_by
    if gate is None:
        return False
    asked = {term.name for _, term in gate.arguments if isinstance(term, Name)}
    return not asked <= {*scenario.knows, *handbook.parameters}


def _recipes(name: str, handbook: Handbook) -> list[set[str]]:
    predicate = handbook.predicates[name]
    if predicate.tool_free:
        return []
    if predicate.established_by is not None:
        return [{predicate.established_by.action}]
    return [{call.action for call in recipe} for recipe in predicate.recipes]
