"""An example: a handbook with the simulator it is about."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from sopilot.agent.reference.judging import VerdictJudge
from sopilot.agent.result import Ending
from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.requirements import Binding, values_of
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import UserMistake, mistake
from sopilot.tasks.examples.ground_truth import Evidence, replayed
from sopilot.tasks.examples.simulator import Handler, SimulatedCall, Simulator, State
from sopilot.tasks.examples.task import ExampleTask, merged, read_state, read_tasks
from sopilot.tasks.examples.text_judgements import Readings
from sopilot.values.json import JSON

_NAMES = ("bank", "clinic", "it")


@dataclass(frozen=True, slots=True)
class Judgement:
    """``reasons`` is empty for a pass."""

    reasons: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Example:
    """``handlers`` do the tools' work and ``truths`` tell what is true, predicate by predicate.
    ``readings`` judge texts as a person who read them."""

    name: str
    handbook: Handbook
    tasks: tuple[ExampleTask, ...]
    base_state: State
    handlers: Mapping[str, Handler]
    truths: Mapping[str, Callable[..., bool]]
    readings: Readings

    @property
    def reader(self) -> VerdictJudge:
        """By the handbook's verdicts; else as a person who read the text."""
        return VerdictJudge(self.handbook, self.readings)

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
            values = values_of(arguments, task.arguments)
            return self.truth(task, predicate, values, state)

        return holds

    def judge(
        self,
        task: ExampleTask,
        calls: Sequence[SimulatedCall],
        final_state: State,
        *,
        late_calls_fail: bool = True,
    ) -> Judgement:
        """Judge a finished run from the state and the calls alone. Calls after the goal fail a
        run; without ``late_calls_fail`` only those that change the state do."""
        procedure, truth = self.handbook.procedures[task.goal], self.leaf_truth(task)
        reasons, goals, left = replayed(self.handbook, task, self.make_tools(task), calls)
        executed = task.expected is Ending.EXECUTED
        if len(goals) > 1:
            reasons.append(f"`{procedure.action}` ran {len(goals)} times")
        late = len(calls) - 1 - goals[0] if goals else 0
        if late and late_calls_fail:
            reasons.append(f"needless calls after the goal: {late}")
        if executed and not goals:
            reasons.append(f"`{procedure.action}` should have been executed and was not")
        if not executed and goals:
            reasons.append(f"`{procedure.action}` ran although `{task.cause}` fails")
        if final_state != left:
            reasons.append("the final state is not what gates and goal alone would leave")

        evidence = Evidence(self.handbook, task, calls[: goals[0]] if goals else calls)
        missing = evidence.missing(procedure.requires, truth)
        if executed and goals:
            reasons.extend(f"`{leaf}` was not verified before the goal" for leaf in missing)
        if not executed and not goals:
            reasons.extend(f"refused without evidence about `{leaf}`" for leaf in missing)
        return Judgement(tuple(reasons))


def bundled_names() -> tuple[str, ...]:
    return _NAMES


def handbook_text(name: str) -> str:
    """The YAML of a bundled handbook, without reading the rest of the example."""
    return _text(name, "handbook.yaml")


@functools.cache
def load_example(name: str) -> Example:
    """The example of that name; the same object every time."""
    handbook = load_handbook(handbook_text(name), f"{name}/handbook.yaml")
    tools = importlib.import_module(f"{__package__}.{name}.simulator")
    truths = importlib.import_module(f"{__package__}.{name}.truth")
    return Example(
        name=name,
        handbook=handbook,
        tasks=read_tasks(_text(name, "tasks.yaml")),
        base_state=read_state(_text(name, "state.yaml")),
        handlers={action: getattr(tools, action) for action in handbook.actions},
        truths={predicate: getattr(truths, predicate) for predicate in handbook.predicates},
        readings=truths.READINGS,
    )


def _text(name: str, file: str) -> str:
    if name not in _NAMES:
        raise _unknown(f"there is no bundled handbook `{name}`", name, _NAMES)
    folder = resources.files(f"{__package__}.{name}")
    return folder.joinpath(file).read_text(encoding="utf-8")


def _unknown(message: str, word: str, known: Sequence[str]) -> UserMistake:
    return mistake("unknown-name", message, help=did_you_mean(word, known))
