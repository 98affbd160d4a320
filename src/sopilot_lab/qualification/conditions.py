"""The conditions of the rule, each with its figures and what would change it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sopilot.runner.qualifications import Answer
from sopilot.values.json import JSON
from sopilot_lab.qualification import rule
from sopilot_lab.qualification.probe import ProbeScore
from sopilot_lab.statistics.comparison import Comparison, compare
from sopilot_lab.statistics.intervals import Interval, Undefined, clopper_pearson
from sopilot_lab.statistics.non_inferiority import (
    least_pairs,
    most_losses,
    non_inferiority,
    non_inferiority_power,
)
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import Discordance, mcnemar, pair
from sopilot_lab.statistics.power import minimum_detectable_effect, tasks_needed
from sopilot_lab.statistics.rates import PostGoal, post_goal

_DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Contrast:
    """``inferior_p``: that ``first`` loses the margin or more, so that a small one shows the
    contrary. ``classes`` are the discordant pairs of either kind."""

    first: str
    second: str
    compared: Comparison
    inferior_p: float | Undefined
    classes: dict[TaskKind, Discordance]

    @property
    def pairs(self) -> int:
        return self.compared.pairs

    @property
    def discordance(self) -> Discordance:
        return self.compared.discordance

    @property
    def p(self) -> float:
        """One-sided p that ``first`` beats ``second``."""
        return one_sided(self.compared.p, self.discordance.net)

    @property
    def clustered_p(self) -> float:
        """One-sided p with whole goals flipped."""
        return one_sided(self.compared.clustered.p, self.compared.clustered.net)

    def harm(self, kind: TaskKind) -> float:
        """One-sided p that ``first`` loses to ``second`` on tasks of this kind."""
        result = self.classes.get(kind, Discordance())
        return one_sided(mcnemar(result.wins, result.losses), -result.net)


def contrast(first: str, second: str, outcomes: Iterable[RunOutcome]) -> Contrast:
    held = list(outcomes)
    pairs = pair(
        [item for item in held if item.arm == first], [item for item in held if item.arm == second]
    )
    counts = pairs.discordance
    inferior_p = non_inferiority(counts.wins, counts.losses, len(pairs), margin=rule.MARGIN)
    return Contrast(first, second, compare(pairs, draws=_DRAWS), inferior_p, pairs.by_kind())


def one_sided(two_sided: float, net: int) -> float:
    """Both null distributions are symmetric, so the half belongs to the side that leads."""
    return two_sided / 2 if net > 0 else 1.0


_UNSEEN = 0.2
"""The discordance assumed before any discordant pair was seen, as in the rule's calculation."""


def missing_wins(wins: int, losses: int, level: float) -> int:
    """How many more wins, without another loss, would show a benefit."""
    more = 0
    while one_sided(mcnemar(wins + more, losses), wins + more - losses) > level:
        more += 1
    return more


def needed_tasks(contrast: Contrast) -> str:
    """Cases that the effect seen so far would need."""
    total, net = contrast.discordance.total, contrast.discordance.net
    if net <= 0 or not contrast.pairs:
        return "the results so far don't point that way, so no number of cases can be estimated"
    share = total / contrast.pairs
    needed = tasks_needed(
        discordance=share, effect=net / contrast.pairs, alpha=2 * rule.LEVEL, power=rule.POWER
    )
    if isinstance(needed, Undefined):
        return f"cases needed for this effect: {needed.reason}"
    return f"the effect seen ({net / contrast.pairs:+.1%}) needs about {needed} cases"


def smallest_effect(contrast: Contrast) -> str:
    share = contrast.discordance.total / contrast.pairs if contrast.discordance.total else _UNSEEN
    return _gain(contrast.pairs, _least_gain(contrast.pairs, share))


def agreement_needed(pairs: int, level: float) -> str:
    """The result that would show that paging loses less than the margin, if it wins nothing."""
    most = most_losses(pairs, margin=rule.MARGIN, alpha=level)
    if not isinstance(most, Undefined):
        return f"at most {most} of {pairs} pairs lost, if none is won"
    least = least_pairs(margin=rule.MARGIN, alpha=level)
    return f"{least} pairs without a loss; {pairs} are too few to exclude one of {rule.MARGIN:.0%}"


_SLIPS = 0.01
"""The share of cases that a strong model loses by luck, and of those it wins."""


