"""The figures to be quoted: clustered by goal, with intervals, kinds apart, one family.

Tasks of a goal share a program and a policy, so they fall together: a test that takes them for
independent rejects too often. Two models on the same tasks are not independent either. Which
contrasts are a family is fixed here, before any run is seen; whatever else the report holds is
exploratory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

from sopilot_lab.experiments.report.contrasts import (
    COMPILATION,
    PG,
    RUNTIME,
    Contrast,
    contrast_label,
    paired_arms,
    runtime_contrasts,
    why_no_pair,
)
from sopilot_lab.experiments.report.runs import Keep, RunSet, Series
from sopilot_lab.experiments.report.table import Table, p_text, percent, points
from sopilot_lab.statistics.clustered import goal_clustered, leave_one_goal_out
from sopilot_lab.statistics.comparison import Comparison, compare
from sopilot_lab.statistics.outcomes import TaskKind
from sopilot_lab.statistics.paired import Pairs, benjamini_hochberg, mcnemar, pair
from sopilot_lab.statistics.undefined import Undefined

FAMILY: Final[Sequence[Contrast]] = (COMPILATION, RUNTIME)
"""Compilation and runtime, the study's two questions."""


DRAWS = 2_000


def headline(runs: RunSet, keep: Keep, scope: str, family: Sequence[Contrast] = FAMILY) -> Table:
    named = ", ".join(f"{first}:{second}" for first, second in family)
    table = Table(
        "headline",
        f"Headline contrasts ({scope})",
        ["series", "contrast", "kind", "pairs", "goals", "first %", "second %", "difference",
         "95 % by goals", "goal p", "BH", "wins:losses", "task p"],
        method=f"goal p: exact sign flips of whole goals; interval: goals resampled {DRAWS:,} "
        "times; BH: Benjamini–Hochberg over the goal p of the rows `all`, which are the family "
        f"fixed beforehand ({named}); task p: exact McNemar, for comparison with the study: it "
        "takes tasks of a goal for independent and rejects too often",
    )  # fmt: skip
    rows: list[tuple[Series, str, str, Comparison]] = []
    for series in runs.series:
        for first, second in family:
            paired = paired_arms(series, first, second, keep)
            if paired is None or not len(paired):
                why = why_no_pair(series, first, second)
                cells = [series.label, f"{first}:{second}", "all", *[table.lacks(why)] * 10]
                table.rows.append(cells)
                continue
            kinds: list[tuple[str, Pairs]] = [("all", paired)]
            kinds += [(str(kind), paired.only(kind)) for kind in TaskKind]
            rows += [
                (series, f"{first}:{second}", name, compare(some, draws=DRAWS))
                for name, some in kinds
            ]
    whole = [each.clustered.p for _, _, name, each in rows if name == "all"]
    adjusted = iter(benjamini_hochberg(whole) if whole else ())
    for series, named_contrast, kind, found in rows:
        bh = p_text(next(adjusted).adjusted) if kind == "all" else ""
        table.rows.append([series.label, named_contrast, kind, *_figures(found, bh)])
    return table


def _figures(found: Comparison, adjusted: str) -> list[str]:
    interval = found.clustered_interval
    shown = (
        f"– ({interval.reason})"
        if isinstance(interval, Undefined)
        else f"{points(interval.interval.low)} to {points(interval.interval.high)}"
    )
    difference = found.difference
    return [
        str(found.pairs),
        str(found.goals),
        percent(found.first_passed, found.pairs),
        percent(found.second_passed, found.pairs),
        "–" if isinstance(difference, Undefined) else points(difference),
        shown,
        p_text(found.clustered.p),
        adjusted,
        f"{found.discordance.wins}:{found.discordance.losses}",
        p_text(found.p),
    ]


