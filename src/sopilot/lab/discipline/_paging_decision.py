"""The verdict: representation, paging, every condition with its figures. Pure.

The rule is ``design/discipline-check.md``; its numbers are in ``rule``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sopilot.lab.discipline import _rule as rule
from sopilot.lab.discipline._advice import missing_wins, needed_tasks, smallest_effect
from sopilot.lab.discipline._contrast import Contrast, contrast
from sopilot.lab.discipline._probe_grading import ProbeGrade, ProbeScore, probe_score
from sopilot.lab.discipline._record import RunRecord, by_arm
from sopilot.lab.stats import (
    Interval,
    PostGoal,
    RunOutcome,
    TaskKind,
    Undefined,
    clopper_pearson,
    post_goal,
)


@dataclass(frozen=True, slots=True)
class PagingCondition:
    """``met`` with the figures it rests on; ``change`` says what would turn it round."""

    name: str
    met: bool
    found: str
    change: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``arm`` is what to run the model with. ``representation`` is ``None`` when none was run."""

    model: str
    representation: str | None
    page: bool
    arm: str | None
    complete: bool
    cases: int
    planned: int
    level: float
    conditions: tuple[PagingCondition, ...]
    reasons: tuple[str, ...]
    changes: tuple[str, ...]
    contrasts: tuple[Contrast, ...]
    natural: PostGoal
    probe: ProbeScore
    rule_version: int = rule.RULE_VERSION
    arms: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def failed(self) -> tuple[PagingCondition, ...]:
        return tuple(one for one in self.conditions if not one.met)


def decide(
    model: str,
    records: Iterable[RunRecord],
    grades: Sequence[ProbeGrade] = (),
    *,
    planned: int,
    arms_planned: Sequence[str] = (),
) -> Verdict:
    """``planned`` is the number of cases the check set out to run, ``arms_planned`` the arms it
    set out to run them under (those that have records, if it is empty)."""
    held = list(records)
    run = by_arm(held)
    arms = {arm: run.get(arm, []) for arm in arms_planned or run}
    outcomes = [record.outcome(model) for record in held]
    cases = _whole_cases(arms)
    complete = cases >= planned
    level = rule.LEVEL if complete else rule.INTERIM_LEVEL
    contrasts: list[Contrast] = []
    representation, reasons = _representation(arms, outcomes, level, contrasts)
    probe = probe_score(grades)
    natural = _natural(outcomes, rule.PAGED)
    conditions: tuple[PagingCondition, ...] = ()
    paged: str | None = None
    if rule.PAGED in arms and rule.FLAT in arms:
        conditions = _conditions(
            rule.PAGED, representation, outcomes, natural, probe, level, contrasts
        )
        paged = rule.PAGED if all(one.met for one in conditions) else None
    if paged is not None and rule.FUSED in arms:
        paged = _fused_or(paged, arms, representation, outcomes, probe, level, contrasts)
    if rule.FULL_CURSOR in arms and rule.FLAT in arms:
        contrasts.append(contrast(rule.FULL_CURSOR, rule.FLAT, outcomes))
    reasons.append(_paging_reason(paged, conditions))
    return Verdict(
        model=model,
        representation=representation,
        page=paged is not None,
        arm=paged or representation,
        complete=complete,
        cases=cases,
        planned=planned,
        level=level,
        conditions=conditions,
        reasons=tuple(reasons),
        changes=tuple(one.change for one in conditions if one.change),
        contrasts=tuple(contrasts),
        natural=natural,
        probe=probe,
        arms=tuple(arms),
        notes=tuple(_notes(held, cases, planned, conditions)),
    )


# --- representation -------------------------------------------------------------------


def _representation(
    arms: dict[str, list[RunRecord]],
    outcomes: Sequence[RunOutcome],
    level: float,
    contrasts: list[Contrast],
) -> tuple[str | None, list[str]]:
    run = [arm for arm in rule.REPRESENTATIONS if arm in arms]
    if not run:
        return None, ["no representation was run"]
    chosen, reasons = run[0], []
    for challenger in run[1:]:
        found = contrast(challenger, chosen, outcomes)
        contrasts.append(found)
        beats = found.p <= level
        verb = "beats" if beats else "does not beat"
        reasons.append(f"{challenger} {verb} {chosen} ({_discordants(found)})")
        chosen = challenger if beats else chosen
    return chosen, reasons or [f"{chosen} is the only representation that was run"]


# --- paging ---------------------------------------------------------------------------


def _natural(outcomes: Sequence[RunOutcome], arm: str) -> PostGoal:
    return post_goal(
        [one for one in outcomes if one.arm == arm],
        [one for one in outcomes if one.arm == rule.FLAT],
        confidence=rule.R2_CONFIDENCE,
        draws=2_000,
    )