def foresight(pairs: int) -> dict[str, JSON]:
    """Effects that a completed check of so many pairs can and can't show, known before the
    first run. ``says`` is the same in sentences."""
    gain = _least_gain(pairs, _UNSEEN)
    most = most_losses(pairs, margin=rule.MARGIN, alpha=rule.LEVEL)
    chance = non_inferiority_power(
        pairs, win=_SLIPS, loss=_SLIPS, margin=rule.MARGIN, alpha=rule.LEVEL
    )
    says = [f"page: {_gain(pairs, gain)} (power {rule.POWER:g}, a fifth of the pairs discordant)"]
    if pairs < rule.LEAST_PAIRS:
        says = [f"no verdict: {pairs} pairs are too few, {rule.LEAST_PAIRS} are the least"]
    elif isinstance(most, Undefined):
        says.append(f"may page: needs {agreement_needed(pairs, rule.LEVEL)}")
    else:
        says.append(
            f"may page: {agreement_needed(pairs, rule.LEVEL)}; a model that loses and wins "
            f"{_SLIPS:.0%} of cases by luck gets it {chance:.0%} of the time"
        )
    return {
        "pairs": pairs,
        "least_pairs": rule.LEAST_PAIRS,
        "smallest_gain": None if isinstance(gain, Undefined) else gain,
        "power": rule.POWER,
        "discordance": _UNSEEN,
        "margin": rule.MARGIN,
        "most_losses": None if isinstance(most, Undefined) else most,
        "pairs_for_margin": least_pairs(margin=rule.MARGIN, alpha=rule.LEVEL),
        "may_page_with_slips": chance,
        "slips": _SLIPS,
        "says": says,
    }


def _least_gain(pairs: int, discordance: float) -> float | Undefined:
    return minimum_detectable_effect(
        pairs, discordance=discordance, alpha=2 * rule.LEVEL, power=rule.POWER
    )


def _gain(pairs: int, least: float | Undefined) -> str:
    if isinstance(least, Undefined):
        return f"{pairs} pairs can't detect any effect with a power of {rule.POWER:g}"
    return f"{pairs} pairs detect effects of {least:+.1%} or more"


_BOTH = (Answer.PAGE, Answer.MAY_PAGE)


@dataclass(frozen=True, slots=True)
class PagingCondition:
    """``met`` with the figures it rests on; ``change`` says what would turn it round;
    ``needed_for`` which answers demand it."""

    name: str
    met: bool
    figures: str
    change: str = ""
    needed_for: tuple[str, ...] = _BOTH


@dataclass(frozen=True, slots=True)
class PagingEvidence:
    """The evidence for the conditions. ``scripted``: the model is a program, which keeps its own
    place and isn't asked for it."""

    representation: str | None
    outcomes: Sequence[RunOutcome]
    probe: ProbeScore
    level: float
    scripted: bool = False

    def natural(self, arm: str) -> PostGoal:
        """Calls after the goal under a paged arm, against `flat`."""
        sides = ([each for each in self.outcomes if each.arm == own] for own in (arm, rule.FLAT))
        return post_goal(*sides, confidence=rule.R2_CONFIDENCE, draws=_DRAWS)


def conditions_of(
    seen: PagingEvidence, arm: str, contrasts: list[Contrast]
) -> tuple[PagingCondition, ...]:
    """The conditions of *page* and of *may page* with a paged arm. Add every comparison to
    ``contrasts``."""
    natural = seen.natural(arm)
    result = contrast(arm, rule.FLAT, seen.outcomes)
    contrasts.append(result)
    chosen = None
    if seen.representation not in (None, rule.FLAT):
        assert seen.representation is not None
        chosen = contrast(arm, seen.representation, seen.outcomes)
        contrasts.append(chosen)
    conditions = [_enough(result), _benefit(result, seen.level)]
    if result.compared.goals >= rule.CLUSTERED_FROM_GOALS:
        conditions.append(_across_goals(result, seen.level))
    if chosen is not None:
        conditions.append(_not_below(chosen))
    conditions.append(_not_inferior([result] if chosen is None else [result, chosen], seen.level))
    planned = {outcome.kind for outcome in seen.outcomes}
    conditions += [
        _classes(result, planned),
        _sighted(natural),
        _quiet(natural),
        _oriented(seen.probe, seen.scripted),
    ]
    return tuple(conditions)


def meets(conditions: Sequence[PagingCondition], answer: Answer) -> bool:
    needed = [condition for condition in conditions if answer in condition.needed_for]
    return bool(needed) and all(item.met for item in needed)


def _enough(result: Contrast) -> PagingCondition:
    met = result.pairs >= rule.LEAST_PAIRS
    short = rule.LEAST_PAIRS - result.pairs
    return PagingCondition(
        "enough",
        met,
        f"{result.pairs} pairs, {rule.LEAST_PAIRS} needed",
        "" if met else f"{short} more cases",
    )


def _benefit(result: Contrast, level: float) -> PagingCondition:
    met = result.p <= level
    change = ""
    if not met:
        wins, losses = result.discordance.wins, result.discordance.losses
        change = (
            f"{missing_wins(wins, losses, level)} more cases that only {result.first} passes; "
            f"{needed_tasks(result)}; {smallest_effect(result)}"
        )
    shown = f"{result.first} against flat: {discordants(result)}"
    return PagingCondition("benefit", met, shown, change, (Answer.PAGE,))


def _across_goals(result: Contrast, level: float) -> PagingCondition:
    met = result.clustered_p <= level
    return PagingCondition(
        "across-goals",
        met,
        f"sign flips by goal: one-sided p = {_p(result.clustered_p)} "
        f"over {result.compared.goals} goals",
        "" if met else "paging must win in more goals",
        (Answer.PAGE,),
    )


