"""A careful clerk: follows a handbook's tree by hand, with real tool calls.

Written against trees, recipes and verdicts only, so that a example's content can
be tried without compiler, machine or agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sopilot.handbook.expressions import judge as judge_verdict
from sopilot.handbook.model import ActionCall, Recipe
from sopilot.handbook.requirements import (
    All,
    AnyOf,
    Constant,
    First,
    InOrder,
    Leaf,
    Path,
    Tree,
    leaves,
    values_of,
)
from sopilot.protocols import ToolResult
from sopilot.tasks.examples.example import Example, bundled_names, load_example
from sopilot.tasks.examples.task import ExampleTask

EXAMPLES = [load_example(name) for name in bundled_names()]
PAIRS = [(example, task) for example in EXAMPLES for task in example.tasks]
every_desk = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
every_task = pytest.mark.parametrize(
    ("example", "task"), [pytest.param(example, task, id=task.id) for example, task in PAIRS]
)


class Clerk:
    """``last_recipe`` takes the last of several equivalent recipes instead of the first."""

    def __init__(self, example: Example, task: ExampleTask, *, last_recipe: bool = False) -> None:
        self.example = example
        self.task = task
        self.simulator = example.make_tools(task)
        self.cause: str | None = None
        self.judged: dict[tuple[str, str], bool] = {}
        self._pick = -1 if last_recipe else 0
        self._seen: dict[str, Any] = {}

    def serve(self) -> None:
        """Checks what the goal requires and acts on the answer."""
        procedure = self.example.handbook.procedures[self.task.goal]
        if self.follow(procedure.requires):
            self.call(procedure.action, self.task.arguments)

    def follow(self, tree: Tree) -> bool:
        if isinstance(tree, Leaf):
            met = self.check(tree) == tree.wanted
            if not met:
                self.cause = tree.predicate
            return met
        if isinstance(tree, All | InOrder):
            return all(self.follow(child) for child in tree.children)
        if isinstance(tree, First):
            return any(self.follow(child) for child in tree.children)
        assert isinstance(tree, AnyOf)
        checked = [self.follow(child) for child in tree.children]
        return any(checked)

    def check(self, leaf: Leaf) -> bool:
        values = values_of(leaf.arguments, self.task.arguments)
        return self.judge(leaf.predicate, values)

    def judge(self, name: str, values: Mapping[str, Any]) -> bool:
        predicate = self.example.handbook.predicates[name]
        if predicate.established_by is not None:
            return self.open(predicate.established_by, values)
        recipe: Recipe = () if predicate.tool_free else predicate.recipes[self._pick]
        results: dict[str, Any] = {}
        result: Any = None
        for step in recipe:
            answer = self.make(step, values, results)
            assert answer.ok, (self.task.id, step.action, answer.value)
            result = results[step.answer] = answer.value
        if predicate.verdict is None:
            return self.example.truth(self.task, name, values, self.simulator.state)
        variables = {**self.example.handbook.parameters, **values}
        holds = judge_verdict(
            predicate.verdict, {**variables, "result": result, "results": results}
        )
        self.judged[name, repr(values)] = holds
        return holds

    def open(self, step: ActionCall, values: Mapping[str, Any]) -> bool:
        try:
            return self.make(step, values).ok
        except KeyError:  # the customer cannot tell what the gate asks for
            return False

    def make(
        self, step: ActionCall, values: Mapping[str, Any], answers: Mapping[str, Any] | None = None
    ) -> ToolResult:
        action = self.example.handbook.actions[step.action]
        arguments = {}
        for parameter, term in step.arguments:
            if isinstance(term, Constant):
                arguments[parameter] = term.value
            elif isinstance(term, Path):
                (key,) = term.steps
                arguments[parameter] = (answers or {})[term.root][key]
            else:
                arguments[parameter] = self.value(term.name, values)
        for guard in leaves(action.requires):
            inner = self.example.handbook.predicates[guard.predicate].established_by
            assert inner is not None
            if not self.opened(inner.action):
                self.open(inner, values_of(guard.arguments, arguments))
        return self.call(action.name, arguments)

    def opened(self, action: str) -> bool:
        return any(call.name == action and call.result.ok for call in self.simulator.calls)

    def value(self, name: str, values: Mapping[str, Any]) -> Any:
        if name in values:
            return values[name]
        return self._seen[name] if name in self._seen else self.task.inputs[name]

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        answer = self.simulator.perform(name, arguments, key=f"k{len(self.simulator.calls)}")
        if answer.ok and not self.example.handbook.actions[name].full_state:
            self._seen.update(answer.value)
        return answer
