"""The same configuration run several times, and calls after the goal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sopilot_lab.experiments.report.contrasts import runtime_contrasts
from sopilot_lab.experiments.report.runs import Keep, RunSet, Series
from sopilot_lab.experiments.report.table import Table
from sopilot_lab.statistics.post_goal import post_goal
from sopilot_lab.statistics.repeats import pass_k, run_to_run
from sopilot_lab.statistics.undefined import Undefined

_DRAWS = 1_000


def repeated_arms(runs: RunSet, keep: Keep) -> Table:
    table = Table(
        "repeats",
        "Repetitions: pass^k and agreement between runs",
        ["series", "arm", "runs", "tasks", "pass % by run", "pass@k %", "pass^k %", "agreement %",
         "next run agrees %"],
        method="k: the number of runs; pass@k: one of k passes, pass^k: all of them do, over the "
        "tasks with k judged runs; agreement: tasks with one verdict in all runs; next run: mean "
        "over runs that follow one another",
    )  # fmt: skip
    for series in runs.series:
        for arm, of_arm in series.arms.items():
            count = len(of_arm.runs)
            if count < 2:
                continue
            outcomes = series.every_run(arm, keep)
            result, spread = pass_k(outcomes, count), run_to_run(outcomes)
            rates = "/".join(f"{100 * rate:.1f}" for _, rate in spread.rates)
            table.rows.append(
                [
                    series.label,
                    arm,
                    str(count),
                    str(spread.tasks),
                    rates or "–",
                    _percent(result.at),
                    _percent(result.every),
                    _percent(spread.agreement),
                    _percent(_neighbours(series, arm, keep)),
                ]
            )
    if not table.rows:
        why = "no configuration was run twice (`lab run --run 2`)"
        table.rows.append([table.lacks(why), *["–"] * 8])
    return table


def _neighbours(series: Series, arm: str, keep: Keep) -> float | Undefined:
    shares = []
    for item, other in pairwise(sorted(series.arms[arm].runs)):
        left = {each.task: each.passed for each in series.kept(arm, keep, item)}
        right = {each.task: each.passed for each in series.kept(arm, keep, other)}
        both = left.keys() & right.keys()
        if both:
            shares.append(sum(left[task] == right[task] for task in both) / len(both))
    return sum(shares) / len(shares) if shares else Undefined("no task in two runs")


def delta_r2(runs: RunSet, keep: Keep) -> Sequence[tuple[str, float, tuple[float, float] | None]]:
    """Series and runtime → ΔR2 with its interval, for the figure."""
    deltas = []
    columns = [(series, *each) for series in runs.series for each in runtime_contrasts(series)]
    for series, label, contrast in columns:
        if not {*contrast} <= series.arms.keys():
            continue
        after = post_goal(*(series.outcomes(arm, keep) for arm in contrast), draws=_DRAWS)
        if not isinstance(after.delta, Undefined):
            within = after.interval
            bounds = None
            if not isinstance(within, Undefined):
                bounds = (within.interval.low, within.interval.high)
            deltas.append((label, after.delta, bounds))
    return deltas


def _percent(share: float | Undefined) -> str:
    return f"– ({share.reason})" if isinstance(share, Undefined) else f"{100 * share:.1f}"
