"""Paired contrasts, one row each: two arms on the tasks that both judged.

Tasks of a goal share a program and a policy, so they fall together: the test to quote flips whole
goals. The task-level test of the study stands beside it; it takes tasks for independent and
rejects too often. The family is fixed here, before any run is seen; every other contrast is
exploratory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from sopilot_lab.experiments.report.formats import (
    Table,
    figure,
    interval_points,
    p_text,
    percent,
    points,
)
from sopilot_lab.experiments.report.runs import Keep, RunSet, Series
from sopilot_lab.statistics.comparison import Comparison, compare
from sopilot_lab.statistics.figures import goal_rows
from sopilot_lab.statistics.intervals import Undefined
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import Pairs, adjusted_within, benjamini_hochberg, pair
from sopilot_lab.statistics.rates import post_goal

Contrast = tuple[str, str]
PG: Final = "pg-paper"
"""The study's PG column: the paper's runtime, not our improved ones."""
COMPILATION: Final[Contrast] = ("flat", "official")
RUNTIME: Final[Contrast] = (PG, "flat")
FAMILY: Final[Sequence[Contrast]] = (COMPILATION, RUNTIME)
"""Compilation and runtime, the study's two questions."""
OURS: Final = ("pg", "fused")
"""Our improved runtimes: contrasts of their own beside the paper's."""
CONTRASTS: Final[Sequence[Contrast]] = (
    *FAMILY, ("flat-protocol", "flat"), (PG, "flat-protocol"), ("full-cursor", "flat"),
    (PG, "full-cursor"), ("official-code", "official"), ("prose", "official"), ("flat", "prose"),
    ("official-recipes", "official"), ("flat", "official-recipes"), ("prose", "official-recipes"),
    *((ours, other) for ours in OURS for other in ("flat", PG)),
)  # fmt: skip
BY_DOMAIN: Final = (RUNTIME, (PG, "full-cursor"), *((ours, "flat") for ours in OURS))
DRAWS = 2_000
_COMMON = ("flat", "full-cursor", PG)
_COLUMNS = (
    "series", "contrast", "scope", "kind", "pairs", "goals", "first %", "second %", "difference",
    "95 % by goals", "goal p", "BH", "wins:losses", "task p", "task-joint p",
    "p without one goal", "that goal", "worst to best", "left out", "ΔR2",
)  # fmt: skip
_METHOD = (
    "first arm against second, on the tasks that both judged; wins: only the first passed; task "
    "p: exact McNemar, as in the study; goal p: exact sign flips of whole goals; interval: goals "
    f"resampled {DRAWS:,} times; task-joint p: a task flips for all its models and runs at once; "
    "worst to best: the difference whatever the missing runs would have come to; left out: tasks "
    "that only one arm judged; p without one goal: largest task p after dropping a goal; ΔR2: "
    "mean calls after the goal, first minus second"
)


Sides = tuple[Sequence[RunOutcome], Sequence[RunOutcome]]


@dataclass(frozen=True, slots=True)
class Row:
    """``planned`` are the planned tasks of both sides, judged or not."""

    label: str
    name: str
    scope: str
    sides: Sides
    kind: str = "all"
    planned: frozenset[str] = frozenset()
    in_family: bool = False

    @property
    def named(self) -> tuple[str, str, str, str]:
        return self.label, self.name, self.scope, self.kind


def headline(runs: RunSet, keep: Keep, scope: str, family: Sequence[Contrast] = FAMILY) -> Table:
    """The contrasts that were fixed beforehand, execute and refusal apart."""
    named = ", ".join(map(":".join, family))
    table = Table(
        "headline",
        f"Headline contrasts ({scope})",
        _COLUMNS,
        method=f"{_METHOD}; BH: Benjamini–Hochberg over the goal p of the rows `all`, which are "
        f"the family fixed beforehand ({named})",
    )
    rows: list[Row] = []
    for series in runs.series:
        for contrast in family:
            if {*contrast} <= series.arms.keys():
                rows += _kinds(_row(series, scope, keep, contrast, in_family=True))
            else:
                _absent(table, series, scope, contrast)
    return _filled(table, rows)


