"""Which cases a check runs, and in which order: fixed before the first run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sopilot.lab.discipline.case import Case
from sopilot.lab.stats import Kind

CASES = 60


def planned(cases: Sequence[Case], count: int = CASES) -> list[Case]:
    """Goals in turn, execute and refuse alternating within a goal: a check that ends early
    has seen as many goals and both kinds as evenly as it could."""
    queues: dict[tuple[str, str], Iterator[Case]] = {}
    for case in cases:
        goal = (case.domain, case.goal)
        if goal not in queues:
            own = [one for one in cases if (one.domain, one.goal) == goal]
            # Every other goal begins with a refusal, so that a round has both kinds.
            queues[goal] = _alternating(own, refusal_first=len(queues) % 2 == 1)
    # Domains take turns too.
    order = sorted(queues, key=lambda goal: _place(goal, list(queues)))
    chosen: list[Case] = []
    while order and len(chosen) < count:
        for goal in list(order):
            following = next(queues[goal], None)
            if following is None:
                order.remove(goal)
            elif len(chosen) < count:
                chosen.append(following)
    return chosen


def _place(goal: tuple[str, str], goals: Sequence[tuple[str, str]]) -> tuple[int, int]:
    own = [one for one in goals if one[0] == goal[0]]
    return own.index(goal), goals.index(goal)


def _alternating(cases: Sequence[Case], *, refusal_first: bool) -> Iterator[Case]:
    kinds = [[case for case in cases if case.kind is kind] for kind in Kind]
    if refusal_first:
        kinds.reverse()
    for index in range(max(map(len, kinds))):
        for held in kinds:
            yield from held[index : index + 1]
