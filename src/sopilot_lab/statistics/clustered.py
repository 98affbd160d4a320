"""Pairs that are not independent: shared tasks, shared goals, one goal too strong.

The sign-flip permutation test over units that flip as a whole.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sopilot_lab.statistics.intervals import SEED, Undefined, p_value, require
from sopilot_lab.statistics.paired import Discordance, Pairs, mcnemar, pool

DRAWS = 20_000
FEW_UNITS = 16
LARGE_SUM = 20_000


@dataclass(frozen=True, slots=True)
class SignFlip:
    """``units`` counts those with a non-zero net; ``draws`` is ``None`` for the exact test."""

    p: float
    units: int
    net: int
    draws: int | None = None


def sign_flip(
    nets: Iterable[int], *, exact: bool = True, draws: int = DRAWS, seed: int = SEED
) -> SignFlip:
    """Two-sided: how often is the absolute sum at least the observed one when each
    unit's net keeps or changes its sign with equal chance?

    The exact answer counts all ``2 ** units`` assignments by their sum, which is
    cheap for any number of units as long as the nets are counts of tasks; only
    many units with nets beyond that are sampled. ``exact=False`` always samples
    and reports ``(1 + hits) / (1 + draws)``: the observed assignment counts as
    one of the draws, so that p is never 0 and the test never exceeds its level.
    """
    values = sorted(net for net in nets if net)
    total = sum(values)
    if exact and (len(values) <= FEW_UNITS or sum(map(abs, values)) <= LARGE_SUM):
        return SignFlip(_exact(values, abs(total)), len(values), total)
    require(draws > 0, f"draws must be positive, not `{draws}`")
    return SignFlip(_sampled(values, abs(total), draws, seed), len(values), total, draws)


def _exact(values: list[int], observed: int) -> float:
    ways = Counter({0: 1})
    for value in values:
        grown: Counter[int] = Counter()
        for reached, count in ways.items():
            grown[reached + value] += count
            grown[reached - value] += count
        ways = grown
    extreme = sum(count for reached, count in ways.items() if abs(reached) >= observed)
    return p_value(extreme / 2 ** len(values))


def _sampled(values: list[int], observed: int, draws: int, seed: int) -> float:
    generator = random.Random(seed)
    whole = sum(values)
    hits = 0
    for _ in range(draws):
        signs = generator.getrandbits(len(values))
        flipped = sum(value for place, value in enumerate(values) if signs >> place & 1)
        hits += abs(whole - 2 * flipped) >= observed
    return (1 + hits) / (1 + draws)


def task_joint(pairs: Pairs) -> SignFlip:
    """Pool models that ran the same tasks: a task's discordances flip together."""
    nets: Counter[tuple[str, str]] = Counter()
    for item in pairs.pairs:
        nets[item.domain, item.task] += item.net
    return sign_flip(nets.values())


def goal_clustered(
    by_goal: Mapping[str, Discordance], *, exact: bool = True, seed: int = SEED
) -> SignFlip:
    """All discordances of a goal flip together, for its tasks share one program."""
    return sign_flip((part.net for part in by_goal.values()), exact=exact, seed=seed)


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