def all_contrasts(
    runs: RunSet, scopes: Mapping[str, Keep], domains: Mapping[str, Keep], runs_keep: Keep
) -> Table:
    """Every other contrast of the study. ``scopes`` are for all contrasts, ``domains`` for the
    runtime; repetitions, languages and pooled models are paired on ``runs_keep``."""
    table = Table(
        "contrasts",
        "All contrasts",
        _COLUMNS,
        method=f"{_METHOD}; BH: Benjamini–Hochberg over the task p of "
        f"{' and '.join(map(':'.join, FAMILY))} in the scope",
    )
    rows: list[Row] = []
    for series in runs.series:
        for contrast in CONTRASTS:
            if not {*contrast} <= series.arms.keys():
                if not {*contrast} & {*OURS}:
                    _absent(table, series, "all", contrast)
                continue
            everywhere = {**scopes, **(domains if contrast in BY_DOMAIN else {})}
            rows += [
                _row(series, name, keep, contrast, in_family=contrast in FAMILY)
                for name, keep in everywhere.items()
            ]
        if {*_COMMON} <= series.arms.keys():
            rows += _common_set(series, runs_keep)
        rows += _repetitions(series, runs_keep)
    rows += _languages(runs, runs_keep)
    rows += _pooled(runs, runs_keep)
    return _filled(table, rows)


def _row(series: Series, scope: str, keep: Keep, contrast: Contrast, *, in_family: bool) -> Row:
    first, second = contrast
    return Row(
        series.label,
        f"{first}:{second}",
        scope,
        (series.outcomes(first, keep), series.outcomes(second, keep)),
        planned=frozenset(series.planned(first, keep) & series.planned(second, keep)),
        in_family=in_family,
    )


def _kinds(row: Row) -> Iterator[Row]:
    yield row
    for kind in TaskKind:
        first, second = ([each for each in side if each.kind is kind] for side in row.sides)
        yield Row(row.label, row.name, row.scope, (first, second), str(kind))


def _common_set(series: Series, keep: Keep) -> Iterator[Row]:
    """The cursor ablation on the tasks that all three arms judged, by class."""
    sides = {arm: series.outcomes(arm, keep) for arm in _COMMON}
    tasks = set.intersection(*({each.task for each in side} for side in sides.values()))
    shared = {arm: [each for each in side if each.task in tasks] for arm, side in sides.items()}
    for first, second in (("full-cursor", "flat"), (PG, "full-cursor")):
        both = (shared[first], shared[second])
        yield from _kinds(Row(series.label, f"{first}:{second}", "common set", both))


def _repetitions(series: Series, keep: Keep) -> Iterator[Row]:
    """The runtime contrast run by run, and pooled over all runs."""
    if not {*RUNTIME} <= series.arms.keys():
        return
    first, second = RUNTIME
    numbers = sorted(series.arms[first].runs.keys() & series.arms[second].runs.keys())
    if len(numbers) < 2:
        return
    for number in numbers:
        sides = (series.outcomes(first, keep, number), series.outcomes(second, keep, number))
        yield Row(series.label, ":".join(RUNTIME), f"run {number}", sides)
    sides = (series.every_run(first, keep), series.every_run(second, keep))
    yield Row(series.label, ":".join(RUNTIME), "all runs", sides)


def _languages(runs: RunSet, keep: Keep) -> Iterator[Row]:
    """Each model and arm, compared between the two scaffold languages."""
    by_key = {(each.model, each.tools, each.varied, each.language): each for each in runs.series}
    for (model, tools, varied, language), english in by_key.items():
        chinese = by_key.get((model, tools, varied, "zh"))
        if language == "en" and chinese is not None:
            for arm in (arm for arm in english.arms if arm in chinese.arms):
                sides = (english.outcomes(arm, keep), chinese.outcomes(arm, keep))
                yield Row(english.label, f"{arm}, en:zh", "languages", sides)


def _pooled(runs: RunSet, keep: Keep) -> Iterator[Row]:
    """The study's pooled pair, for every two models in one setting."""
    able = [each for each in runs.series if {*RUNTIME} <= each.arms.keys()]
    for left, right in combinations(able, 2):
        settings = [(each.tools, each.language, each.varied) for each in (left, right)]
        if left.model == right.model or settings[0] != settings[1]:
            continue
        first, second = ([*left.outcomes(arm, keep), *right.outcomes(arm, keep)] for arm in RUNTIME)
        label = f"{left.label} + {right.label}"
        yield Row(label, ":".join(RUNTIME), "two models", (first, second))


def _absent(table: Table, series: Series, scope: str, contrast: Contrast) -> None:
    absent = ", ".join(arm for arm in contrast if arm not in series.arms)
    why = f"{series.label}: no runs of {absent}"
    table.add_lacking(why, series.label, ":".join(contrast), scope, "all")


