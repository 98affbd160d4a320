"""The tasks of the desks that ship."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sopilot.agent.result import Ending
from sopilot.tasks.examples.example import BundledDesk
from sopilot.tasks.examples.judge import desk_judge
from sopilot.tasks.examples.simulator import Simulator
from sopilot.tasks.examples.task import DeskTask as Entry
from sopilot.tasks.replay import KeptWorld
from sopilot.tasks.task import FinishedRun, ReplayedTools, Surroundings, Task, World
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing


def desk_tasks(
    desk: BundledDesk, briefing: Briefing, *, late_calls_fail: bool = True
) -> list[Task]:
    """Without ``late_calls_fail`` a call after the goal is left to whoever counts those."""
    reader = desk_judge(desk)

    def task(entry: Entry) -> Task:
        def surround(keep: Path | None) -> Surroundings:
            simulator = desk.make_tools(entry)

            def score(messages: int, run: FinishedRun | None = None) -> Mapping[str, JSON]:
                found = desk.judge(
                    entry, simulator.calls, simulator.state, late_calls_fail=late_calls_fail
                )
                return {"success": found.passed, "reasons": list(found.reasons)}

            tools = ReplayedTools(simulator) if keep is None else KeptWorld(simulator, keep)
            return Surroundings(tools, score)

        return Task(
            source=desk.name,
            name=entry.id,
            goal=entry.goal,
            briefing=briefing,
            surround=surround,
            request=entry.request,
            reader=reader,
            knows=entry.knows,
            expected=Ending(entry.expected),
            late=entry.late,
            follow_ups=entry.follow_ups,
            approvers=entry.approvers,
            opening_goal=entry.opening_goal,
        )

    return [task(entry) for entry in desk.tasks]


def idle_world(desk: BundledDesk) -> World:
    """The desk as it stands when nobody has asked for anything: no user, nothing to score."""
    simulator = Simulator(desk.handbook.actions, desk.handlers, desk.base_state)
    return World(ReplayedTools(simulator), simulated=True)
