"""Two sets of outcomes, side by side on the tasks that both of them judged.

The exact McNemar test: is a discordant pair a fair coin? Several contrasts at once: the
Benjamini–Hochberg step-up procedure and Holm's step-down procedure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sopilot_lab.statistics.intervals import (
    binom,
    false_discovery_control,
    p_value,
    require,
    require_open_share,
)
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind


@dataclass(frozen=True, slots=True)
class Adjusted:
    p: float
    adjusted: float
    rejected: bool


def benjamini_hochberg(p_values: Sequence[float], q: float = 0.05) -> tuple[Adjusted, ...]:
    """Adjusted p-values in the order given, and which contrasts survive at rate ``q``."""
    require_open_share("q", q)
    for value in p_values:
        require(0.0 <= value <= 1.0, f"a p-value lies between 0 and 1, not `{value}`")
    adjusted = map(float, false_discovery_control(p_values) if p_values else ())
    return tuple(Adjusted(p, each, each <= q) for p, each in zip(p_values, adjusted, strict=True))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted so that each may be compared with the family's level as it stands."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    scaled = [min(1.0, (len(order) - rank) * p_values[place]) for rank, place in enumerate(order)]
    adjusted = dict(zip(order, accumulate(scaled, max), strict=True))
    return [adjusted[place] for place in range(len(order))]


def adjusted_within(
    groups: Sequence[str],
    p_values: Sequence[float],
    adjust: Callable[[Sequence[float]], Sequence[float]],
) -> list[float]:
    """Adjust the p-values of each group among themselves."""
    adjusted: dict[int, float] = {}
    for group in dict.fromkeys(groups):
        places = [place for place, each in enumerate(groups) if each == group]
        adjusted |= zip(places, adjust([p_values[place] for place in places]), strict=True)
    return [adjusted[place] for place in range(len(groups))]


@dataclass(frozen=True, slots=True)
class Discordance:
    """Pairs that only one side passed: ``wins`` the first side, ``losses`` the second."""

    wins: int = 0
    losses: int = 0

    def __str__(self) -> str:
        return f"{self.wins}:{self.losses}"

    @property
    def total(self) -> int:
        return self.wins + self.losses

    @property
    def net(self) -> int:
        return self.wins - self.losses

    def __add__(self, other: Discordance) -> Discordance:
        return Discordance(self.wins + other.wins, self.losses + other.losses)

    def __sub__(self, other: Discordance) -> Discordance:
        return Discordance(self.wins - other.wins, self.losses - other.losses)


def mcnemar(wins: int, losses: int) -> float:
    """The exact two-sided p-value. For pooled counts only where the parts share no task; models
    that ran the same tasks belong in ``task_joint``.

    Without a discordant pair nothing could have come out differently: p is 1.
    """
    require(wins >= 0 and losses >= 0, f"wins and losses are counts, not `{wins}`:`{losses}`")
    return p_value(2.0 * binom.cdf(min(wins, losses), wins + losses, 0.5))


def pool(parts: Iterable[Discordance]) -> Discordance:
    return sum(parts, Discordance())


_Key = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True)
class Pair:
    """One task judged on both sides. A win is a pass of the first side alone."""

    model: str
    domain: str
    task: str
    cluster: str
    kind: TaskKind
    first: bool
    second: bool
    run: int

    @property
    def net(self) -> int:
        return int(self.first) - int(self.second)

    @property
    def discordance(self) -> Discordance:
        return Discordance(int(self.net > 0), int(self.net < 0))


@dataclass(frozen=True, slots=True)
class Dropped:
    """Tasks that could not be paired, with the reason they share."""

    reason: str
    tasks: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.tasks)


@dataclass(frozen=True, slots=True)
class Pairs:
    pairs: tuple[Pair, ...]
    dropped: tuple[Dropped, ...] = ()

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def discordance(self) -> Discordance:
        return pool(item.discordance for item in self.pairs)

    def only(self, kind: TaskKind) -> Pairs:
        """The pairs of one kind; what was dropped has none."""
        return Pairs(tuple(item for item in self.pairs if item.kind is kind))

    def by_cluster(self) -> dict[str, Discordance]:
        """Every cluster that has a pair, also those without a discordant one."""
        discordances = {item.cluster: Discordance() for item in self.pairs}
        for item in self.pairs:
            discordances[item.cluster] += item.discordance
        return discordances

    def by_kind(self) -> dict[TaskKind, Discordance]:
        return {kind: part.discordance for kind in TaskKind if len(part := self.only(kind))}


def pair(first: Iterable[RunOutcome], second: Iterable[RunOutcome]) -> Pairs:
    """Pair by task; by model and by run too, each as soon as one side holds several of them.

    Two sides of one model each are paired by task alone, so two models can be
    compared; so are two sides of one run each. Two outcomes of a task with the
    same run are dropped rather than counted twice.
    """
    sides = [list(first), list(second)]
    by_model = any(len({outcome.model for outcome in side}) > 1 for side in sides)
    by_run = any(len({outcome.run for outcome in side}) > 1 for side in sides)
    left, right = (_by_key(side, by_model, by_run) for side in sides)
    pairs: list[Pair] = []
    dropped: dict[str, list[str]] = {}
    for key in sorted({*left, *right}):  # resampling must not depend on who finished first
        reason = _reason(left.get(key, []), right.get(key, []))
        if reason is not None:
            model, domain, task, run = key
            named = (model, domain, task, f"run {run}" if run else "")
            dropped.setdefault(reason, []).append("/".join(part for part in named if part))
            continue
        item, other = left[key][0], right[key][0]
        pairs.append(
            Pair(
                model=key[0],
                domain=item.domain,
                task=item.task,
                cluster=item.unit,
                kind=item.kind,
                first=item.passed is True,
                second=other.passed is True,
                run=key[3],
            )
        )
    return Pairs(tuple(pairs), tuple(Dropped(why, tuple(who)) for why, who in dropped.items()))


def _by_key(
    outcomes: Sequence[RunOutcome], by_model: bool, by_run: bool
) -> dict[_Key, list[RunOutcome]]:
    result: dict[_Key, list[RunOutcome]] = {}
    for outcome in outcomes:
        model, run = outcome.model if by_model else "", outcome.run if by_run else 0
        result.setdefault((model, outcome.domain, outcome.task, run), []).append(outcome)
    return result


def _reason(first: Sequence[RunOutcome], second: Sequence[RunOutcome]) -> str | None:
    for here, there, side, other in (
        (first, second, "first", "second"),
        (second, first, "second", "first"),
    ):
        if not here:
            return f"only in the {other}"
        if len(here) > 1:
            return f"several runs in the {side}"
        if there and here[0].passed is None:
            return f"not judged in the {side}"
    if first[0].unit != second[0].unit or first[0].kind != second[0].kind:
        return "goal or kind differs between the two"
    return None