def _conditions(
    arm: str,
    representation: str | None,
    outcomes: Sequence[RunOutcome],
    natural: PostGoal,
    probe: ProbeScore,
    level: float,
    contrasts: list[Contrast],
) -> tuple[PagingCondition, ...]:
    found = contrast(arm, rule.FLAT, outcomes)
    contrasts.append(found)
    conditions = [_enough(found), _benefit(found, level)]
    if found.goals >= rule.CLUSTERED_FROM_GOALS:
        conditions.append(
            PagingCondition(
                "across-goals",
                found.clustered_p <= level,
                f"goals flipped as a whole: one-sided p = {_p(found.clustered_p)} "
                f"over {found.goals} goals",
                ""
                if found.clustered_p <= level
                else "the gain would have to show in more of the goals",
            )
        )
    conditions.append(_classes(found))
    if representation not in (None, rule.FLAT):
        assert representation is not None
        other = contrast(arm, representation, outcomes)
        contrasts.append(other)
        conditions.append(
            PagingCondition(
                "not-below-choice",
                other.discordance.net >= 0,
                f"{arm} against {representation}: {_discordants(other)}",
                ""
                if other.discordance.net >= 0
                else f"{arm} would have to pass as many cases as {representation}",
            )
        )
    conditions += [_sighted(natural), _quiet(natural), _oriented(probe)]
    return tuple(conditions)


def _enough(found: Contrast) -> PagingCondition:
    met = found.pairs >= rule.LEAST_PAIRS
    short = rule.LEAST_PAIRS - found.pairs
    return PagingCondition(
        "enough",
        met,
        f"{found.pairs} pairs, {rule.LEAST_PAIRS} needed",
        "" if met else f"{short} more cases",
    )


def _benefit(found: Contrast, level: float) -> PagingCondition:
    met = found.p <= level
    change = ""
    if not met:
        wins, losses = found.discordance.wins, found.discordance.losses
        change = (
            f"{missing_wins(wins, losses, level)} more cases that only {found.first} passes; "
            f"{needed_tasks(found)}; {smallest_effect(found)}"
        )
    return PagingCondition(
        "benefit", met, f"{found.first} against flat: {_discordants(found)}", change
    )


def _classes(found: Contrast) -> PagingCondition:
    harmed = [kind for kind in TaskKind if found.harm(kind) <= rule.HARM_LEVEL]
    shown = ", ".join(
        f"{kind} {part.wins}:{part.losses}" for kind, part in sorted(found.classes.items())
    )
    return PagingCondition(
        "no-class-harmed",
        not harmed,
        f"wins and losses by class: {shown or 'none'}",
        f"{found.first} would have to stop losing {' and '.join(harmed)} tasks" if harmed else "",
    )


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
        return PagingCondition("quiet", True, f"ΔR2 is undefined: {natural.delta.reason}")
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


def _oriented(probe: ProbeScore) -> PagingCondition:
    if isinstance(probe.localisation, Undefined) or isinstance(probe.interval, Undefined):
        return PagingCondition("oriented", True, "the probe was not asked")
    met = probe.interval.high >= rule.LEAST_LOCALISATION
    found = (
        f"localisation {probe.localisation:.2f} of {probe.questions} "
        f"(95 % interval {probe.interval.low:.2f} to {probe.interval.high:.2f})"
    )
    none_right = clopper_pearson(0, probe.questions)
    if isinstance(none_right, Interval) and none_right.high >= rule.LEAST_LOCALISATION:
        found += (
            f"; the probe was asked only {probe.questions} questions: "
            "it could not have excluded one half"
        )
    return PagingCondition(
        "oriented",
        met,
        found,
        "" if met else "the model would have to say where it stands when asked",
    )


def _fused_or(
    paged: str,
    arms: dict[str, list[RunRecord]],
    representation: str | None,
    outcomes: Sequence[RunOutcome],
    probe: ProbeScore,
    level: float,
    contrasts: list[Contrast],
) -> str:
    natural = _natural(outcomes, rule.FUSED)
    conditions = _conditions(rule.FUSED, representation, outcomes, natural, probe, level, contrasts)
    spent = {arm: sum(one.prompt_tokens for one in arms[arm]) for arm in (paged, rule.FUSED)}
    cheaper = spent[rule.FUSED] < spent[paged]
    return rule.FUSED if cheaper and all(one.met for one in conditions) else paged


# --- words ----------------------------------------------------------------------------


def _whole_cases(arms: dict[str, list[RunRecord]]) -> int:
    """Cases that were judged under every arm, or broken for good."""
    keys = [{record.key[0] for record in held} for held in arms.values()]
    return len(set.intersection(*keys)) if keys else 0


def _paging_reason(paged: str | None, conditions: Sequence[PagingCondition]) -> str:
    if paged is not None:
        return f"page with {paged}: every condition holds"
    if not conditions:
        return "do not page: paged and flat runs are missing"
    failed = ", ".join(one.name for one in conditions if not one.met)
    return f"do not page, which is the default: not met: {failed}"


def _notes(
    records: Sequence[RunRecord], cases: int, planned: int, conditions: Sequence[PagingCondition]
) -> list[str]:
    notes = []
    if cases < planned:
        notes.append(
            f"{cases} of {planned} planned cases: an interim look, held to the stricter level "
            f"{rule.INTERIM_LEVEL}"
        )
    goals = len({(one.domain, one.goal) for one in records})
    if conditions and goals < rule.CLUSTERED_FROM_GOALS:
        notes.append(f"the verdict is about these {goals} goals and no others")
    broken = sum(one.passed is None for one in records)
    if broken:
        notes.append(f"{broken} runs were broken by the provider and not judged")
    return notes


def _discordants(found: Contrast) -> str:
    wins, losses = found.discordance.wins, found.discordance.losses
    return f"{wins}:{losses} of {found.pairs} pairs, one-sided p = {_p(found.p)}"


def _p(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else f"{value:.1e}"