def pooled_models(runs: RunSet, pools: Mapping[str, Keep]) -> Table:
    """The study's pooled pair, for every two models on the same tasks."""
    table = Table(
        "pooled-models",
        f"Two models pooled: {PG}:flat",
        ["models", "pool", f"{PG}:flat", "task-joint p", "goal p", "tasks with a net"],
        method="task-joint p: a task flips for both models at once, for they share it; goal p: "
        "whole goals flip for both; exact",
    )
    both = [each for each in runs.series if {*RUNTIME} <= each.arms.keys()]
    alike = [
        two
        for two in combinations(both, 2)
        if two[0].model != two[1].model
        and (two[0].tools, two[0].language, two[0].varied)
        == (two[1].tools, two[1].language, two[1].varied)
    ]
    if not alike:
        why = f"fewer than two models with runs of {PG} and flat in one setting"
        table.rows.append([table.lacks(why), *["–"] * 5])
    for one, other in alike:
        for name, keep in pools.items():
            sides = [
                [each for series in (one, other) for each in series.outcomes(arm, keep)]
                for arm in RUNTIME
            ]
            found = compare(pair(*sides), draws=1)
            if found.joint is None:
                continue
            d = found.discordance
            table.rows.append(
                [
                    f"{one.label} + {other.label}",
                    name,
                    f"{d.wins}:{d.losses}",
                    p_text(found.joint.p),
                    p_text(found.clustered.p),
                    str(found.joint.units),
                ]
            )
    return table


def goal_clusters(runs: RunSet, pools: Mapping[str, Keep]) -> Table:
    table = Table(
        "goal-clusters",
        f"Goal-clustered sensitivity of {PG}:flat",
        ["pool", "wins:losses", "task p", "goal p", "leave-one-goal-out max p", "goal left out"],
        method="task p: exact McNemar; goal p: sign flips of whole goals, exact by enumeration of "
        "the distribution; leave-one-goal-out: largest task p after one goal is dropped",
    )
    columns = [(series, each) for series in runs.series for each in runtime_contrasts(series)]
    for series, contrast in columns:
        for scope, keep in pools.items():
            label = f"{contrast_label(series, contrast)}, {scope}"
            paired = paired_arms(series, *contrast, keep)
            if paired is None:
                why = why_no_pair(series, *contrast)
                table.rows.append([label, *[table.lacks(why)] * 5])
            elif len(paired):
                table.rows.append([label, *_clustered(paired)])
    return table


def _clustered(paired: Pairs) -> list[str]:
    by_goal = paired.by_cluster()
    d = paired.discordance
    worst = leave_one_goal_out(by_goal)
    rest = [worst.reason, "–"] if isinstance(worst, Undefined) else [p_text(worst.p), worst.goal]
    task, goal = mcnemar(d.wins, d.losses), goal_clustered(by_goal).p
    return [f"{d.wins}:{d.losses}", p_text(task), p_text(goal), *rest]


def goal_nets(runs: RunSet, keep: Keep) -> Table:
    table = Table(
        "goal-nets",
        f"Net of {PG}:flat by goal, largest first",
        ["series", "goal", "first alone", "flat alone", "net"],
        method="goals without a discordant pair are left out; complete with `sopilot lab stats "
        "clustered --json`",
    )
    columns = [(series, each) for series in runs.series for each in runtime_contrasts(series)]
    for series, contrast in columns:
        label = contrast_label(series, contrast)
        paired = paired_arms(series, *contrast, keep)
        if paired is None:
            table.rows.append([label, *[table.lacks(why_no_pair(series, *contrast))] * 4])
            continue
        found = [(goal, part) for goal, part in paired.by_cluster().items() if part.total]
        found.sort(key=lambda item: (-abs(item[1].net), -item[1].net, item[0]))
        table.rows += [
            [label, goal, str(part.wins), str(part.losses), f"{part.net:+d}"]
            for goal, part in found
        ]
        if not found:
            why = f"{label}: no pair in which only one of {' and '.join(contrast)} passed"
            table.rows.append([label, *[table.lacks(why)] * 4])
    return table
