"""The study's tables of paired contrasts: arms against arms on the tasks that both judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sopilot_lab.experiments.report.runs import Keep, RunSet, Series
from sopilot_lab.experiments.report.table import Table, p_text, percent
from sopilot_lab.statistics.outcomes import RunOutcome
from sopilot_lab.statistics.paired import Pairs, benjamini_hochberg, mcnemar, pair

Contrast = tuple[str, str]


PG: Final = "pg-paper"
"""The study's PG column: the paper's runtime, not our improved ones."""


COMPILATION: Final[Contrast] = ("flat", "official")


RUNTIME: Final[Contrast] = (PG, "flat")


OURS: Final = ("pg", "fused")
"""Our improved runtimes: rows and contrasts of their own beside the paper's."""


MCNEMAR = "p: exact two-sided McNemar on discordant pairs (wins of the first arm : of the second)"


OWN_CONTRASTS: Final[Sequence[Contrast]] = tuple(
    (ours, other) for ours in OURS for other in ("flat", PG)
)


_PAGING = (
    "flat", "flat-protocol", "flat-state", "full-cursor", PG, *OURS, "state-only", "chunk",
    "retrieval", "checklist",
)  # fmt: skip


def arms_by_models(runs: RunSet, keep: Keep, scope: str, name: str) -> Table:
    """The study's Table 1, with Benjamini–Hochberg over its contrasts."""
    arms = ("official", "flat", PG)
    contrasts = (COMPILATION, RUNTIME)
    table = Table(
        name,
        f"Three arms by model ({scope})",
        ["series", "n", *(f"{arm} %" for arm in arms)] + [f"{a}:{b} (p; BH)" for a, b in contrasts],
        method=f"{MCNEMAR}; BH: Benjamini–Hochberg over the contrasts of this table",
    )
    pairings = [
        paired_arms(series, *contrast, keep) for series in runs.series for contrast in contrasts
    ]
    p_values = [each.discordance for each in pairings if each]
    adjusted = iter(benjamini_hochberg([mcnemar(d.wins, d.losses) for d in p_values]))
    todo = iter(pairings)
    for series in runs.series:
        counts = {len(series.kept(arm, keep)) for arm in arms if arm in series.arms}
        cells = [series.label, "/".join(map(str, sorted(counts))) or "0"]
        cells += [pass_cell(table, series, arm, keep) for arm in arms]
        for first, second in contrasts:
            paired = next(todo)
            if not paired:
                cells.append(table.lacks(why_no_pair(series, first, second)))
            else:
                cells.append(f"{contrast_text(paired)[:-1]}; {p_text(next(adjusted).adjusted)})")
        table.rows.append(cells)
    return table


def content_by_format(runs: RunSet, keep: Keep) -> Table:
    """The study's 2×2 of content and format, the official text as reference, and the ablation
    that adds recipes to the unmodified text."""
    arms = ("official", "official-code", "prose", "flat", "official-recipes")
    contrasts = (
        ("official-code", "official"), ("prose", "official"), ("flat", "prose"),
        ("official-recipes", "official"), ("flat", "official-recipes"),
        ("prose", "official-recipes"),
    )  # fmt: skip
    title = "Content × format, and recipes alone (Bank, screened)"
    return _contrast_table(runs, keep, "content-format", title, arms, contrasts)


def paging(runs: RunSet, keep: Keep) -> Table:
    contrasts = (
        ("flat-protocol", "flat"), (PG, "flat-protocol"), ("full-cursor", "flat"),
        (PG, "full-cursor"), *OWN_CONTRASTS,
    )  # fmt: skip
    title = "Bookkeeping and paging apart"
    return _contrast_table(runs, keep, "paging", title, _PAGING, contrasts)


def _contrast_table(
    runs: RunSet,
    keep: Keep,
    name: str,
    title: str,
    arms: Sequence[str],
    contrasts: Sequence[Contrast],
) -> Table:
    header = ["series", *(f"{arm} %" for arm in arms), *(f"{a}:{b} (p)" for a, b in contrasts)]
    table = Table(name, title, header, method=MCNEMAR)
    for series in runs.series:
        cells = [series.label, *(pass_cell(table, series, arm, keep) for arm in arms)]
        for first, second in contrasts:
            paired = paired_arms(series, first, second, keep)
            why = why_no_pair(series, first, second)
            cells.append(table.lacks(why) if paired is None else contrast_text(paired))
        table.rows.append(cells)
    return table


def languages(runs: RunSet, keep: Keep) -> Table:
    """The same model and arm under two scaffold languages."""
    table = Table(
        "languages",
        "Scaffold language: English against Chinese (Bank, screened)",
        ["model", "arm", "n", "en %", "zh %", "en:zh (p)"],
        method=MCNEMAR,
    )
    of = {(each.model, each.tools, each.varied, each.language): each for each in runs.series}
    for (model, tools, varied, language), english in of.items():
        chinese = of.get((model, tools, varied, "zh"))
        if language != "en" or chinese is None:
            continue
        for arm in (arm for arm in english.arms if arm in chinese.arms):
            sides = [english.outcomes(arm, keep), chinese.outcomes(arm, keep)]
            rates = [percent(sum(one.passed is True for one in side), len(side)) for side in sides]
            paired = pair(*sides)
            table.rows.append(
                [f"{model} ({tools} tools)", arm, str(len(paired)), *rates, contrast_text(paired)]
            )
    if not table.rows:
        why = "no model was run with both scaffold languages (`lab run --language zh`)"
        table.rows.append([table.lacks(why), *["–"] * 5])
    return table


