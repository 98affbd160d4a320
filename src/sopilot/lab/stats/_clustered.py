"""Pairs that are not independent: shared tasks, shared goals, one goal too strong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sopilot.lab.stats._pairing import Pairs
from sopilot.lab.stats._undefined import Undefined
from sopilot.lab.stats.mcnemar import Discordance, mcnemar, pool
from sopilot.lab.stats.sign_flip import DRAWS, SEED, SignFlip, sign_flip


def task_joint(pairs: Pairs) -> SignFlip:
    """Pool models that ran the same tasks: a task's discordances flip together."""
    nets: dict[tuple[str, str], int] = {}
    for item in pairs.pairs:
        key = (item.domain, item.task)
        nets[key] = nets.get(key, 0) + item.net
    return sign_flip(nets.values())


def goal_clustered(
    by_goal: Mapping[str, Discordance] | Iterable[Discordance],
    *,
    exact: bool = True,
    draws: int = DRAWS,
    seed: int = SEED,
) -> SignFlip:
    """All discordances of a goal flip together, for its tasks share one program."""
    parts = by_goal.values() if isinstance(by_goal, Mapping) else by_goal
    return sign_flip((part.net for part in parts), exact=exact, draws=draws, seed=seed)


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """The largest task-level p-value after one goal is dropped, and that goal."""

    p: float
    goal: str


def leave_one_goal_out(by_goal: Mapping[str, Discordance]) -> LeaveOneOut | Undefined:
    if len(by_goal) < 2:
        return Undefined("leaving one goal out needs at least two goals")
    whole = pool(by_goal.values())
    rests = {goal: whole - part for goal, part in by_goal.items()}
    worst = [LeaveOneOut(mcnemar(rest.wins, rest.losses), goal) for goal, rest in rests.items()]
    return max(worst, key=lambda item: item.p)
