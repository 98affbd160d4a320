"""The same tasks run several times: pass@k, pass^k, and how far runs differ."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from math import comb

from sopilot_lab.statistics.outcomes import RunOutcome
from sopilot_lab.statistics.undefined import Undefined, require

_Task = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PassK:
    """``at`` is the chance that one of ``k`` runs passes (pass@k), ``every`` that all of
    them do (pass^k); both unbiased, averaged over ``tasks``. ``short`` tasks had
    fewer than ``k`` judged runs and are left out."""

    k: int
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
        return PassK(k, missing, missing, 0, short)
    at = statistics.fmean(1 - comb(runs - passed, k) / comb(runs, k) for passed, runs in enough)
    every = statistics.fmean(comb(passed, k) / comb(runs, k) for passed, runs in enough)
    return PassK(k, at, every, len(enough), short)


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


def _verdicts(outcomes: Iterable[RunOutcome]) -> dict[_Task, dict[int, bool]]:
    result: dict[_Task, dict[int, bool]] = {}
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
