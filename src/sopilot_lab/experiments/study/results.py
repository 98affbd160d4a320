"""The report of a study: first what was fixed beforehand, then what else was seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sopilot_lab.experiments.report.document import Document
from sopilot_lab.experiments.report.files import whole_document
from sopilot_lab.experiments.report.formats import Table, p_text, percent
from sopilot_lab.experiments.report.runs import RunSet, Series, load_runs, screened
from sopilot_lab.experiments.study.plan import Hypothesis, Study
from sopilot_lab.sopbench.recorded import SCREENS
from sopilot_lab.statistics.clustered import goal_clustered
from sopilot_lab.statistics.paired import Pairs, adjusted_within, holm, mcnemar, pair

_TIMES = "seconds"
EXPLORATORY = "Exploratory: no hypothesis about it was fixed before the runs."


def study_document(
    study: Study, folders: Sequence[Path], tell: Callable[[str], None], **how: Any
) -> Document:
    """Confirmatory tests are computed from the records as they stand; the rest of the report is
    marked as exploratory."""
    runs = load_runs(folders, vary=study.varies)
    fixed = study.fixed
    contrasts = tuple(dict.fromkeys(each.contrast for each in fixed.hypotheses))
    family: dict[str, Any] = {"family": contrasts} if contrasts else {}
    document = whole_document(runs, tell, screen=study.screen, **family, **how)
    document.title = f"Study {study.name}"
    document.notes = [note for note in document.notes if not note.startswith("Confirmatory:")]
    if fixed.sha256:
        document.notes.insert(
            0,
            f"Hypotheses fixed beforehand: {fixed.sha256}. Stopping: {fixed.stopping} "
            f"Exclusions: {fixed.exclusions}",
        )
        made = {c.hypotheses for c in runs.configurations}
        if made != {fixed.sha256}:
            others = ", ".join(sorted(item[:12] or "none" for item in made - {fixed.sha256}))
            document.alarms.append(f"some runs were made under other hypotheses: {others}")
    else:
        document.notes.insert(0, "No hypothesis was fixed beforehand: all of it is exploratory.")
    for table in document.tables:
        if EXPLORATORY not in table.method:  # as it was packed
            table.method = f"{table.method}. {EXPLORATORY}" if table.method else EXPLORATORY
        _without_times(table)
    tests = confirmatory(study, runs)
    document.tables.insert(0, tests)
    rates = [sentence for sentence in document.results if " passed " in sentence]
    document.results = [*_sentences(tests), *rates]
    return document


def confirmatory(study: Study, runs: RunSet) -> Table:
    table = Table(
        "hypotheses",
        "Hypotheses fixed beforehand",
        ["hypothesis", "family", "model", "contrast", "pairs", "goals", "first %", "second %",
         "wins:losses", "test", "p", "Holm", "level", "holds"],
        method="on the tasks that both arms judged, first repetition; p: two-sided, by sign "
        "flips of whole goals (clustered) or exact McNemar; Holm within the family; holds: the "
        "first arm passes more, and Holm is at most the level",
    )  # fmt: skip
    rows: list[tuple[Hypothesis, str, Pairs, float]] = []
    for fixed in study.fixed.hypotheses:
        for series in (each for each in runs.series if each.model in fixed.models):
            pairs = _pairs(fixed, series, study.screen)
            if len(pairs):
                rows.append((fixed, series.label, pairs, _p(fixed, pairs)))
            else:
                named = (fixed.name, fixed.family, series.label, ":".join(fixed.contrast), "0")
                table.add_lacking(f"{series.label}: no task was judged under both arms", *named)
    families = [fixed.family for fixed, *_ in rows]
    for row, adjusted in zip(
        rows, adjusted_within(families, [row[-1] for row in rows], holm), strict=True
    ):
        table.rows.append(_cells(*row, adjusted))
    if not study.fixed.hypotheses:
        table.add_nothing("the study fixed none")
    return table


def _sentences(tests: Table) -> list[str]:
    return [
        f"Hypothesis `{row['hypothesis']}` ({row['contrast']}, {row['model']}): "
        f"{'shown' if row['holds'] == 'yes' else 'not shown'}; {row['first %']} % against "
        f"{row['second %']} %, {row['wins:losses']}, Holm-adjusted p {row['Holm']}."
        for row in tests.as_dicts()
        if row["holds"] in ("yes", "no")
    ]


def _pairs(hypothesis: Hypothesis, series: Series, screen: str) -> Pairs:
    keep = screened(SCREENS[screen], *hypothesis.domains)
    first, second = (
        [
            each
            for each in series.outcomes(arm, keep)
            if hypothesis.kind in ("both", each.kind.value)
        ]
        for arm in hypothesis.contrast
    )
    return pair(first, second)


def _p(hypothesis: Hypothesis, pairs: Pairs) -> float:
    if hypothesis.test == "mcnemar":
        return mcnemar(pairs.discordance.wins, pairs.discordance.losses)
    return goal_clustered(pairs.by_cluster()).p


def _cells(
    hypothesis: Hypothesis, label: str, pairs: Pairs, p: float, adjusted: float
) -> list[str]:
    counts = pairs.discordance
    holds = counts.net > 0 and adjusted <= hypothesis.level
    return [
        hypothesis.name,
        hypothesis.family,
        label,
        ":".join(hypothesis.contrast),
        str(len(pairs)),
        str(len(pairs.by_cluster())),
        percent(sum(each.first for each in pairs.pairs), len(pairs)),
        percent(sum(each.second for each in pairs.pairs), len(pairs)),
        str(counts),
        hypothesis.test,
        p_text(p),
        p_text(adjusted),
        f"{hypothesis.level:g}",
        "yes" if holds else "no",
    ]


def _without_times(table: Table) -> None:
    """Seconds are the machine's and the day's. Beside the wall-clock table, a study's report is
    the same however often it was interrupted; `lab report` has them."""
    if _TIMES in table.header:
        place = list(table.header).index(_TIMES)
        table.header = [*table.header[:place], *table.header[place + 1 :]]
        table.rows = [[*row[:place], *row[place + 1 :]] for row in table.rows]
