"""Which cases a check runs, and in which order: fixed before the first run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sopilot.agent.result import Ending
from sopilot.tasks.task import Task
from sopilot.views.briefing import Briefing
from sopilot_lab.statistics.outcomes import TaskKind

CASES = 100
"""With so many, one lost case still lets a strong model be paged."""


_KINDS = {Ending.EXECUTED: TaskKind.EXECUTE, Ending.REFUSED: TaskKind.REFUSE}


def kind_of(case: Task) -> TaskKind | None:
    return _KINDS.get(case.expected) if case.expected is not None else None


def checkable(tasks: Sequence[Task], *, whole_handbook: bool = True) -> list[Task]:
    """Those that end in an execution or a refusal: one that waits for people has no counterpart
    without a machine. Without ``whole_handbook`` a case shows its own goals alone."""
    cases = [task for task in tasks if kind_of(task) is not None]
    if whole_handbook:
        return cases
    narrow: dict[tuple[int, tuple[str, ...]], Briefing] = {}
    return [replace(case, briefing=_narrow(case, narrow)) for case in cases]


def _narrow(case: Task, made: dict[tuple[int, tuple[str, ...]], Briefing]) -> Briefing:
    whole = case.briefing
    goals = tuple(goal for goal in whole.programs if goal in (case.goal, case.opening_goal))
    key = (id(whole), goals)
    if key not in made:
        programs = {goal: whole.programs[goal] for goal in goals}
        made[key] = Briefing(whole.handbook, programs, whole.language)
    return made[key]


def planned(cases: Sequence[Task], count: int = CASES) -> list[Task]:
    """Goals in turn, execute and refuse alternating within a goal: a check that ends early
    has seen as many goals and both kinds as evenly as it could."""
    queues: dict[tuple[str, str], Iterator[Task]] = {}
    for case in cases:
        goal = (case.source, case.goal)
        if goal not in queues:
            own = [item for item in cases if (item.source, item.goal) == goal]
            # Every other goal begins with a refusal, so that a round has both kinds.
            queues[goal] = _alternating(own, refusal_first=len(queues) % 2 == 1)
    # Domains take turns too.
    order = sorted(queues, key=lambda goal: _place(goal, list(queues)))
    chosen: list[Task] = []
    while order and len(chosen) < count:
        for goal in list(order):
            following = next(queues[goal], None)
            if following is None:
                order.remove(goal)
            elif len(chosen) < count:
                chosen.append(following)
    return chosen


def _place(goal: tuple[str, str], goals: Sequence[tuple[str, str]]) -> tuple[int, int]:
    own = [item for item in goals if item[0] == goal[0]]
    return own.index(goal), goals.index(goal)


def _alternating(cases: Sequence[Task], *, refusal_first: bool) -> Iterator[Task]:
    kinds = [[case for case in cases if kind_of(case) is kind] for kind in TaskKind]
    if refusal_first:
        kinds.reverse()
    for index in range(max(map(len, kinds))):
        for held in kinds:
            yield from held[index : index + 1]
