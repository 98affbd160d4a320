"""The same configuration run several times, and the same runs under other conditions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sopilot_lab.experiments.report.contrasts import (
    COMPILATION,
    PG,
    RUNTIME,
    Contrast,
    contrast_label,
    contrast_text,
    paired_arms,
    runtime_contrasts,
)
from sopilot_lab.experiments.report.runs import Keep, RunSet, Series
from sopilot_lab.experiments.report.table import Table, figure, p_text, percent, points
from sopilot_lab.statistics.comparison import compare
from sopilot_lab.statistics.paired import pair
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
            found, spread = pass_k(outcomes, count), run_to_run(outcomes)
            rates = "/".join(f"{100 * rate:.1f}" for _, rate in spread.rates)
            table.rows.append(
                [
                    series.label,
                    arm,
                    str(count),
                    str(spread.tasks),
                    rates or "–",
                    _percent(found.at),
                    _percent(found.every),
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
    for one, other in pairwise(sorted(series.arms[arm].runs)):
        left = {each.task: each.passed for each in series.kept(arm, keep, one)}
        right = {each.task: each.passed for each in series.kept(arm, keep, other)}
        both = left.keys() & right.keys()
        if both:
            shares.append(sum(left[task] == right[task] for task in both) / len(both))
    return sum(shares) / len(shares) if shares else Undefined("no task in two runs")


def contrast_by_run(runs: RunSet, keep: Keep, contrast: Contrast = RUNTIME) -> Table:
    first, second = contrast
    table = Table(
        "runs",
        f"{first}:{second} by run, and pooled",
        ["series", "run", "pairs", "wins:losses (task p)", "difference", "goal p", "task-joint p",
         "ΔR2", "95 % by goals"],
        method="run n of one arm is paired with run n of the other; pooled: a task flips with all "
        "its runs, a goal with all its tasks; ΔR2: calls after the goal, first minus second arm, "
        f"goals resampled {_DRAWS:,} times",
    )  # fmt: skip
    for series in runs.series:
        if not {first, second} <= series.arms.keys():
            continue
        numbers = sorted(series.arms[first].runs.keys() & series.arms[second].runs.keys())
        if len(numbers) < 2:
            continue
        for number in [*numbers, None]:
            table.rows.append([series.label, *_one_run(series, contrast, keep, number)])
    if not table.rows:
        why = f"no model has two runs of both {first} and {second} (`lab run --run 2`)"
        table.rows.append([table.lacks(why), *["–"] * 8])
    return table


def _one_run(series: Series, contrast: Contrast, keep: Keep, number: int | None) -> list[str]:
    """``None``: all runs together."""
    sides = [
        series.every_run(arm, keep) if number is None else series.outcomes(arm, keep, number)
        for arm in contrast
    ]
    paired = pair(*sides)
    found, after = compare(paired, draws=1), post_goal(*sides, draws=_DRAWS)
    interval = after.interval
    return [
        "pooled" if number is None else str(number),
        str(len(paired)),
        contrast_text(paired),
        "–" if isinstance(found.difference, Undefined) else points(found.difference),
        p_text(found.clustered.p),
        "" if found.joint is None else p_text(found.joint.p),
        figure(after.delta, 3),
        f"– ({interval.reason})"
        if isinstance(interval, Undefined)
        else f"{interval.interval.low:.2f} to {interval.interval.high:.2f}",
    ]


def sensitivity(runs: RunSet, keep: Keep, scope: str) -> Table:
    """The three arms under every condition that varies on purpose."""
    arms, contrasts = ("official", "flat", PG), (COMPILATION, RUNTIME)
    table = Table(
        "sensitivity",
        f"Sensitivity to budgets, user and other conditions ({scope})",
        [
            "model",
            "condition",
            *(f"{arm} %" for arm in arms),
            *(f"{a}:{b} (p)" for a, b in contrasts),
        ],
        method="a condition is never paired with another; p: exact McNemar",
    )
    for series in runs.series if runs.vary else ():
        cells = [f"{series.model} ({series.tools} tools)", series.varied or "as the others"]
        for arm in arms:
            kept = series.kept(arm, keep)
            passed = sum(each.passed for each in kept)
            why = f"{series.label}: no runs of {arm}"
            cells.append(percent(passed, len(kept)) if kept else table.lacks(why))
        for first, second in contrasts:
            paired = paired_arms(series, first, second, keep)
            why = f"{series.label}: no runs of {first} or {second}"
            cells.append(table.lacks(why) if paired is None else contrast_text(paired))
        table.rows.append(cells)
    if not table.rows:
        why = "nothing varies: report folders of other budgets or users with `--vary budgets`"
        table.rows.append([table.lacks(why), *["–"] * (len(table.header) - 1)])
    return table


def delta_r2(runs: RunSet, keep: Keep) -> Sequence[tuple[str, float, tuple[float, float] | None]]:
    """Series and runtime → ΔR2 with its interval, for the figure."""
    found = []
    columns = [(series, each) for series in runs.series for each in runtime_contrasts(series)]
    for series, contrast in columns:
        if not set(contrast) <= series.arms.keys():
            continue
        after = post_goal(*(series.outcomes(arm, keep) for arm in contrast), draws=_DRAWS)
        if not isinstance(after.delta, Undefined):
            within = after.interval
            bounds = None
            if not isinstance(within, Undefined):
                bounds = (within.interval.low, within.interval.high)
            found.append((contrast_label(series, contrast), after.delta, bounds))
    return found


def _percent(share: float | Undefined) -> str:
    return f"– ({share.reason})" if isinstance(share, Undefined) else f"{100 * share:.1f}"
