"""An example: a handbook with the simulator it is about."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.requirements import Binding
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import UserMistake, mistake
from sopilot.tasks.examples.ground_truth import Judgement, Values, failing_causes, judge, resolve
from sopilot.tasks.examples.simulator import Handler, SimulatedCall, Simulator, State
from sopilot.tasks.examples.task import ExampleTask, merged, read_state, read_tasks
from sopilot.values.json import JSON

_NAMES = ("bank", "clinic", "it")


@dataclass(frozen=True, slots=True)
class Example:
    """``handlers`` do the tools' work and ``truths`` tell what is true, predicate by predicate."""

    name: str
    handbook: Handbook
    tasks: tuple[ExampleTask, ...]
    base_state: State
    handlers: Mapping[str, Handler]
    truths: Mapping[str, Callable[..., bool]]

    def task(self, task_id: str) -> ExampleTask:
        for task in self.tasks:
            if task.id == task_id:
                return task
        known = [task.id for task in self.tasks]
        raise _unknown(f"`{self.name}` has no task `{task_id}`", task_id, known)

    def initial_state(self, task: ExampleTask) -> State:
        return merged(self.base_state, task.overrides)

    def make_tools(self, task: ExampleTask) -> Simulator:
        """A fresh simulator for one run of the task; implements ``Tools``."""
        return Simulator(self.handbook.actions, self.handlers, self.initial_state(task))

    def truth(
        self, task: ExampleTask, predicate: str, arguments: Mapping[str, JSON], state: State
    ) -> bool:
        """Whether the predicate holds. A gate holds if the customer can open it."""
        return self.truths[predicate](state, task.inputs, **arguments)

    def leaf_truth(self, task: ExampleTask) -> Callable[[str, Binding], bool]:
        """The truth at the start, for ``meaning`` over the tree of the task's goal."""
        state = self.initial_state(task)

        def holds(predicate: str, arguments: Binding) -> bool:
            values: Values = resolve(arguments, task.arguments)
            return self.truth(task, predicate, values, state)

        return holds

    def causes(self, task: ExampleTask) -> tuple[str, ...]:
        """The predicates that a refusal may name."""
        return failing_causes(self.handbook.procedures[task.goal].requires, self.leaf_truth(task))

    def judge(
        self,
        task: ExampleTask,
        calls: Sequence[SimulatedCall],
        final_state: State,
        *,
        claimed_cause: str | None = None,
        late_calls_fail: bool = True,
    ) -> Judgement:
        return judge(
            self.handbook,
            task,
            self.leaf_truth(task),
            self.make_tools(task),
            calls=calls,
            final_state=final_state,
            claimed_cause=claimed_cause,
            late_calls_fail=late_calls_fail,
        )


def bundled_names() -> tuple[str, ...]:
    return _NAMES


def handbook_text(name: str) -> str:
    """The YAML of a bundled handbook, without reading the rest of the example."""
    return _text(name, "handbook.yaml")


@functools.cache
def load_example(name: str) -> Example:
    """The example of that name; the same object every time."""
    handbook = load_handbook(handbook_text(name), f"{name}/handbook.yaml")
    package = f"{__package__}.{name}"
    return Example(
        name=name,
        handbook=handbook,
        tasks=read_tasks(name, _text(name, "tasks.yaml")),
        base_state=read_state(_text(name, "state.yaml")),
        handlers=_functions(f"{package}.simulator"),
        truths=_functions(f"{package}.truth"),
    )


def _functions(module: str) -> dict[str, Callable[..., Any]]:
    """The public functions that the module defines."""
    return {
        name: item
        for name, item in vars(importlib.import_module(module)).items()
        if inspect.isfunction(item) and item.__module__ == module and not name.startswith("_")
    }


def _text(name: str, file: str) -> str:
    if name not in _NAMES:
        raise _unknown(f"there is no bundled handbook `{name}`", name, _NAMES)
    folder = resources.files(f"{__package__}.{name}")
    return folder.joinpath(file).read_text(encoding="utf-8")


def _unknown(message: str, word: str, known: Sequence[str]) -> UserMistake:
    return mistake("unknown-name", message, help=did_you_mean(word, known))
