"""One contrast, with everything that is said about it."""

from __future__ import annotations

from dataclasses import dataclass

from sopilot_lab.statistics.clustered import (
    LeaveOneOut,
    SignFlip,
    goal_clustered,
    leave_one_goal_out,
    task_joint,
)
from sopilot_lab.statistics.intervals import (
    DRAWS,
    SEED,
    Interval,
    Undefined,
    clustered_interval,
    paired_difference,
    ratio,
)
from sopilot_lab.statistics.paired import Discordance, Dropped, Pairs, mcnemar


@dataclass(frozen=True, slots=True)
class Comparison:
    """First side against second. ``difference`` is the first pass rate minus the second.

    ``clustered`` is the test to report: it flips goals. ``p`` takes pairs as independent;
    ``joint`` flips a task across models and runs and is ``None`` unless there are several.
    """

    pairs: int
    models: int
    runs: int
    first_passed: int
    second_passed: int
    discordance: Discordance
    p: float
    joint: SignFlip | None
    goals: int
    clustered: SignFlip
    leave_one_out: LeaveOneOut | Undefined
    difference: float | Undefined
    interval: Interval | Undefined
    clustered_interval: Interval | Undefined
    dropped: tuple[Dropped, ...]


def compare(
    pairs: Pairs, *, confidence: float = 0.95, draws: int = DRAWS, seed: int = SEED
) -> Comparison:
    """``draws`` and ``seed`` serve the clustered interval alone: every p-value is exact."""
    discordance = pairs.discordance
    by_goal = pairs.by_cluster()
    models = len({item.model for item in pairs.pairs})
    runs = len({item.run for item in pairs.pairs})
    count = len(pairs)
    nets = ((item.cluster, (item.net, 1)) for item in pairs.pairs)
    return Comparison(
        pairs=count,
        models=models,
        runs=runs,
        first_passed=sum(item.first for item in pairs.pairs),
        second_passed=sum(item.second for item in pairs.pairs),
        discordance=discordance,
        p=mcnemar(discordance.wins, discordance.losses),
        joint=task_joint(pairs) if models > 1 or runs > 1 else None,
        goals=len(by_goal),
        clustered=goal_clustered(by_goal),
        leave_one_out=leave_one_goal_out(by_goal),
        difference=discordance.net / count if count else Undefined("no pairs"),
        interval=paired_difference(discordance.wins, discordance.losses, count, confidence),
        clustered_interval=clustered_interval(
            nets, ratio, confidence=confidence, draws=draws, seed=seed
        ),
        dropped=pairs.dropped,
    )
