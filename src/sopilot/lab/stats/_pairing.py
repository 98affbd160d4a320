"""Two sets of outcomes, side by side on the tasks that both of them judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sopilot.lab.stats._outcome import RunOutcome, TaskKind
from sopilot.lab.stats.mcnemar import Discordance

_Key = tuple[str, str, str]


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
        return Discordance(
            sum(item.net > 0 for item in self.pairs), sum(item.net < 0 for item in self.pairs)
        )

    def by_cluster(self) -> dict[str, Discordance]:
        """Every cluster that has a pair, also those without a discordant one."""
        found: dict[str, Discordance] = {}
        for item in self.pairs:
            found[item.cluster] = found.get(item.cluster, Discordance()) + item.discordance
        return found


def pair(first: Iterable[RunOutcome], second: Iterable[RunOutcome]) -> Pairs:
    """Pair by task, and by model too as soon as one side holds several models.

    Two sides of one model each are paired by task alone, so two models can be
    compared. A task with several runs on one side is dropped rather than
    counted several times: choose a run first, or use ``pass_k``.
    """
    sides = [list(first), list(second)]
    by_model = any(len({outcome.model for outcome in side}) > 1 for side in sides)
    left, right = (_by_key(side, by_model) for side in sides)
    found: list[Pair] = []
    dropped: dict[str, list[str]] = {}
    for key in dict.fromkeys([*left, *right]):
        reason = _reason(left.get(key, []), right.get(key, []))
        if reason is not None:
            dropped.setdefault(reason, []).append("/".join(part for part in key if part))
            continue
        one, other = left[key][0], right[key][0]
        found.append(
            Pair(
                model=key[0],
                domain=one.domain,
                task=one.task,
                cluster=one.unit,
                kind=one.kind,
                first=one.passed is True,
                second=other.passed is True,
            )
        )
    return Pairs(tuple(found), tuple(Dropped(why, tuple(who)) for why, who in dropped.items()))


def _by_key(outcomes: Sequence[RunOutcome], by_model: bool) -> dict[_Key, list[RunOutcome]]:
    found: dict[_Key, list[RunOutcome]] = {}
    for outcome in outcomes:
        key = (outcome.model if by_model else "", outcome.domain, outcome.task)
        found.setdefault(key, []).append(outcome)
    return found


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
