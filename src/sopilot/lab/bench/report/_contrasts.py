"""Tables of paired contrasts: arms against arms on the tasks that both judged."""

from __future__ import annotations

from collections.abc import Sequence

from sopilot.lab.bench.report._table import Table, p_text, percent
from sopilot.lab.bench.report.runs import Keep, RunSet, Series
from sopilot.lab.stats import (
    Pairs,
    Undefined,
    benjamini_hochberg,
    goal_clustered,
    leave_one_goal_out,
    mcnemar,
    pair,
)

MCNEMAR = "p: exact two-sided McNemar on discordant pairs (wins of the first arm : of the second)"


def arms_by_models(runs: RunSet, keep: Keep, scope: str, name: str) -> Table:
    """The study's Table 1, with Benjamini–Hochberg over its contrasts."""
    arms = ("official", "flat", "pg")
    contrasts = (("flat", "official"), ("pg", "flat"))
    table = Table(
        name,
        f"Three arms by model ({scope})",
        ["series", "n", *(f"{arm} %" for arm in arms)] + [f"{a}:{b} (p; BH)" for a, b in contrasts],
        method=f"{MCNEMAR}; BH: Benjamini–Hochberg over the contrasts of this table",
    )
    p_values: list[float] = []
    pairings: list[Pairs | None] = []
    for series in runs.series:
        for first, second in contrasts:
            paired = paired_arms(series, first, second, keep)
            pairings.append(paired)
            if paired is not None:
                p_values.append(mcnemar(paired.discordance.wins, paired.discordance.losses))
    adjusted = iter(benjamini_hochberg(p_values) if p_values else ())
    todo = iter(pairings)
    for series in runs.series:
        counts = {len(series.kept(arm, keep)) for arm in arms if arm in series.arms}
        cells = [series.label, "/".join(map(str, sorted(counts))) or "0"]
        cells += [pass_cell(table, series, arm, keep) for arm in arms]
        for first, second in contrasts:
            paired = next(todo)
            if paired is None:
                cells.append(table.lacks(_why(series, first, second)))
            else:
                cells.append(f"{contrast(paired)[:-1]}; {p_text(next(adjusted).adjusted)})")
        table.rows.append(cells)
    return table


def content_by_format(runs: RunSet, keep: Keep) -> Table:
    """The study's 2×2 of content and format, the official text as reference."""
    arms = ("official", "official-code", "prose", "flat", "official-recipes")
    contrasts = (("official-code", "official"), ("prose", "official"), ("flat", "prose"))
    return _contrast_table(
        runs, keep, "content-format", "Content × format (Bank, screened)", arms, contrasts
    )


def paging(runs: RunSet, keep: Keep) -> Table:
    arms = (
        "flat", "flat-protocol", "full-cursor", "pg", "fused", "state-only", "chunk", "retrieval",
        "checklist",
    )  # fmt: skip
    contrasts = (
        ("flat-protocol", "flat"),
        ("full-cursor", "flat"),
        ("pg", "full-cursor"),
        ("fused", "pg"),
        ("fused", "flat"),
    )
    return _contrast_table(runs, keep, "paging", "Bookkeeping and paging apart", arms, contrasts)


def _contrast_table(
    runs: RunSet,
    keep: Keep,
    name: str,
    title: str,
    arms: Sequence[str],
    contrasts: Sequence[tuple[str, str]],
) -> Table:
    header = ["series", *(f"{arm} %" for arm in arms), *(f"{a}:{b} (p)" for a, b in contrasts)]
    table = Table(name, title, header, method=MCNEMAR)
    for series in runs.series:
        cells = [series.label, *(pass_cell(table, series, arm, keep) for arm in arms)]
        for first, second in contrasts:
            paired = paired_arms(series, first, second, keep)
            why = _why(series, first, second)
            cells.append(table.lacks(why) if paired is None else contrast(paired))
        table.rows.append(cells)
    return table


