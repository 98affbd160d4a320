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
        found = self.classes.get(kind, Discordance())
        return one_sided(mcnemar(found.wins, found.losses), -found.net)


def contrast(first: str, second: str, outcomes: Iterable[RunOutcome]) -> Contrast:
    held = list(outcomes)
    pairs = pair(
        [one for one in held if one.arm == first], [one for one in held if one.arm == second]
    )
    found: Comparison = compare(pairs, draws=_DRAWS)
    return Contrast(
        first=first,
        second=second,
        pairs=found.pairs,
        goals=found.goals,
        discordance=found.discordance,
        p=one_sided(found.p, found.discordance.net),
        clustered_p=one_sided(found.clustered.p, found.clustered.net),
        inferior_p=non_inferiority(
            found.discordance.wins, found.discordance.losses, found.pairs, margin=rule.MARGIN
        ),
        goals_interval=found.clustered_interval
        if isinstance(found.clustered_interval, Undefined)
        else found.clustered_interval.interval,
        difference=found.difference,
        interval=found.interval,
        classes=_by_kind(pairs),
    )


def one_sided(two_sided: float, net: int) -> float:
    """Both null distributions are symmetric, so the half belongs to the side that leads."""
    return two_sided / 2 if net > 0 else 1.0


def _by_kind(pairs: Pairs) -> dict[TaskKind, Discordance]:
    found: dict[TaskKind, Discordance] = {}
    for item in pairs.pairs:
        found[item.kind] = found.get(item.kind, Discordance()) + item.discordance
    return found
