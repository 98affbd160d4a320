"""The screened goals, replayed: which of them the simulator itself forbids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sopilot.values.json import Fields
from sopilot.values.text import table
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.reach import Transition, find_reach, transition
from sopilot_lab.sopbench.recorded import SCREENED_GOALS, zero_pass
from sopilot_lab.sopbench.reference import TaskReference, task_references


def replay_goals(
    upstream: Upstream, goals: Iterable[tuple[str, str]] = SCREENED_GOALS
) -> list[dict[str, Any]]:
    """``passes`` of ``runs`` recorded official runs. ``offered`` is whether the goal action stands
    in upstream's own tool list at all."""
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
            {
                "domain": domain,
                "goal": goal,
                "runs": record.runs if record else 0,
                "passes": record.passes if record else 0,
                "execute_tasks": len(tasks),
                "reachable_tasks": reachable,
                "offered": goal in upstream.metadata(domain)["schemas"],
                "classification": _classify(tasks, reachable, transitions),
                "what": "; ".join(dict.fromkeys(each.text for each in transitions)),
            }
        )
    return results


def _classify(tasks: list[TaskReference], reachable: int, transitions: list[Transition]) -> str:
    if reachable == len(tasks):
        return "reachable"
    if all(each.is_defect for each in transitions):
        return "confirmed defect"
    return "unreachable, no defect found"


def defect_cells(replayed: Fields) -> tuple[str, ...]:
    return (
        replayed["domain"],
        replayed["goal"],
        f"{replayed['passes']}/{replayed['runs']}",
        f"{replayed['reachable_tasks']}/{replayed['execute_tasks']}",
        "yes" if replayed["offered"] else "no",
        replayed["classification"],
    )


def defect_lines(goal_replays: Sequence[Fields]) -> Iterator[str]:
    header = ["domain", "goal", "recorded passes", "reachable", "offered", "classification"]
    yield table(map(defect_cells, goal_replays), header)
    for each in goal_replays:
        yield f"\n{each['domain']}/{each['goal']}: {each['what']}"
