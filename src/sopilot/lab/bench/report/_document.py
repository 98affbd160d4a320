"""Everything a report says, before it is written in a format."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sopilot import __version__
from sopilot.lab.bench._reach import Reach
from sopilot.lab.bench.baselines import Baseline, recompute, subset_size
from sopilot.lab.bench.report._class_split import class_split, cost, official
from sopilot.lab.bench.report._compiler_effort import compiler_effort
from sopilot.lab.bench.report._contrasts import (
    arms_by_models,
    content_by_format,
    domain_matrix,
    full_cursor,
    goal_clusters,
    paging,
    paired_arms,
)
from sopilot.lab.bench.report._table import Table
from sopilot.lab.bench.report.runs import Keep, RunSet, screened
from sopilot.lab.bench.screen import everything_stays, paper_screen
from sopilot.lab.bench.sopbench_process import Upstream
from sopilot.lab.bench.summary import ASSUMPTION
from sopilot.runtime.pages import Drawing, diverging_bars, grouped_bars, render


@dataclass(slots=True)
class Document:
    title: str
    notes: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[Drawing] = field(default_factory=list)


def build_document(
    runs: RunSet,
    *,
    upstream: Upstream | None,
    reach: Mapping[str, Mapping[str, Reach]] | None = None,
) -> Document:
    """Without a checkout the tables that need one say so."""
    known = reach or {}
    bank, bank_all = screened(paper_screen, "bank"), screened(everything_stays, "bank")
    every = screened(everything_stays)
    by_domain = {domain: screened(paper_screen, domain) for domain in runs.domains}
    pools: dict[str, Keep] = {**by_domain, "pooled": screened(paper_screen)}
    document = Document("SOPBench runs", notes=_notes(runs))
    document.tables = [
        arms_by_models(runs, bank, "Bank, screened subset", "arms-bank"),
        arms_by_models(runs, bank_all, "Bank, all tasks", "arms-bank-all"),
        arms_by_models(runs, every, "every task that was run", "arms-all"),
        official(_baselines(upstream), "no SOPBench checkout"),
        content_by_format(runs, bank),
        domain_matrix(runs, pools),
        full_cursor(runs, screened(paper_screen)),
        paging(runs, screened(paper_screen)),
        class_split(runs, bank, "Bank, screened subset", known, "classes-bank"),
        class_split(runs, every, "every task that was run", known, "classes-all"),
        cost(runs, every, "every task that was run"),
        goal_clusters(runs, pools),
        compiler_effort(upstream),
        _unreachable(known),
    ]
    document.plots = _plots(runs, every, by_domain)
    return document


def to_html(document: Document) -> str:
    return render("bench.html", title=document.title, heading=document.title, document=document)


def _notes(runs: RunSet) -> list[str]:
    notes = [
        f"Written by sopilot {__version__}. Every outcome is the official evaluator's; upstream "
        f"at {', '.join(sorted({c.upstream_commit[:12] for c in runs.configurations}))}.",
        f"Runs that the infrastructure broke, discarded and made again: {runs.discarded}.",
        "Contrasts are per contrast and unadjusted unless a column says otherwise; pass@1.",
        "A run without any call passes every refusal task: read execute and refusal apart.",
    ]
    if any(c.model == "reference" for c in runs.configurations):
        notes.append(f"{ASSUMPTION[0].upper()}{ASSUMPTION[1:]}.")
    notes += [
        f"{c.label}: fingerprint {c.fingerprint[:16]}, user {c.user}, hash seed {c.hash_seed}, "
        f"compiler {c.compiler}"
        for c in runs.configurations
    ]
    return notes


def _baselines(upstream: Upstream | None) -> Sequence[Baseline]:
    if upstream is None:
        return ()
    size = subset_size(upstream.scoring("bank"), "bank", paper_screen)
    return recompute(upstream.checkout, "bank", paper_screen, subset_size=size)


def _unreachable(reach: Mapping[str, Mapping[str, Reach]]) -> Table:
    table = Table(
        "unreachable",
        "Tasks that no executor can pass",
        ["task", "tool list", "proof"],
        method="search over the call orders that the oracle's graph allows, each replayed",
    )
    for tools, tasks in reach.items():
        table.rows += [
            [each.task, tools, each.proof] for each in tasks.values() if not each.reachable
        ]
    if not reach:
        table.rows.append([table.lacks("reachability was not searched (no checkout)"), "–", "–"])
    return table


def _plots(runs: RunSet, keep: Keep, by_domain: Mapping[str, Keep]) -> list[Drawing]:
    passed: dict[str, dict[str, float]] = {}
    classes: dict[str, dict[str, float]] = {}
    after: dict[str, dict[str, float]] = {}
    for series in runs.series:
        for arm in series.arms:
            kept = series.kept(arm, keep)
            if not kept:
                continue
            passed.setdefault(series.label, {})[arm] = _rate([each.passed for each in kept])
            for name, wanted in (("execute", True), ("refuse", False)):
                of_class = [each.passed for each in kept if each.should_succeed is wanted]
                if of_class:
                    key = f"{series.label} {arm}"
                    classes.setdefault(key, {})[name] = _rate(of_class)
            calls = [each.r2 for each in kept if each.r2 is not None]
            if calls:
                after.setdefault(series.label, {})[arm] = statistics.fmean(calls)
    plots = [
        grouped_bars("Pass, % of the tasks that were run", passed),
        grouped_bars("By class, % passed", classes),
    ]
    highest = max([value for bars in after.values() for value in bars.values()], default=0.0)
    if highest > 0:
        plots.append(grouped_bars("R2: calls after the goal", after, highest=highest, unit="calls"))
    for series in runs.series:
        rows = []
        for domain, of_domain in by_domain.items():
            paired = paired_arms(series, "pg", "flat", of_domain)
            if paired is not None and len(paired):
                rows.append((domain, paired.discordance.wins, paired.discordance.losses))
        if rows:
            title = f"pg against flat by domain: {series.label}"
            plots.append(diverging_bars(title, rows, "flat alone passes", "pg alone passes"))
    return plots


def _rate(passed: Sequence[bool]) -> float:
    return 100 * sum(passed) / len(passed)
