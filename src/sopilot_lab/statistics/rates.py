"""Rates of one side: accuracy by class, repetitions, calls after the goal."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from math import comb

from sopilot_lab.statistics.intervals import (
    DRAWS,
    SEED,
    Interval,
    Sums,
    Undefined,
    clustered_interval,
    require,
)
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind


@dataclass(frozen=True, slots=True)
class Rate:
    passed: int = 0
    judged: int = 0

    @property
    def share(self) -> float | Undefined:
        return self.passed / self.judged if self.judged else Undefined("no judged run")


@dataclass(frozen=True, slots=True)
class Accuracy:
    """``unjudged`` runs are in no rate."""

    execute: Rate
    refuse: Rate
    unjudged: int

    @property
    def all(self) -> Rate:
        return Rate(
            self.execute.passed + self.refuse.passed, self.execute.judged + self.refuse.judged
        )

    @property
    def balanced(self) -> float | Undefined:
        return balanced_accuracy(self.execute, self.refuse)


def balanced_accuracy(execute: Rate, refuse: Rate) -> float | Undefined:
    """The mean of both rates, so that the ratio of the classes decides nothing."""
    for rate in (execute, refuse):
        require(0 <= rate.passed <= rate.judged, f"`{rate.passed}` of `{rate.judged}` passed")
    acted, refused = execute.share, refuse.share
    if isinstance(acted, Undefined):
        return Undefined("no judged execute task")
    if isinstance(refused, Undefined):
        return Undefined("no judged refuse task")
    return (acted + refused) / 2.0


def accuracy(outcomes: Iterable[RunOutcome]) -> Accuracy:
    passed = dict.fromkeys(TaskKind, 0)
    judged = dict.fromkeys(TaskKind, 0)
    unjudged = 0
    for outcome in outcomes:
        if outcome.passed is None:
            unjudged += 1
            continue
        judged[outcome.kind] += 1
        passed[outcome.kind] += outcome.passed
    rates = {kind: Rate(passed[kind], judged[kind]) for kind in TaskKind}
    return Accuracy(rates[TaskKind.EXECUTE], rates[TaskKind.REFUSE], unjudged)


@dataclass(frozen=True, slots=True)
class PassK:
    """``at`` is the chance that one of ``k`` runs passes (pass@k), ``every`` that all of
    them do (pass^k); both unbiased, averaged over ``tasks``. ``short`` tasks had
    fewer than ``k`` judged runs and are left out."""

    at: float | Undefined
    every: float | Undefined
    tasks: int
    short: int


@dataclass(frozen=True, slots=True)
class RunSpread:
    """Pass rate by run over the tasks that every run judged, their mean and sample
    variance, and the share of tasks whose verdict changed between runs."""

    rates: tuple[tuple[int, float], ...]
    tasks: int
    mean: float | Undefined
    variance: float | Undefined
    unstable: float | Undefined

    @property
    def agreement(self) -> float | Undefined:
        """The share of tasks with the same verdict in every run."""
        return self.unstable if isinstance(self.unstable, Undefined) else 1.0 - self.unstable


def pass_k(outcomes: Iterable[RunOutcome], k: int) -> PassK:
    """For the outcomes of one arm and one model."""
    require(k >= 1, f"k must be at least 1, not `{k}`")
    counts = [(sum(verdicts.values()), len(verdicts)) for verdicts in _verdicts(outcomes).values()]
    enough = [(passed, runs) for passed, runs in counts if runs >= k]
    short = len(counts) - len(enough)
    if not enough:
        missing = Undefined(f"no task has {k} judged runs")
        return PassK(missing, missing, 0, short)
    at = statistics.fmean(1 - comb(runs - passed, k) / comb(runs, k) for passed, runs in enough)
    every = statistics.fmean(comb(passed, k) / comb(runs, k) for passed, runs in enough)
    return PassK(at, every, len(enough), short)


def run_to_run(outcomes: Iterable[RunOutcome]) -> RunSpread:
    """For the outcomes of one arm and one model."""
    verdicts = _verdicts(outcomes)
    runs = sorted({run for by_run in verdicts.values() for run in by_run})
    shared = [by_run for by_run in verdicts.values() if len(by_run) == len(runs)]
    if not shared:
        missing = Undefined("no task was judged in every run")
        return RunSpread((), 0, missing, missing, missing)
    rates = {run: statistics.fmean(by_run[run] for by_run in shared) for run in runs}
    variance: float | Undefined = Undefined("a variance needs at least two runs")
    unstable: float | Undefined = variance
    if len(runs) > 1:
        variance = statistics.variance(rates.values())
        unstable = statistics.fmean(len(set(by_run.values())) > 1 for by_run in shared)
    return RunSpread(
        tuple(rates.items()),
        len(shared),
        statistics.fmean(rates.values()),
        variance,
        unstable,
    )


def _verdicts(outcomes: Iterable[RunOutcome]) -> dict[tuple[str, str], dict[int, bool]]:
    result: dict[tuple[str, str], dict[int, bool]] = {}
    for outcome in outcomes:
        by_run = result.setdefault((outcome.domain, outcome.task), {})
        if outcome.passed is None:
            continue
        require(
            outcome.run not in by_run,
            f"task `{outcome.task}` has run `{outcome.run}` twice: give each run its own number",
        )
        by_run[outcome.run] = outcome.passed
    return result


@dataclass(frozen=True, slots=True)
class PostGoal:
    """Mean calls after the goal on each side, over the runs in which the goal action
    succeeded, and the first minus the second (the paper's ΔR2)."""

    first: float | Undefined
    first_runs: int
    second: float | Undefined
    second_runs: int
    delta: float | Undefined
    interval: Interval | Undefined


def post_goal(
    first: Iterable[RunOutcome],
    second: Iterable[RunOutcome],
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = SEED,
) -> PostGoal:
    """Each side's mean is over its own successful runs, so the sides need not share
    them; the interval resamples goals, both sides of a goal together."""
    rows: list[tuple[str, Sums]] = [
        (outcome.unit, (calls, 1, 0, 0) if side == 0 else (0, 0, calls, 1))
        for side, outcomes in enumerate((first, second))
        for outcome in outcomes
        if (calls := outcome.post_goal_calls) is not None
    ]
    totals = tuple(sum(row[place] for _, row in rows) for place in range(4))
    delta = _delta(totals)
    missing = Undefined("one side has no run in which the goal succeeded")
    interval: Interval | Undefined = missing
    if delta is not None:
        interval = clustered_interval(rows, _delta, confidence=confidence, draws=draws, seed=seed)
    return PostGoal(
        first=_mean(totals[0], totals[1]),
        first_runs=totals[1],
        second=_mean(totals[2], totals[3]),
        second_runs=totals[3],
        delta=missing if delta is None else delta,
        interval=interval,
    )


def _mean(calls: int, runs: int) -> float | Undefined:
    return calls / runs if runs else Undefined("no run in which the goal succeeded")


def _delta(sums: Sums) -> float | None:
    first, first_runs, second, second_runs = sums
    if not first_runs or not second_runs:
        return None
    return first / first_runs - second / second_runs
