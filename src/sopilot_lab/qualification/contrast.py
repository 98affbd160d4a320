"""One arm against another on the same cases, as far as the rule needs it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sopilot_lab.qualification import rule
from sopilot_lab.statistics.comparison import Comparison, compare
from sopilot_lab.statistics.non_inferiority import non_inferiority
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import Discordance, Pairs, mcnemar, pair
from sopilot_lab.statistics.undefined import Interval, Undefined

_DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Contrast:
    """``p`` is one-sided: that ``first`` beats ``second``; ``clustered_p`` the same with whole
    goals flipped; ``inferior_p`` that it loses the margin or more, so that a small one shows the
    contrary. ``goals_interval`` is the difference's with whole goals resampled, ``classes`` are
    the discordant pairs of either kind."""

    first: str
    second: str
    pairs: int
    goals: int
    discordance: Discordance
    p: float
    clustered_p: float
    inferior_p: float | Undefined
    goals_interval: Interval | Undefined
    difference: float | Undefined
    interval: Interval | Undefined
    classes: dict[TaskKind, Discordance]

    def harm(self, kind: TaskKind) -> float:
        """One-sided p that ``first`` loses to ``second`` on tasks of this kind."""
        result = self.classes.get(kind, Discordance())
        return one_sided(mcnemar(result.wins, result.losses), -result.net)


def contrast(first: str, second: str, outcomes: Iterable[RunOutcome]) -> Contrast:
    held = list(outcomes)
    pairs = pair(
        [item for item in held if item.arm == first], [item for item in held if item.arm == second]
    )
    comparison: Comparison = compare(pairs, draws=_DRAWS)
    return Contrast(
        first=first,
        second=second,
        pairs=comparison.pairs,
        goals=comparison.goals,
        discordance=comparison.discordance,
        p=one_sided(comparison.p, comparison.discordance.net),
        clustered_p=one_sided(comparison.clustered.p, comparison.clustered.net),
        inferior_p=non_inferiority(
            comparison.discordance.wins,
            comparison.discordance.losses,
            comparison.pairs,
            margin=rule.MARGIN,
        ),
        goals_interval=comparison.clustered_interval
        if isinstance(comparison.clustered_interval, Undefined)
        else comparison.clustered_interval.interval,
        difference=comparison.difference,
        interval=comparison.interval,
        classes=_by_kind(pairs),
    )


def one_sided(two_sided: float, net: int) -> float:
    """Both null distributions are symmetric, so the half belongs to the side that leads."""
    return two_sided / 2 if net > 0 else 1.0


def _by_kind(pairs: Pairs) -> dict[TaskKind, Discordance]:
    discordances: dict[TaskKind, Discordance] = {}
    for item in pairs.pairs:
        discordances[item.kind] = discordances.get(item.kind, Discordance()) + item.discordance
    return discordances