def _not_below(result: Contrast) -> PagingCondition:
    met = result.pairs > 0 and result.discordance.net >= 0
    return PagingCondition(
        "not-below-choice",
        met,
        f"{result.first} against {result.second}: {discordants(result)}",
        "" if met else f"{result.first} would have to pass as many cases as {result.second}",
        (Answer.PAGE,),
    )


def _not_inferior(contrasts: Sequence[Contrast], level: float) -> PagingCondition:
    """Both must be shown, so the level is spent once. With many goals also where whole goals
    hang together, which the exact test does not know."""
    parts, met = [], True
    for item in contrasts:
        part = f"against {item.second} {item.discordance} of {item.pairs} pairs, exact p = "
        part += _p(item.inferior_p)
        met = met and not isinstance(item.inferior_p, Undefined) and item.inferior_p <= level
        within = item.compared.clustered_interval
        if item.compared.goals >= rule.CLUSTERED_FROM_GOALS and isinstance(within, Interval):
            met = met and within.low > -rule.MARGIN
            part += f", goals resampled from {within.low:+.2f} on"
        parts.append(part)
    shown = "; ".join(parts)
    return PagingCondition(
        "not-inferior",
        met,
        f"{contrasts[0].first} loses less than {rule.MARGIN:.0%} of cases: {shown}",
        "" if met else agreement_needed(min(entry.pairs for entry in contrasts), level),
        (Answer.MAY_PAGE,),
    )


def _classes(result: Contrast, planned: set[TaskKind]) -> PagingCondition:
    harmed = [kind for kind in TaskKind if result.harm(kind) <= rule.HARM_LEVEL]
    unseen = sorted(planned - set(result.classes))
    shown = [f"{kind} {part}" for kind, part in sorted(result.classes.items())]
    shown += [f"{kind} undefined (no pairs)" for kind in unseen]
    change = ""
    if harmed:
        change = f"{result.first} would have to stop losing {' and '.join(harmed)} tasks"
    elif unseen or not result.pairs:
        change = f"pairs of {' and '.join(unseen) or 'either'} tasks"
    found_text = f"wins and losses by class: {', '.join(shown) or 'undefined (no pairs)'}"
    return PagingCondition("no-class-harmed", not change, found_text, change)


def _sighted(natural: PostGoal) -> PagingCondition:
    fewest = min(natural.first_runs, natural.second_runs)
    met = fewest >= rule.LEAST_SUCCESSES
    return PagingCondition(
        "sighted",
        met,
        f"the goal succeeded in {natural.first_runs} paged and {natural.second_runs} flat runs, "
        f"{rule.LEAST_SUCCESSES} needed of each",
        "" if met else "more runs in which the goal action succeeds",
    )


def _quiet(natural: PostGoal) -> PagingCondition:
    if isinstance(natural.delta, Undefined):
        return PagingCondition(
            "quiet",
            False,
            f"ΔR2 is undefined: {natural.delta.reason}",
            "runs of either side in which the goal action succeeds",
        )
    loud = natural.delta >= rule.LARGEST_DELTA_R2
    shown = "no interval"
    if isinstance(natural.interval, Interval):
        loud = loud or natural.interval.low > 0
        shown = f"90 % interval {natural.interval.low:+.2f} to {natural.interval.high:+.2f}"
    return PagingCondition(
        "quiet",
        not loud,
        f"ΔR2 = {natural.delta:+.2f} calls after the goal ({shown})",
        "the model would have to stop calling tools after the goal when paged" if loud else "",
    )


def _oriented(probe: ProbeScore, scripted: bool) -> PagingCondition:
    if scripted:
        return PagingCondition(
            "oriented", True, "a program tracks its own position, so it isn't asked"
        )
    if isinstance(probe.localisation, Undefined) or isinstance(probe.interval, Undefined):
        change = "ask it for its current step (--probe)"
        return PagingCondition("oriented", False, "undefined: the model wasn't probed", change)
    result = (
        f"localisation {probe.localisation:.2f} of {probe.questions} "
        f"(95 % interval {probe.interval.low:.2f} to {probe.interval.high:.2f})"
    )
    none_right = clopper_pearson(0, probe.questions)
    if isinstance(none_right, Interval) and none_right.high >= rule.LEAST_LOCALISATION:
        result += f"; with only {probe.questions} questions, the probe can't rule out one half"
        return PagingCondition("oriented", False, result, "more probe questions")
    met = probe.interval.high >= rule.LEAST_LOCALISATION
    change = "" if met else "the model would have to name its current step when asked"
    return PagingCondition("oriented", met, result, change)


def discordants(result: Contrast) -> str:
    return f"{result.discordance} of {result.pairs} pairs, one-sided p = {_p(result.p)}"


def _p(value: float | Undefined) -> str:
    if isinstance(value, Undefined):
        return str(value)
    return f"{value:.4f}" if value >= 0.0001 else f"{value:.1e}"
