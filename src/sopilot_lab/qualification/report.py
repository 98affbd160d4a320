"""A verdict with its evidence as one JSON document, from which text and page are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sopilot.values.json import JSON, Fields
from sopilot_lab.qualification.advice import foresight
from sopilot_lab.qualification.contrast import Contrast
from sopilot_lab.qualification.paging_decision import Verdict
from sopilot_lab.qualification.probe_grading import ProbeGrade, ProbeScore, scores_by_depth
from sopilot_lab.qualification.record import RunRecord, by_arm
from sopilot_lab.qualification.rehearsal import Rehearsal
from sopilot_lab.qualification.spending import Allowance, CheckSpending
from sopilot_lab.statistics.accuracy import accuracy
from sopilot_lab.statistics.intervals import clopper_pearson
from sopilot_lab.statistics.undefined import Interval, Undefined


def verdict_document(
    verdict: Verdict,
    records: Sequence[RunRecord],
    grades: Sequence[ProbeGrade],
    spending: CheckSpending,
    rehearsal: Rehearsal,
    *,
    stopped: str | None = None,
    seconds: float = 0.0,
) -> dict[str, JSON]:
    """Undefined figures are ``null``."""
    natural = verdict.natural
    return {
        "model": verdict.model,
        "answer": str(verdict.answer),
        "page": verdict.page,
        "representation": verdict.representation,
        "arm": verdict.arm,
        "guarded_arm": verdict.guarded_arm,
        "rule_version": verdict.rule_version,
        "complete": verdict.complete,
        "stopped_by": stopped,
        "cases": verdict.cases,
        "planned": verdict.planned,
        "level": verdict.level,
        "reasons": list(verdict.reasons),
        "conditions": [
            asdict(condition) | {"needed_for": [str(answer) for answer in condition.needed_for]}
            for condition in verdict.conditions
        ],
        "changes": list(verdict.changes),
        "notes": list(verdict.notes),
        "arms": {arm: _arm(held, verdict.model) for arm, held in by_arm(records).items()},
        "contrasts": [_contrast(contrast) for contrast in verdict.contrasts],
        "natural": {
            "paged": _figure(natural.first),
            "paged_runs": natural.first_runs,
            "flat": _figure(natural.second),
            "flat_runs": natural.second_runs,
            "delta": _figure(natural.delta),
            "interval": None
            if isinstance(natural.interval, Undefined)
            else _bounds(natural.interval.interval),
        },
        "probe": _probe(verdict.probe)
        | {"depths": {str(depth): _probe(item) for depth, item in scores_by_depth(grades).items()}},
        "estimate": asdict(rehearsal.total),
        "used": {
            "requests": spending.calls,
            "prompt_tokens": spending.prompt_tokens,
            "completion_tokens": spending.completion_tokens,
            "money": _money(spending.money, spending.allowance),
            "seconds": round(seconds, 1),
        },
        "budget": {
            "requests": spending.allowance.calls,
            "money": spending.allowance.money,
            "minutes": spending.allowance.minutes,
        },
    }


def _arm(held: Sequence[RunRecord], model: str) -> dict[str, JSON]:
    judged = [item for item in held if item.passed is not None]
    passed = sum(item.passed is True for item in judged)
    result = accuracy([item.outcome(model) for item in judged])
    after = [item.post_goal_calls for item in held if item.post_goal_calls is not None]
    return {
        "n": len(judged),
        "pass": passed,
        "rate": passed / len(judged) if judged else None,
        "interval": _bounds(clopper_pearson(passed, len(judged))),
        "execute": _figure(result.execute.share),
        "refuse": _figure(result.refuse.share),
        "r2": sum(after) / len(after) if after else None,
        "requests": sum(item.requests for item in held),
        "domain_calls": sum(item.domain_calls for item in held),
        "prompt_tokens": sum(item.prompt_tokens for item in held),
        "completion_tokens": sum(item.completion_tokens for item in held),
        "broken": len(held) - len(judged),
        "seconds": round(sum(item.seconds for item in held), 1),
    }


def _contrast(contrast: Contrast) -> dict[str, JSON]:
    return {
        "first": contrast.first,
        "second": contrast.second,
        "pairs": contrast.pairs,
        "goals": contrast.goals,
        "wins": contrast.discordance.wins,
        "losses": contrast.discordance.losses,
        "p_one_sided": contrast.p,
        "p_goals": contrast.clustered_p,
        "p_inferior": _figure(contrast.inferior_p),
        "goals_interval": _bounds(contrast.goals_interval),
        "difference": _figure(contrast.difference),
        "interval": _bounds(contrast.interval),
    }


def _probe(score: ProbeScore) -> dict[str, JSON]:
    return {
        "questions": score.questions,
        "answered": score.answered,
        "localisation": _figure(score.localisation),
        "interval": _bounds(score.interval),
        "score": _figure(score.score),
        "score_interval": _bounds(score.score_interval),
        "whole": _figure(score.whole),
    }


def _figure(value: float | Undefined) -> float | None:
    return None if isinstance(value, Undefined) else value


def _bounds(interval: Interval | Undefined) -> list[float] | None:
    return None if isinstance(interval, Undefined) else [interval.low, interval.high]


def estimate_document(
    rehearsal: Rehearsal, arms: Sequence[str], allowance: Allowance, cases: int
) -> Fields:
    """What a check will take at least, before anything is spent."""
    total = rehearsal.total
    cost = allowance.prices.cost(total.prompt_tokens, total.completion_tokens)
    return {
        "cases": cases,
        "arms": {arm: rehearsal.of_arm(arm).requests for arm in arms},
        "requests": total.requests,
        "prompt_tokens": total.prompt_tokens,
        "completion_tokens": total.completion_tokens,
        "money": _money(cost, allowance),
        "unreachable": list(rehearsal.unreachable),
        "can_show": foresight(cases),
    }


def _money(value: float, allowance: Allowance) -> float | None:
    """Unknown without prices."""
    return round(value, 4) if allowance.prices.known else None