def domain_matrix(runs: RunSet, keep_of: dict[str, Keep]) -> Table:
    """``pg:flat`` by domain and pooled."""
    table = Table(
        "domain-matrix",
        "Runtime contrast by domain: pg:flat discordant pairs",
        ["domain", *(series.label for series in runs.series)],
        method=f"{MCNEMAR}; pooled over disjoint tasks",
    )
    for domain, keep in keep_of.items():
        cells = [domain]
        for series in runs.series:
            paired = paired_arms(series, "pg", "flat", keep)
            if paired is None:
                cells.append(table.lacks(_why(series, "pg", "flat")))
            elif not len(paired):
                cells.append(table.lacks(f"{series.label}: no task of {domain} was run"))
            else:
                cells.append(contrast(paired))
        table.rows.append(cells)
    return table


def full_cursor(runs: RunSet, keep: Keep) -> Table:
    """The ablation on the tasks that all three arms judged, by class."""
    arms = ("flat", "full-cursor", "pg")
    table = Table(
        "full-cursor",
        "Full-program cursor ablation on the common set",
        [
            "series",
            "split",
            "n",
            *(f"{arm} %" for arm in arms),
            "full-cursor:flat",
            "pg:full-cursor",
        ],
        method=MCNEMAR,
    )
    for series in runs.series:
        absent = [arm for arm in arms if arm not in series.arms]
        if absent:
            why = f"{series.label}: no runs of {', '.join(absent)}"
            table.rows.append([series.label, "all", *[table.lacks(why)] * 6])
            continue
        common = set.intersection(*(set(series.arms[arm]) for arm in arms))
        for split, wanted in (("all", None), ("execute", True), ("refuse", False)):
            kept = {
                arm: [
                    each
                    for each in series.outcomes(arm, keep)
                    if each.task in common
                    and (wanted is None or (each.kind == "execute") is wanted)
                ]
                for arm in arms
            }
            n = len(kept["pg"])
            rates = [percent(sum(each.passed is True for each in kept[arm]), n) for arm in arms]
            table.rows.append(
                [
                    series.label,
                    split,
                    str(n),
                    *rates,
                    contrast(pair(kept["full-cursor"], kept["flat"])),
                    contrast(pair(kept["pg"], kept["full-cursor"])),
                ]
            )
    return table


def goal_clusters(runs: RunSet, pools: dict[str, Keep]) -> Table:
    table = Table(
        "goal-clusters",
        "Goal-clustered sensitivity of pg:flat",
        ["pool", "pg:flat", "task p", "goal p", "leave-one-goal-out max p", "goal left out"],
        method="task p: exact McNemar; goal p: sign flips of whole goals, exact by enumeration of "
        "the distribution; leave-one-goal-out: largest task p after one goal is dropped",
    )
    for series in runs.series:
        paired_pools = [
            (scope, paired_arms(series, "pg", "flat", keep)) for scope, keep in pools.items()
        ]
        for scope, paired in paired_pools:
            label = f"{series.label}, {scope}"
            if paired is None:
                why = _why(series, "pg", "flat")
                table.rows.append([label, *[table.lacks(why)] * 5])
                continue
            if not len(paired):
                continue
            by_goal = paired.by_cluster()
            d = paired.discordance
            worst = leave_one_goal_out(by_goal)
            rest = (
                (worst.reason, "–")
                if isinstance(worst, Undefined)
                else (p_text(worst.p), worst.goal)
            )
            table.rows.append(
                [
                    label,
                    f"{d.wins}:{d.losses}",
                    p_text(mcnemar(d.wins, d.losses)),
                    p_text(goal_clustered(by_goal).p),
                    *rest,
                ]
            )
    return table


def paired_arms(series: Series, first: str, second: str, keep: Keep) -> Pairs | None:
    if first not in series.arms or second not in series.arms:
        return None
    return pair(series.outcomes(first, keep), series.outcomes(second, keep))


def contrast(paired: Pairs) -> str:
    d = paired.discordance
    return f"{d.wins}:{d.losses} ({p_text(mcnemar(d.wins, d.losses))})"


def pass_cell(table: Table, series: Series, arm: str, keep: Keep) -> str:
    if arm not in series.arms:
        return table.lacks(f"{series.label}: no runs of {arm}")
    kept = series.kept(arm, keep)
    if not kept:
        return table.lacks(f"{series.label}, {arm}: no task of this scope was run")
    return percent(sum(each.passed for each in kept), len(kept))


def _why(series: Series, *arms: str) -> str:
    absent = [arm for arm in arms if arm not in series.arms]
    return f"{series.label}: no runs of {', '.join(absent)}"
