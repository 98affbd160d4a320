"""The tasks of the examples that ship."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sopilot.tasks.examples.example import Example
from sopilot.tasks.examples.simulator import Simulator
from sopilot.tasks.examples.task import ExampleTask as Entry
from sopilot.tasks.replay import SavedSimulation
from sopilot.tasks.task import FinishedRun, ReplayedTools, Simulation, Task
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing


def example_tasks(
    example: Example, briefing: Briefing, *, late_calls_fail: bool = True
) -> list[Task]:
    """Without ``late_calls_fail``, read-only calls after the goal don't fail a task."""
    reader = example.reader

    def task(entry: Entry) -> Task:
        def surround(keep: Path | None) -> Simulation:
            simulator = example.make_tools(entry)

            def score(messages: int, run: FinishedRun | None = None) -> Mapping[str, JSON]:
                judge = example.judge(
                    entry, simulator.calls, simulator.state, late_calls_fail=late_calls_fail
                )
                return {"success": judge.passed, "reasons": list(judge.reasons)}

            tools = ReplayedTools(simulator) if keep is None else SavedSimulation(simulator, keep)
            return Simulation(tools, score=score)

        return Task(
            source=example.name,
            name=entry.id,
            goal=entry.goal,
            briefing=briefing,
            surround=surround,
            request=entry.request,
            reader=reader,
            inputs=entry.inputs,
            expected=entry.expected,
            late=entry.late,
            follow_ups=entry.follow_ups,
            approvers=entry.approvers,
            opening_goal=entry.opening_goal,
        )

    return [task(entry) for entry in example.tasks]


def idle_simulation(example: Example) -> Simulation:
    """The example in its base state, without a user and a score."""
    simulator = Simulator(example.handbook.actions, example.handlers, example.base_state)
    return Simulation(ReplayedTools(simulator))
