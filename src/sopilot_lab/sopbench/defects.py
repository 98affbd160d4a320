"""The screened goals, replayed: which of them the simulator itself forbids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sopilot.values.text import table
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.reach import Transition, find_reach, transition
from sopilot_lab.sopbench.recorded import SCREENED_GOALS, zero_pass
from sopilot_lab.sopbench.reference import TaskReference, task_references

Classification = Literal["confirmed defect", "reachable", "unreachable, no defect found"]


@dataclass(frozen=True, slots=True)
class GoalReplay:
    """``passes`` of ``runs`` recorded official runs. ``offered`` is whether the goal action
    stands in upstream's own tool list at all."""

    domain: str
    goal: str
    runs: int
    passes: int
    execute_tasks: int
    reachable_tasks: int
    offered: bool
    classification: Classification
    what: str

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            self.domain,
            self.goal,
            f"{self.passes}/{self.runs}",
            f"{self.reachable_tasks}/{self.execute_tasks}",
            "yes" if self.offered else "no",
            self.classification,
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def replay_goals(
    upstream: Upstream, goals: Iterable[tuple[str, str]] = SCREENED_GOALS
) -> list[GoalReplay]:
    wanted = list(goals)
    recorded = {
        (each.domain, each.goal): each
        for each in zero_pass(upstream.checkout, dict.fromkeys(domain for domain, _ in wanted))
    }
    results = []
    for domain, goal in wanted:
        tasks = [
            each
            for each in task_references(f"sopbench:{domain}/{goal}", upstream=upstream)
            if upstream.scoring(domain)[goal][each.index]
        ]
        reachable = sum(find_reach(each, "full-state", upstream).reachable for each in tasks)
        transitions = [transition(each, upstream) for each in tasks]
        record = recorded.get((domain, goal))
        results.append(
            GoalReplay(
                domain,
                goal,
                record.runs if record else 0,
                record.passes if record else 0,
                len(tasks),
                reachable,
                goal in upstream.metadata(domain)["schemas"],
                _classify(tasks, reachable, transitions),
                "; ".join(dict.fromkeys(each.text for each in transitions)),
            )
        )
    return results


def _classify(
    tasks: list[TaskReference], reachable: int, transitions: list[Transition]
) -> Classification:
    if reachable == len(tasks):
        return "reachable"
    return (
        "confirmed defect"
        if all(each.is_defect for each in transitions)
        else "unreachable, no defect found"
    )


def defect_lines(goal_replays: Sequence[GoalReplay]) -> Iterator[str]:
    header = ["domain", "goal", "recorded passes", "reachable", "offered", "classification"]
    yield table([each.cells for each in goal_replays], header)
    for each in goal_replays:
        yield f"\n{each.domain}/{each.goal}: {each.what}"
