"""Machine verdicts on real tool results, against the ground truth in plain Python."""

from __future__ import annotations

import dataclasses
from typing import Any

from clerk import EXAMPLES, PAIRS, Clerk, every_task
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.handbook.requirements import leaves, values_of
from sopilot.tasks.examples.example import Example
from sopilot.tasks.examples.task import ExampleTask


def with_open_gates(example: Example, task: ExampleTask) -> ExampleTask:
    """The task with a customer who knows every secret, so that every verifier can be called."""
    state = example.initial_state(task)
    secrets = state["credentials"] if example.name == "bank" else state["secrets"]
    person = next(iter(task.arguments.values()))
    return dataclasses.replace(task, inputs={**task.inputs, **secrets.get(person, {})})


def disagreements(example: Example, task: ExampleTask, *, last_recipe: bool) -> list[str]:
    task = with_open_gates(example, task)
    clerk = Clerk(example, task, last_recipe=last_recipe)
    wrong = []
    for leaf in leaves(example.handbook.procedures[task.goal].requires):
        values = values_of(leaf.arguments, task.arguments)
        found = clerk.judge(leaf.predicate, values)
        if found != example.truth(task, leaf.predicate, values, example.initial_state(task)):
            wrong.append(f"{leaf.predicate}{values}: the verdict says {found}")
    return wrong


@every_task
def test_every_leaf_of_every_task(example: Example, task: ExampleTask) -> None:
    assert disagreements(example, task, last_recipe=False) == []
    assert disagreements(example, task, last_recipe=True) == []


def test_most_predicates_have_a_verdict_and_every_verdict_is_used() -> None:
    for example in EXAMPLES:
        machine = {name for name, p in example.handbook.predicates.items() if p.verdict}
        judged: set[str] = set()
        for task in example.tasks:
            clerk = Clerk(example, with_open_gates(example, task))
            for leaf in leaves(example.handbook.procedures[task.goal].requires):
                clerk.check(leaf)
            judged |= {name for name, _ in clerk.judged}
        assert judged == machine
        assert len(machine) >= 14


def shifted(value: Any, draw: st.DrawFn) -> Any:
    """The same shape with other numbers and flags; names, texts and days stay."""
    if isinstance(value, dict):
        return {name: shifted(item, draw) for name, item in value.items()}
    if isinstance(value, bool):
        return draw(st.booleans())
    if isinstance(value, int):
        return max(0, value + draw(st.sampled_from([-500, -25, -1, 0, 0, 1, 25, 500])))
    return value


FIXED = {"sessions", "credentials", "secrets", "calendars", "hour_now"}


@st.composite
def situations(draw: st.DrawFn) -> tuple[Example, ExampleTask]:
    example, task = draw(st.sampled_from(PAIRS))
    state = example.initial_state(task)
    moved = {k: v if k in FIXED else shifted(v, draw) for k, v in state.items()}
    if "appointments" in moved:
        for appointment in moved["appointments"].values():
            appointment["hour"] %= 24
    return example, dataclasses.replace(task, overrides=moved)


@settings(deadline=None, max_examples=80)
@given(situations(), st.booleans())
def test_shifted_states(situation: tuple[Example, ExampleTask], last_recipe: bool) -> None:
    example, task = situation
    assert disagreements(example, task, last_recipe=last_recipe) == []
