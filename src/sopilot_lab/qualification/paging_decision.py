"""The verdict: representation, paging, every condition with its figures. Pure.

The rule is ``design/qualification.md``; its numbers are in ``rule``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sopilot.runner.qualifications import Answer
from sopilot_lab.experiments.run_folder import RecordedRun
from sopilot_lab.qualification import rule
from sopilot_lab.qualification.conditions import (
    Contrast,
    PagingCondition,
    PagingEvidence,
    conditions_of,
    contrast,
    discordants,
    meets,
)
from sopilot_lab.qualification.probe import ProbeGrade, ProbeScore, probe_score
from sopilot_lab.statistics.outcomes import RunOutcome
from sopilot_lab.statistics.rates import PostGoal


@dataclass(frozen=True, slots=True)
class Verdict:
    """``arm`` is what to run the model with, ``guarded_arm`` where actions are guarded; the
    latter is ``None`` for a model that is not to be paged. ``representation`` is ``None`` when
    none was run."""

    model: str
    answer: Answer
    representation: str | None
    arm: str | None
    guarded_arm: str | None
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
    notes: tuple[str, ...] = field(default=())

    @property
    def page(self) -> bool:
        return self.answer is Answer.PAGE


def by_arm(runs: Iterable[RecordedRun]) -> dict[str, list[RecordedRun]]:
    result: dict[str, list[RecordedRun]] = {}
    for run in runs:
        result.setdefault(run.arm, []).append(run)
    return result


def decide(
    model: str,
    records: Iterable[RecordedRun],
    grades: Sequence[ProbeGrade] = (),
    *,
    planned: int,
    arms_planned: Sequence[str] = (),
    scripted: bool = False,
    problem: str | None = None,
) -> Verdict:
    """``planned`` is the number of cases the check set out to run, ``arms_planned`` the arms it
    set out to run them under (those that have records, if it is empty). ``scripted``: the model
    is a program, which the probe cannot ask. ``problem`` is what the endpoint did when it ended
    the check."""
    held = list(records)
    run = by_arm(held)
    arms = {arm: run.get(arm, []) for arm in arms_planned or run}
    outcomes = [record.outcome(model) for record in held]
    cases = _whole_cases(arms)
    complete = cases >= planned
    level = rule.LEVEL if complete else rule.INTERIM_LEVEL
    contrasts: list[Contrast] = []
    representation, reasons = _representation(arms, outcomes, level, contrasts)
    seen = PagingEvidence(representation, outcomes, probe_score(grades), level, scripted)
    answer, paged, conditions = _paging(seen, arms, contrasts)
    if _is_broken(held, problem):
        answer, representation, conditions = Answer.BROKEN, None, ()
        reasons = [_broken_reason(held, problem)]
    else:
        reasons.append(_reason(answer, paged, conditions))
    if rule.FULL_CURSOR in arms and rule.FLAT in arms:
        contrasts.append(contrast(rule.FULL_CURSOR, rule.FLAT, outcomes))
    return Verdict(
        model=model,
        answer=answer,
        representation=representation,
        arm=paged if answer is Answer.PAGE else representation,
        guarded_arm=paged if answer in (Answer.PAGE, Answer.MAY_PAGE) else None,
        complete=complete,
        cases=cases,
        planned=planned,
        level=level,
        conditions=conditions,
        reasons=tuple(reasons),
        changes=tuple(condition.change for condition in conditions if condition.change)
        if answer is not Answer.BROKEN
        else ("an endpoint that answers",),
        contrasts=tuple(contrasts),
        natural=seen.natural(rule.PAGED),
        probe=seen.probe,
        notes=tuple(_notes(held, cases, planned, conditions)),
    )


def _representation(
    arms: dict[str, list[RecordedRun]],
    outcomes: Sequence[RunOutcome],
    level: float,
    contrasts: list[Contrast],
) -> tuple[str | None, list[str]]:
    run = [arm for arm in rule.REPRESENTATIONS if arm in arms]
    if not run:
        return None, ["no representation was run"]
    chosen, reasons = run[0], []
    for challenger in run[1:]:
        result = contrast(challenger, chosen, outcomes)
        contrasts.append(result)
        beats = result.p <= level
        verb = "beats" if beats else "does not beat"
        reasons.append(f"{challenger} {verb} {chosen} ({discordants(result)})")
        chosen = challenger if beats else chosen
    return chosen, reasons or [f"{chosen} is the only representation that was run"]


def _paging(
    seen: PagingEvidence, arms: dict[str, list[RecordedRun]], contrasts: list[Contrast]
) -> tuple[Answer, str | None, tuple[PagingCondition, ...]]:
    """The answer, the paged arm where there may be one, and the conditions."""
    if rule.PAGED not in arms or rule.FLAT not in arms:
        return Answer.DO_NOT_PAGE, None, ()
    conditions = conditions_of(seen, rule.PAGED, contrasts)
    answer = _answer(conditions)
    if answer not in (Answer.PAGE, Answer.MAY_PAGE):
        return answer, None, conditions
    if answer is Answer.PAGE:
        conditions = tuple(each for each in conditions if answer in each.needed_for)
    return answer, _fused_or_paged(seen, answer, arms, contrasts), conditions


def _fused_or_paged(
    seen: PagingEvidence,
    answer: Answer,
    arms: dict[str, list[RecordedRun]],
    contrasts: list[Contrast],
) -> str:
    """Tested after ``pg`` and only then, so no level is spent twice. Where paging is a benefit
    ``fused`` must be cheaper to take its place; where it is a choice, it has it."""
    if rule.FUSED not in arms:
        return rule.PAGED
    conditions = conditions_of(seen, rule.FUSED, contrasts)
    fused, paged = (
        sum(each.record.prompt_tokens for each in arms[arm]) for arm in (rule.FUSED, rule.PAGED)
    )
    cheaper = fused < paged or answer is Answer.MAY_PAGE
    return rule.FUSED if cheaper and meets(conditions, answer) else rule.PAGED


def _answer(conditions: Sequence[PagingCondition]) -> Answer:
    if meets(conditions, Answer.PAGE):
        return Answer.PAGE
    if meets(conditions, Answer.MAY_PAGE):
        return Answer.MAY_PAGE
    (enough,) = (condition for condition in conditions if condition.name == "enough")
    return Answer.DO_NOT_PAGE if enough.met else Answer.TOO_FEW


def _whole_cases(arms: dict[str, list[RecordedRun]]) -> int:
    """Cases that were judged under every arm, or broken for good."""
    keys = [{run.record.task for run in held} for held in arms.values()]
    return len(set.intersection(*keys)) if keys else 0


def _is_broken(records: Sequence[RecordedRun], problem: str | None) -> bool:
    """Nothing to judge a model by: the runs that its endpoint broke are the greater part."""
    broken = sum(record.passed is None for record in records)
    judged = len(records) - broken
    return broken > judged or (problem is not None and not judged)


def _broken_reason(records: Sequence[RecordedRun], problem: str | None) -> str:
    broken = [record for record in records if record.passed is None]
    last = problem or next((each.record.reason for each in reversed(broken)), "")
    reply = f": {last}" if last else ""
    if not records:
        return f"broken: the model's endpoint gave no answer that could be judged{reply}"
    return f"broken: the model's endpoint broke {len(broken)} of {len(records)} runs{reply}"


def _reason(answer: Answer, arm: str | None, conditions: Sequence[PagingCondition]) -> str:
    if answer is Answer.PAGE:
        return f"page with {arm}: every condition is met"
    if answer is Answer.MAY_PAGE:
        return (
            f"may page with {arm}: paging wins nothing here, and is shown to lose less than "
            f"{rule.MARGIN:.0%} of cases; if actions are guarded, it adds guards and proof"
        )
    if not conditions:
        return "do not page: paged and flat runs are missing"
    failed = ", ".join(condition.name for condition in conditions if not condition.met)
    if answer is Answer.TOO_FEW:
        return f"too few cases to say anything; the default is not to page: not met: {failed}"
    return f"do not page (the default): not met: {failed}"


def _notes(
    records: Sequence[RecordedRun], cases: int, planned: int, conditions: Sequence[PagingCondition]
) -> list[str]:
    notes = []
    if cases < planned:
        notes.append(
            f"{cases} of {planned} planned cases: an interim look, held to the stricter level "
            f"{rule.INTERIM_LEVEL}"
        )
    goals = len({(run.record.domain, run.record.goal) for run in records})
    if conditions and goals < rule.CLUSTERED_FROM_GOALS:
        notes.append(f"the verdict is about these {goals} goals and no others")
    broken = sum(record.passed is None for record in records)
    if broken:
        notes.append(f"{broken} runs were broken by the provider and not judged")
    return notes