def runtime_contrasts(series: Series) -> list[Contrast]:
    """The paper's contrast of runtime and text, then ours as far as the series has them."""
    return [RUNTIME, *((ours, "flat") for ours in OURS if ours in series.arms)]


def contrast_label(series: Series, contrast: Contrast) -> str:
    """The series alone for the paper's contrast."""
    return series.label if contrast == RUNTIME else f"{series.label}, {':'.join(contrast)}"


def domain_matrix(runs: RunSet, pools: Mapping[str, Keep]) -> Table:
    """The runtime contrast by domain and pooled, a column per series and runtime."""
    columns = [(series, each) for series in runs.series for each in runtime_contrasts(series)]
    table = Table(
        "domain-matrix",
        f"Runtime contrast by domain: {':'.join(RUNTIME)} discordant pairs",
        ["domain", *(contrast_label(series, each) for series, each in columns)],
        method=f"{MCNEMAR}; pooled over disjoint tasks",
    )
    for domain, keep in pools.items():
        cells = [domain]
        for series, contrast in columns:
            paired = paired_arms(series, *contrast, keep)
            if paired is None:
                cells.append(table.lacks(why_no_pair(series, *contrast)))
            elif not len(paired):
                cells.append(table.lacks(f"{series.label}: no task of {domain} was run"))
            else:
                cells.append(contrast_text(paired))
        table.rows.append(cells)
    return table


def by_domain(
    runs: RunSet, pools: Mapping[str, Keep], first: str, second: str, common: Sequence[str] = ()
) -> Table:
    """One contrast in every domain, with rates; on the tasks that ``common`` arms judged."""
    arms = [*common, first, second]
    table = Table(
        f"{first}-{second}-domains",
        f"{first} against {second} by domain",
        ["series", "domain", "n", f"{second} %", f"{first} %", "wins:losses", "p"],
        method=MCNEMAR + ("; on the tasks that all three arms judged" if common else ""),
    )
    for series in runs.series:
        absent = [arm for arm in arms if arm not in series.arms]
        if absent:
            why = f"{series.label}: no runs of {', '.join(dict.fromkeys(absent))}"
            table.rows.append([series.label, "pooled", *[table.lacks(why)] * 5])
            continue
        for domain, keep in pools.items():
            sides = {arm: series.outcomes(arm, keep) for arm in dict.fromkeys(arms)}
            shared = _on_common_tasks(sides)
            paired = pair(shared[first], shared[second])
            if not len(paired):
                continue
            d = paired.discordance
            rates = [_rate(shared[arm]) for arm in (second, first)]
            table.rows.append(
                [
                    series.label,
                    domain,
                    str(len(paired)),
                    *rates,
                    f"{d.wins}:{d.losses}",
                    p_text(mcnemar(d.wins, d.losses)),
                ]
            )
    return table


def full_cursor(runs: RunSet, keep: Keep, scope: str, arms: Sequence[str], name: str) -> Table:
    """Arms side by side on the tasks that all of them judged, by class."""
    last = (("full-cursor", "flat"), (PG, "full-cursor"))
    table = Table(
        name,
        f"Full-program cursor ablation on the common set ({scope})",
        ["series", "split", "n", *(f"{arm} %" for arm in arms), *(f"{a}:{b}" for a, b in last)],
        method=MCNEMAR,
    )
    for series in runs.series:
        absent = [arm for arm in arms if arm not in series.arms]
        if absent:
            why = f"{series.label}: no runs of {', '.join(absent)}"
            blank = [table.lacks(why)] * (len(arms) + 1 + len(last))
            table.rows.append([series.label, "all", *blank])
            continue
        shared = _on_common_tasks({arm: series.outcomes(arm, keep) for arm in arms})
        for split in ("all", "execute", "refuse"):
            kept = {
                arm: [each for each in some if split in ("all", each.kind)]
                for arm, some in shared.items()
            }
            contrasts = [contrast_text(pair(kept[a], kept[b])) for a, b in last]
            rates = [_rate(kept[arm]) for arm in arms]
            table.rows.append([series.label, split, str(len(kept[PG])), *rates, *contrasts])
    return table


def _on_common_tasks(sides: Mapping[str, Sequence[RunOutcome]]) -> dict[str, list[RunOutcome]]:
    common = set.intersection(*({each.task for each in side} for side in sides.values()))
    return {arm: [each for each in side if each.task in common] for arm, side in sides.items()}


def _rate(side: Sequence[RunOutcome]) -> str:
    return percent(sum(each.passed is True for each in side), len(side))


def paired_arms(series: Series, first: str, second: str, keep: Keep) -> Pairs | None:
    if first not in series.arms or second not in series.arms:
        return None
    return pair(series.outcomes(first, keep), series.outcomes(second, keep))


def contrast_text(paired: Pairs) -> str:
    """An empty pairing has no wins and losses to show."""
    if not len(paired):
        return "– (no pairs)"
    d = paired.discordance
    return f"{d.wins}:{d.losses} ({p_text(mcnemar(d.wins, d.losses))})"


def pass_cell(table: Table, series: Series, arm: str, keep: Keep) -> str:
    if arm not in series.arms:
        return table.lacks(f"{series.label}: no runs of {arm}")
    kept = series.kept(arm, keep)
    if not kept:
        return table.lacks(f"{series.label}, {arm}: no task of this scope was run")
    return percent(sum(each.passed for each in kept), len(kept))


def why_no_pair(series: Series, *arms: str) -> str:
    absent = [arm for arm in arms if arm not in series.arms]
    if not absent:
        return f"{series.label}: no task of this scope was judged under both {' and '.join(arms)}"
    return f"{series.label}: no runs of {', '.join(absent)}"
