"""R2: domain calls issued after the goal action had already succeeded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sopilot_lab.statistics.bootstrap import DRAWS, BootstrapInterval, Sums, bootstrap_interval
from sopilot_lab.statistics.clustered import SEED
from sopilot_lab.statistics.outcomes import RunOutcome
from sopilot_lab.statistics.undefined import Undefined


@dataclass(frozen=True, slots=True)
class PostGoal:
    """Mean calls after the goal on each side, over the runs in which the goal action
    succeeded, and the first minus the second (the paper's ΔR2)."""

    first: float | Undefined
    first_runs: int
    second: float | Undefined
    second_runs: int
    delta: float | Undefined
    interval: BootstrapInterval | Undefined


def post_goal(
    first: Iterable[RunOutcome],
    second: Iterable[RunOutcome],
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = SEED,
) -> PostGoal:
    """Each side's mean is over its own successful runs, so the sides need not share
    them; the interval resamples goals, both sides of a goal together."""
    sums: dict[str, list[int]] = {}
    for offset, side in ((0, first), (2, second)):
        for outcome in side:
            if outcome.post_goal_calls is not None:
                entry = sums.setdefault(outcome.unit, [0, 0, 0, 0])
                entry[offset] += outcome.post_goal_calls
                entry[offset + 1] += 1
    units: list[Sums] = [tuple(entry) for _, entry in sorted(sums.items())]
    totals: Sums = tuple(sum(unit[place] for unit in units) for place in range(4))
    delta = _delta(totals)
    missing = Undefined("one side has no run in which the goal succeeded")
    interval: BootstrapInterval | Undefined = missing
    if delta is not None:
        interval = bootstrap_interval(units, _delta, confidence=confidence, draws=draws, seed=seed)
    return PostGoal(
        first=_mean(totals[0], totals[1]),
        first_runs=totals[1],
        second=_mean(totals[2], totals[3]),
        second_runs=totals[3],
        delta=missing if delta is None else delta,
        interval=interval,
    )


def _mean(calls: int, runs: int) -> float | Undefined:
    return calls / runs if runs else Undefined("no run in which the goal succeeded")


def _delta(sums: Sums) -> float | None:
    first, first_runs, second, second_runs = sums
    if not first_runs or not second_runs:
        return None
    return first / first_runs - second / second_runs
