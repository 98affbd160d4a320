"""Judges a finished run from the state and the calls alone.

Inputs the handbook's trees and recipes and the ground truth, and neither the
compiler nor the program: whatever ran, only what reached the tools counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sopilot.handbook.model import ActionCall, Handbook
from sopilot.handbook.requirements import (
    All,
    AnyOf,
    Binding,
    Constant,
    First,
    Leaf,
    Name,
    Tree,
    meaning,
    values_of,
)
from sopilot.tasks.examples.simulator import SimulatedCall, Simulator, State, first_with
from sopilot.tasks.examples.task import ExampleTask
from sopilot.values.json import JSON

Inputs = Mapping[str, JSON]
"""What the customer can tell."""

LeafTruth = Callable[[str, Binding], bool]


def can_tell(field: str, table: str, person: str) -> Callable[..., bool]:
    """The truth of a gate: the customer can tell this field of the person's row."""

    def holds(state: State, inputs: Inputs, **arguments: str) -> bool:
        row = state[table].get(arguments[person], {})
        return field in inputs and bool(row.get(field) == inputs[field])

    return holds


def of_row(table: str, key: str, test: Callable[..., object]) -> Callable[..., bool]:
    """A truth about the table's row under ``key``: ``test`` gets the row and the other arguments.
    Without a row it is false."""

    def holds(state: State, inputs: Inputs, **arguments: JSON) -> bool:
        row = state[table].get(arguments.pop(key))
        return row is not None and bool(test(row, **arguments))

    return holds


def of_filed(table: str, keys: tuple[str, str], test: Callable[..., object]) -> Callable[..., bool]:
    """As ``of_row``, about the first row with the values of these ``keys``."""

    def holds(state: State, inputs: Inputs, **arguments: JSON) -> bool:
        known = first_with(state[table], **{key: arguments.pop(key) for key in keys})
        return known is not None and bool(test(known[1], **arguments))

    return holds


def replayed(
    handbook: Handbook, task: ExampleTask, simulation: Simulator, calls: Sequence[SimulatedCall]
) -> tuple[list[str], list[int], State]:
    """Problems of single calls, the positions of the goal's calls, and the state that gates and
    goal alone would leave."""
    procedure = handbook.procedures[task.goal]
    gates = {
        predicate.established_by.action
        for predicate in handbook.predicates.values()
        if predicate.established_by is not None
    }
    reasons: list[str] = []
    expected = simulation.copy()
    goals: list[int] = []
    for position, call in enumerate(calls):
        before = simulation.state
        result = simulation.perform(call.name, call.arguments, key=str(position))
        if result != call.result:
            reasons.append(f"the result of call {position} (`{call.name}`) is not the tool's")
        changed = simulation.state != before
        is_goal = call.name == procedure.action and dict(call.arguments) == dict(task.arguments)
        if is_goal and result.ok:
            goals.append(position)
        elif call.name == procedure.action and result.ok:
            reasons.append(f"`{call.name}` ran with other arguments than requested")
        elif changed and call.name not in gates:
            reasons.append(f"`{call.name}` changed the state and is not part of the goal")
        if call.name in gates or (is_goal and goals == [position]):
            expected.perform(call.name, call.arguments, key=str(position))
    return reasons, goals, expected.state


class Evidence:
    """The requirements that a run's calls have verified."""

    def __init__(
        self, handbook: Handbook, task: ExampleTask, calls: Sequence[SimulatedCall]
    ) -> None:
        self._handbook = handbook
        self._task = task
        self._calls = [call for call in calls if call.result.ok]
        self._attempted = {call.name for call in calls}
        self._known_values = [
            value for value in task.inputs.values() if not isinstance(value, dict | list)
        ]

    def missing(self, tree: Tree, truth: LeafTruth) -> tuple[Leaf, ...]:
        """The leaves without evidence that the tree's value rests on.

        Every option of an ``any`` counts, a ``first`` counts up to its first
        success, and one failing child is enough to show that a conjunction fails.
        """
        if isinstance(tree, Leaf):
            return () if self._verified(tree, truth) else (tree,)
        value = meaning(tree, truth)
        gaps = [self.missing(child, truth) for child in tree.children]
        if isinstance(tree, AnyOf) or value is not isinstance(tree, First):
            return tuple(leaf for gap in gaps for leaf in gap)
        decisive = [meaning(child, truth) == value for child in tree.children]
        if isinstance(tree, All):
            return min((gap for gap, flag in zip(gaps, decisive, strict=True) if flag), key=len)
        return tuple(leaf for gap in gaps[: decisive.index(True) + 1] for leaf in gap)

    def _verified(self, leaf: Leaf, truth: LeafTruth) -> bool:
        predicate = self._handbook.predicates[leaf.predicate]
        if predicate.tool_free:
            return True
        values = values_of(leaf.arguments, self._task.arguments)
        if predicate.established_by is not None:
            if truth(leaf.predicate, leaf.arguments):
                return self._made(predicate.established_by, values)
            return self._tried(predicate.established_by, values)
        return any(all(self._made(step, values) for step in recipe) for recipe in predicate.recipes)

    def _tried(self, gate: ActionCall, values: Mapping[str, JSON]) -> bool:
        """A customer who cannot tell what the gate asks for leaves nothing to try."""
        names = {term.name for _, term in gate.arguments if isinstance(term, Name)}
        return not names <= {*values, *self._task.inputs} or gate.action in self._attempted

    def _made(self, step: ActionCall, values: Mapping[str, JSON]) -> bool:
        for position, call in enumerate(self._calls):
            if call.name == step.action and self._fits(step, values, call, position):
                return True
        return False

    def _fits(
        self, step: ActionCall, values: Mapping[str, JSON], call: SimulatedCall, position: int
    ) -> bool:
        for parameter, term in step.arguments:
            value = call.arguments.get(parameter)
            if isinstance(term, Constant):
                fits = value == term.value
            elif isinstance(term, Name) and term.name in values:
                fits = value == values[term.name]
            else:
                # The user or an earlier result must have supplied this value.
                seen = any(value in _scalars(c.result.value) for c in self._calls[:position])
                fits = seen or value in self._known_values
            if not fits:
                return False
        return True


def _scalars(value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        return [scalar for item in value.values() for scalar in _scalars(item)]
    if isinstance(value, list):
        return [scalar for item in value for scalar in _scalars(item)]
    return [value]
