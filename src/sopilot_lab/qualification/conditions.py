"""The conditions of the rule, each with its figures. An undefined one is not met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sopilot.runner.qualifications import Answer
from sopilot_lab.qualification import rule
from sopilot_lab.qualification.advice import (
    agreement_needed,
    missing_wins,
    needed_tasks,
    smallest_effect,
)
from sopilot_lab.qualification.contrast import Contrast, contrast
from sopilot_lab.qualification.probe_grading import ProbeScore
from sopilot_lab.statistics.intervals import clopper_pearson
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.post_goal import PostGoal
from sopilot_lab.statistics.undefined import Interval, Undefined

_BOTH = (Answer.PAGE, Answer.MAY_PAGE)


@dataclass(frozen=True, slots=True)
class PagingCondition:
    """``met`` with the figures it rests on; ``change`` says what would turn it round;
    ``needed_for`` which answers demand it."""

    name: str
    met: bool
    found: str
    change: str = ""
    needed_for: tuple[str, ...] = _BOTH


@dataclass(frozen=True, slots=True)
class PagingEvidence:
    """What the conditions of one paged arm are judged on. ``scripted``: a program, which
    cannot be asked where it stands and need not be."""

    arm: str
    representation: str | None
    outcomes: Sequence[RunOutcome]
    natural: PostGoal
    probe: ProbeScore
    level: float
    scripted: bool = False


def conditions_of(seen: PagingEvidence, contrasts: list[Contrast]) -> tuple[PagingCondition, ...]:
    """Those of *page* and of *may page*. What was compared is added to ``contrasts``."""
    result = contrast(seen.arm, rule.FLAT, seen.outcomes)
    contrasts.append(result)
    chosen = None
    if seen.representation not in (None, rule.FLAT):
        assert seen.representation is not None
        chosen = contrast(seen.arm, seen.representation, seen.outcomes)
        contrasts.append(chosen)
    conditions = [_enough(result), _benefit(result, seen.level)]
    if result.goals >= rule.CLUSTERED_FROM_GOALS:
        conditions.append(_across_goals(result, seen.level))
    if chosen is not None:
        conditions.append(_not_below(chosen))
    conditions.append(_not_inferior([result] if chosen is None else [result, chosen], seen.level))
    planned = {outcome.kind for outcome in seen.outcomes}
    conditions += [
        _classes(result, planned),
        _sighted(seen.natural),
        _quiet(seen.natural),
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
        f"goals flipped as a whole: one-sided p = {_p(result.clustered_p)} "
        f"over {result.goals} goals",
        "" if met else "the gain would have to show in more of the goals",
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
        wins, losses = item.discordance.wins, item.discordance.losses
        part = f"against {item.second} {wins}:{losses} of {item.pairs} pairs, exact p = "
        part += _p(item.inferior_p)
        met = met and not isinstance(item.inferior_p, Undefined) and item.inferior_p <= level
        if item.goals >= rule.CLUSTERED_FROM_GOALS and isinstance(item.goals_interval, Interval):
            met = met and item.goals_interval.low > -rule.MARGIN
            part += f", goals resampled from {item.goals_interval.low:+.2f} on"
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
    shown = [f"{kind} {part.wins}:{part.losses}" for kind, part in sorted(result.classes.items())]
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
    low: float | None = None
    shown = "no interval"
    if not isinstance(natural.interval, Undefined):
        low = natural.interval.interval.low
        shown = f"90 % interval {low:+.2f} to {natural.interval.interval.high:+.2f}"
    loud = natural.delta >= rule.LARGEST_DELTA_R2 or (low is not None and low > 0)
    return PagingCondition(
        "quiet",
        not loud,
        f"ΔR2 = {natural.delta:+.2f} calls after the goal ({shown})",
        "the model would have to stop calling tools after the goal when paged" if loud else "",
    )


def _oriented(probe: ProbeScore, scripted: bool) -> PagingCondition:
    if scripted:
        return PagingCondition(
            "oriented", True, "a program that keeps its own place; it is not asked"
        )
    if isinstance(probe.localisation, Undefined) or isinstance(probe.interval, Undefined):
        change = "ask it where it stands (--probe)"
        return PagingCondition("oriented", False, "undefined: the probe was not asked", change)
    result = (
        f"localisation {probe.localisation:.2f} of {probe.questions} "
        f"(95 % interval {probe.interval.low:.2f} to {probe.interval.high:.2f})"
    )
    none_right = clopper_pearson(0, probe.questions)
    if isinstance(none_right, Interval) and none_right.high >= rule.LEAST_LOCALISATION:
        result += (
            f"; the probe was asked only {probe.questions} questions: "
            "it could not have excluded one half"
        )
        return PagingCondition("oriented", False, result, "more questions of the probe")
    met = probe.interval.high >= rule.LEAST_LOCALISATION
    change = "" if met else "the model would have to say where it stands when asked"
    return PagingCondition("oriented", met, result, change)


def discordants(result: Contrast) -> str:
    wins, losses = result.discordance.wins, result.discordance.losses
    return f"{wins}:{losses} of {result.pairs} pairs, one-sided p = {_p(result.p)}"


def _p(value: float | Undefined) -> str:
    if isinstance(value, Undefined):
        return str(value)
    return f"{value:.4f}" if value >= 0.0001 else f"{value:.1e}"
