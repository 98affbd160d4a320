"""What is not there: tasks without a verdict, folders that hold other tasks, screened tasks.

Runs that break are redrawn, and long runs break more often: complete cases alone favour what is
short. So beside them stand the rates with everything missing counted as failed, and bounds for
the contrast whatever the missing runs would have come to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sopilot_lab.experiments.report.contrasts import PG, Contrast
from sopilot_lab.experiments.report.runs import Keep, RunSet, Series, screened
from sopilot_lab.experiments.report.table import Table, percent, points
from sopilot_lab.sopbench.baselines import subset_size
from sopilot_lab.sopbench.screen import Screen
from sopilot_lab.statistics.paired import pair

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
            absent = missing_tasks(series, arm, keep)
            passed = sum(each.passed for each in judged)
            asked = len(judged) + len(absent)
            made_again = series.arms[arm].broken.get(series.arms[arm].first, 0)
            table.rows.append(
                [
                    series.label,
                    arm,
                    str(asked),
                    str(len(judged)),
                    str(len(absent)),
                    str(made_again),
                    _reasons(absent),
                    percent(passed, len(judged)),
                    percent(passed, asked),
                ]
            )
    return table


def bounds(runs: RunSet, keep: Keep, contrasts: Sequence[Contrast]) -> Table:
    """What a contrast could be at worst, whatever is missing."""
    table = Table(
        "bounds",
        "Contrasts whatever the missing runs would have come to",
        ["series", "contrast", "asked of both", "pairs", "difference of pairs",
         "missing as failed", "worst case", "best case"],
        method="over the tasks that both arms were asked; worst: every missing run of the first "
        "arm fails and of the second passes; best: the reverse",
    )  # fmt: skip
    for series in runs.series:
        for first, second in contrasts:
            if not {first, second} <= series.arms.keys():
                continue
            sides = [{each.task: each.passed for each in series.kept(arm, keep)}
                     for arm in (first, second)]  # fmt: skip
            asked = set.intersection(
                *(
                    {*side, *missing_tasks(series, arm, keep)}
                    for arm, side in zip((first, second), sides, strict=True)
                )
            )
            paired = pair(series.outcomes(first, keep), series.outcomes(second, keep))
            if not asked or not len(paired):
                continue

            table.rows.append(
                [
                    series.label,
                    f"{first}:{second}",
                    str(len(asked)),
                    str(len(paired)),
                    points(paired.discordance.net / len(paired)),
                    _bounded(sides, asked, False, False),
                    _bounded(sides, asked, False, True),
                    _bounded(sides, asked, True, False),
                ]
            )
    if not table.rows:
        table.rows.append([table.lacks("no contrast has runs of both its arms"), *["–"] * 7])
    return table


def _bounded(
    sides: Sequence[Mapping[str, bool]], asked: set[str], in_first: bool, in_second: bool
) -> str:
    """The difference if every missing run of an arm came to the same."""
    left = sum(sides[0].get(task, in_first) for task in asked)
    right = sum(sides[1].get(task, in_second) for task in asked)
    return points((left - right) / len(asked))


def unequal(runs: RunSet, keep: Keep, contrasts: Sequence[Contrast]) -> Table:
    """Tasks that a contrast leaves out because only one arm has them."""
    table = Table(
        "pairing",
        "Tasks that contrasts leave out",
        ["series", "contrast", "pairs", "left out", "why"],
        method="a contrast is over the tasks that both arms judged",
    )
    for series in runs.series:
        for first, second in contrasts:
            if not {first, second} <= series.arms.keys():
                continue
            paired = pair(series.outcomes(first, keep), series.outcomes(second, keep))
            why = ", ".join(
                f"{each.count} {each.reason.replace('first', first).replace('second', second)}"
                for each in paired.dropped
            )
            count = sum(each.count for each in paired.dropped)
            table.rows.append(
                [series.label, f"{first}:{second}", str(len(paired)), str(count), why or "nothing"]
            )
    if not table.rows:
        table.rows.append([table.lacks("no contrast has runs of both its arms"), *["–"] * 4])
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
                kept = series.kept(arm, keep)
                asked = len(kept) + len(missing_tasks(series, arm, keep))
                if asked < left_in:
                    why = f"{series.label}, {arm}: {asked} of {left_in} tasks were asked"
                    cells.append(table.lacks(why))
                    continue
                cells.append(percent(sum(each.passed for each in kept), whole))
            table.rows.append([series.label, domain, str(whole), str(whole - left_in), *cells])
    return table


def _left_in(domain: str, goals: Mapping[str, Sequence[bool]], screen: Screen) -> int:
    return subset_size({goal: list(each) for goal, each in goals.items()}, domain, screen)


def missing_tasks(series: Series, arm: str, keep: Keep) -> dict[str, str]:
    """Task → why it has no verdict, for the tasks that the arm was asked. Other arms may have
    been asked more by plan: the table of pairs names what contrasts leave out."""
    of_arm = series.arms[arm]
    records, absent = of_arm.runs[of_arm.first], of_arm.missing.get(of_arm.first, {})
    return {
        task: each.fault
        for task, each in absent.items()
        if task not in records and keep(task, each.should_succeed)
    }


def alarming(runs: RunSet, keep: Keep, most: float = MOST_MISSING) -> list[str]:
    """The arms that miss more than that share of their tasks."""
    found = []
    for series in runs.series:
        for arm in series.arms:
            absent, judged = len(missing_tasks(series, arm, keep)), len(series.kept(arm, keep))
            if absent > most * (absent + judged):
                share = percent(absent, absent + judged)
                found.append(f"{series.label}, {arm}: {absent} tasks ({share} %) have no verdict")
    return found


def _reasons(absent: Mapping[str, str]) -> str:
    return ", ".join(f"{count} {why}" for why, count in Counter(absent.values()).most_common())
