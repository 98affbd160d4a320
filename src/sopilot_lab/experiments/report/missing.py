"""Tasks without a verdict, and rates that count them and the screened tasks as failed.

Broken runs are repeated, and long runs break more often, so complete cases alone favour short
ones. Contrasts have bounds over the missing runs for the same reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sopilot_lab.experiments.report.contrasts import PG
from sopilot_lab.experiments.report.runs import Keep, RunSet, screened
from sopilot_lab.experiments.report.table import Table, percent
from sopilot_lab.sopbench.baselines import subset_size
from sopilot_lab.sopbench.screen import Screen

MOST_MISSING = 0.05
"""More of an arm than this, and a report is not to be trusted without a word."""


def missing_runs(runs: RunSet, keep: Keep) -> Table:
    table = Table(
        "missing",
        "Tasks without a verdict, by arm",
        ["series", "arm", "asked", "judged", "missing", "broken runs", "why",
         "pass % of judged", "pass % of asked"],
        method="asked: the tasks that were planned for the arm; pass of asked counts what is "
        "missing as failed (intention to treat); a task that was never asked counts nowhere",
    )  # fmt: skip
    for series in runs.series:
        for arm in series.arms:
            judged = series.kept(arm, keep)
            absent = series.missing(arm, keep)
            passed = sum(each.passed for each in judged)
            request = len(judged) + len(absent)
            made_again = series.arms[arm].broken.get(series.arms[arm].first, 0)
            table.rows.append(
                [
                    series.label,
                    arm,
                    str(request),
                    str(len(judged)),
                    str(len(absent)),
                    str(made_again),
                    _reasons(absent),
                    percent(passed, len(judged)),
                    percent(passed, request),
                ]
            )
    return table


def full_denominators(
    runs: RunSet, scoring: Mapping[str, Mapping[str, Sequence[bool]]], screen: Screen
) -> Table:
    """Rates over every task of the domains, the screened ones counted as failed. A planned part
    of a domain has no such rate: nobody knows how its other tasks would have ended."""
    arms = ("official", "flat", PG)
    table = Table(
        "full-denominator",
        "Over all tasks, omissions counted as failures",
        ["series", "domain", "tasks", "screened out", *(f"{arm} %" for arm in arms)],
        method="a task that the screen leaves out, or that has no verdict, counts as failed",
    )
    if not scoring:
        table.rows.append([table.lacks("no SOPBench checkout"), *["–"] * 6])
        return table
    for series in runs.series:
        for domain in (each for each in runs.domains if each in scoring):
            whole = sum(map(len, scoring[domain].values()))
            left_in = _left_in(domain, scoring[domain], screen)
            cells = []
            for arm in arms:
                if arm not in series.arms:
                    cells.append(table.lacks(f"{series.label}: no runs of {arm}"))
                    continue
                keep = screened(screen, domain)
                stored = series.kept(arm, keep)
                request = len(stored) + len(series.missing(arm, keep))
                if request < left_in:
                    why = f"{series.label}, {arm}: {request} of {left_in} tasks were asked"
                    cells.append(table.lacks(why))
                    continue
                cells.append(percent(sum(each.passed for each in stored), whole))
            table.rows.append([series.label, domain, str(whole), str(whole - left_in), *cells])
    return table


def _left_in(domain: str, goals: Mapping[str, Sequence[bool]], screen: Screen) -> int:
    return subset_size({goal: list(each) for goal, each in goals.items()}, domain, screen)


def alarming(runs: RunSet, keep: Keep, most: float = MOST_MISSING) -> list[str]:
    """The arms that miss more than that share of their tasks."""
    results = []
    for series in runs.series:
        for arm in series.arms:
            absent, judged = len(series.missing(arm, keep)), len(series.kept(arm, keep))
            if absent > most * (absent + judged):
                share = percent(absent, absent + judged)
                results.append(f"{series.label}, {arm}: {absent} tasks ({share} %) have no verdict")
    return results


def _reasons(absent: Mapping[str, str]) -> str:
    return ", ".join(f"{count} {why}" for why, count in Counter(absent.values()).most_common())