def _filled(table: Table, rows: Iterable[Row]) -> Table:
    """The rows with their figures; rows without a pair have none, and those of a class are left
    out."""
    compared: list[tuple[Row, Comparison]] = []
    for row in rows:
        pairs = pair(*row.sides)
        if len(pairs):
            compared.append((row, compare(pairs, draws=DRAWS)))
        elif row.kind == "all" and not row.scope.startswith("domain "):
            why = f"{row.label}, {row.scope}: no task was judged under both of {row.name}"
            table.add_lacking(why, *row.named)
    adjusted = _adjusted(compared, by_goal=table.name == "headline")
    for place, (row, whole) in enumerate(compared):
        table.rows.append(_cells(row, whole, adjusted.get(place, "")))
    return table


def _adjusted(compared: Sequence[tuple[Row, Comparison]], *, by_goal: bool) -> dict[int, str]:
    """Benjamini–Hochberg over the family's rows of each scope."""
    places = [n for n, (row, _) in enumerate(compared) if row.in_family and row.kind == "all"]
    wholes = [compared[place][1] for place in places]
    adjusted = adjusted_within(
        [compared[place][0].scope for place in places],
        [each.clustered.p if by_goal else each.p for each in wholes],
        lambda p_values: [row.adjusted for row in benjamini_hochberg(p_values)],
    )
    return dict(zip(places, map(p_text, adjusted), strict=True))


def _cells(row: Row, whole: Comparison, adjusted: str) -> list[str]:
    first, _, second = row.name.partition(":")
    left_out = [
        f"{each.count} {each.reason.replace('the first', first).replace('the second', second)}"
        for each in whole.dropped
    ]
    worst = whole.leave_one_out
    one_goal = ["–", "–"] if isinstance(worst, Undefined) else [p_text(worst.p), worst.goal]
    difference, after = whole.difference, post_goal(*row.sides, draws=1).delta
    return [
        *row.named,
        str(whole.pairs),
        str(whole.goals),
        percent(whole.first_passed, whole.pairs),
        percent(whole.second_passed, whole.pairs),
        "–" if isinstance(difference, Undefined) else points(difference),
        interval_points(whole.clustered_interval),
        p_text(whole.clustered.p),
        adjusted,
        str(whole.discordance),
        p_text(whole.p),
        "" if whole.joint is None else p_text(whole.joint.p),
        *one_goal,
        _bounds(row),
        ", ".join(left_out) or "0",
        "–" if isinstance(after, Undefined) else figure(after),
    ]


def _bounds(row: Row) -> str:
    """The difference over the planned tasks of both sides, if every missing run of the first
    failed and of the second passed, and the reverse."""
    if not row.planned:
        return "–"
    first, second = ({each.task: bool(each.passed) for each in side} for side in row.sides)

    def difference(in_first: bool, in_second: bool) -> str:
        wins = sum(first.get(task, in_first) - second.get(task, in_second) for task in row.planned)
        return points(wins / len(row.planned))

    return f"{difference(False, True)} to {difference(True, False)}"


def paired_arms(series: Series, contrast: Contrast, keep: Keep) -> Pairs | None:
    if not {*contrast} <= series.arms.keys():
        return None
    return pair(*(series.outcomes(arm, keep) for arm in contrast))


def runtime_contrasts(series: Series) -> list[tuple[str, Contrast]]:
    """The paper's contrast of runtime and text under the series' label, then ours with their
    names."""
    ours = [
        (f"{series.label}, {each}:flat", (each, "flat")) for each in OURS if each in series.arms
    ]
    return [(series.label, RUNTIME), *ours]


def goal_nets(runs: RunSet, keep: Keep) -> Table:
    table = Table(
        "goal-nets",
        f"Net of {PG}:flat by goal, largest first",
        ["series", "goal", "first alone", "flat alone", "net"],
        method="goals without a discordant pair are left out; `sopilot lab stats compare --json` "
        "lists all",
    )
    for series in runs.series:
        for label, contrast in runtime_contrasts(series):
            pairs = paired_arms(series, contrast, keep)
            if pairs is None or not pairs.discordance.total:
                why = f"{label}: no pair in which only one of {' and '.join(contrast)} passed"
                table.add_lacking(why, label)
                continue
            for row in goal_rows(pairs.by_cluster()):
                if row["wins"] or row["losses"]:
                    table.add(label, row["goal"], row["wins"], row["losses"], f"{row['net']:+d}")
    return table
