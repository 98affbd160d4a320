"""Everything a report says, before it is written in a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sopilot import __version__
from sopilot.web.pages import Bar, Drawing, diverging_bars, grouped_bars, render, view_colour
from sopilot_lab.experiments.report.contrasts import (
    DRAWS,
    FAMILY,
    PG,
    RUNTIME,
    Contrast,
    all_contrasts,
    goal_nets,
    headline,
    paired_arms,
)
from sopilot_lab.experiments.report.formats import Table, percent
from sopilot_lab.experiments.report.mechanism import Mechanism, mechanism_figure, mechanism_table
from sopilot_lab.experiments.report.runs import Keep, RunSet, harness_fingerprint, screened
from sopilot_lab.experiments.report.tables import (
    MOST_MISSING,
    alarming,
    class_split,
    classes_by_domain,
    compiler_effort,
    cost,
    delta_r2,
    full_denominators,
    judged_arms,
    missing_runs,
    official,
    repeated_arms,
    spending,
    wall_clock,
)
from sopilot_lab.experiments.summary import ASSUMPTION
from sopilot_lab.sopbench.defects import defect_cells, replay_goals
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.reach import Reach
from sopilot_lab.sopbench.recorded import (
    SCREENED_GOALS,
    SCREENS,
    everything_stays,
    leaderboard,
    recompute,
)
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.statistics.intervals import Undefined, clopper_pearson, clustered_interval, ratio
from sopilot_lab.statistics.outcomes import RunOutcome


@dataclass(slots=True)
class Document:
    """``results`` are its sentences to read first; ``alarms`` are reasons not to trust it: arms
    that miss too much."""

    title: str
    results: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[Drawing] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    reach: Mapping[str, Mapping[str, Reach]] = field(default_factory=dict)
    """Tool list → task → result of the search; empty without a search."""


def build_document(
    runs: RunSet,
    *,
    upstream: Upstream | None,
    reach: Mapping[str, Mapping[str, Reach]] | None = None,
    screen: str = "paper",
    family: Sequence[Contrast] = FAMILY,
    mechanism: Mechanism | None = None,
    most_missing: float = MOST_MISSING,
) -> Document:
    """Tables that need a checkout say so without one. ``family`` are the contrasts that
    were fixed beforehand; ``screen`` names the tasks that are left out."""
    known, measured = reach or {}, mechanism or Mechanism()
    chosen, scope = SCREENS[screen], f"screen `{screen}`"
    bank, bank_all = screened(chosen, "bank"), screened(everything_stays, "bank")
    every, left_in = screened(everything_stays), screened(chosen)
    by_name = {domain: screened(chosen, domain) for domain in runs.domains}
    pools: dict[str, Keep] = {**by_name, "pooled": left_in}
    scopes = {scope: left_in, f"bank, {scope}": bank, "bank, all tasks": bank_all}
    places = {f"domain {name}": keep for name, keep in by_name.items()}
    if {"bank", "hotel"} <= by_name.keys():
        places["bank + hotel"] = screened(chosen, "bank", "hotel")
    deltas = delta_r2(runs, left_in)
    known_domains = [each for each in runs.domains if each in DOMAINS]
    scoring = {} if upstream is None else {each: upstream.scoring(each) for each in known_domains}
    document = Document("SOPBench runs", notes=_notes(runs, screen, family))
    document.alarms = alarming(runs, left_in, most_missing)
    document.notes += [f"**Missing:** {each}." for each in document.alarms]
    document.tables = [
        headline(runs, left_in, scope, family),
        all_contrasts(runs, scopes, places, left_in),
        missing_runs(runs, left_in),
        full_denominators(runs, scoring, chosen),
        official(
            () if upstream is None else recompute(upstream, "bank", SCREENS["paper"]),
            {} if upstream is None else leaderboard(upstream.checkout),
            "no SOPBench checkout",
        ),
        class_split(runs, bank, f"Bank, {scope}", known, "classes-bank"),
        class_split(runs, every, "every task that was run", known, "classes-all"),
        classes_by_domain(runs, pools),
        cost(runs, every, "every task that was run"),
        wall_clock(runs, pools),
        spending(runs, every, "every task that was run"),
        goal_nets(runs, left_in),
        repeated_arms(runs, left_in),
        mechanism_table(measured, deltas),
        compiler_effort(upstream),
        _defects(upstream),
        _unreachable(known),
    ]  # fmt: skip
    document.results = _results(runs, left_in, document.tables[0])
    document.plots = _plots(runs, every, by_name)
    if measured.probes or deltas or measured.parities:
        document.plots.append(mechanism_figure(measured, deltas))
    return document


def to_html(document: Document) -> str:
    return render("bench.html", title=document.title, heading=document.title, document=document)


def _results(runs: RunSet, keep: Keep, contrasts: Table) -> list[str]:
    """Pass rates by view, then the contrasts that were fixed beforehand."""
    sentences = []
    for series in runs.series:
        judged = {arm: series.judged(arm, keep) for arm in series.arms}
        rates = [
            f"{percent(sum(each.passed for each in records), len(records))} % of {len(records)} "
            f"under {arm}"
            for arm, records in judged.items()
            if records
        ]
        if rates:
            sentences.append(f"{series.label} passed {', '.join(rates)}.")
    sentences += [
        f"{cells['series']}, {cells['contrast']}: {cells['difference']} points on "
        f"{cells['pairs']} tasks, 95 % interval {cells['95 % by goals']}, goal-clustered "
        f"p {cells['goal p']}."
        for cells in contrasts.as_dicts()
        if cells["kind"] == "all" and not cells["pairs"].startswith("–")
    ]
    return sentences


def _notes(runs: RunSet, screen: str, family: Sequence[Contrast]) -> list[str]:
    shared = sorted({harness_fingerprint(c)[:16] for c in runs.configurations})
    varied = f", but for {', '.join(runs.vary)}" if runs.vary else ""
    named = ", ".join(map(":".join, family))
    notes = [
        f"Written by sopilot {__version__}. Every outcome is the official evaluator's; upstream "
        f"at {', '.join(sorted({c.upstream_commit[:12] for c in runs.configurations}))}.",
        f"One harness for all folders{varied}: {', '.join(shared)} (upstream, code, budgets, "
        "user, temperature, hash seed).",
        f"Confirmatory: {named}, by goal, in the first table. Everything else is exploratory: per "
        "contrast and unadjusted unless a column says otherwise.",
        f"Screen: `{screen}`. Pass@1, from the run with the lowest number.",
        f"Runs that the infrastructure broke, discarded and made again: {runs.discarded}.",
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


def _defects(upstream: Upstream | None) -> Table:
    table = Table(
        "defects",
        "Audit of the screened goals",
        ["domain", "goal", "recorded passes", "reachable", "offered", "classification", "what"],
        method="recorded passes: of the execute runs in upstream's recordings that this copy "
        "holds, fewer than the study had; the goal is replayed after everything it needs",
    )
    if upstream is None:
        table.add_nothing("no SOPBench checkout")
        return table
    there = [each for each in SCREENED_GOALS if each[1] in upstream.tasks(each[0])]
    if not there:
        table.add_nothing("this checkout has none of the screened goals")
        return table
    for each in replay_goals(upstream, there):
        table.add(*defect_cells(each), each["what"])
    return table


def _unreachable(reach: Mapping[str, Mapping[str, Reach]]) -> Table:
    table = Table(
        "unreachable",
        "Tasks that no executor can pass",
        ["task", "tool list", "proof"],
        method="search over the call orders that the evaluator's graph allows, each replayed",
    )
    for tools, tasks in reach.items():
        for each in tasks.values():
            if not each.reachable:
                table.add(each.task, tools, each.proof)
    if not reach:
        table.add_nothing("reachability was not searched (no checkout)")
    return table


def _plots(runs: RunSet, keep: Keep, by_domain: Mapping[str, Keep]) -> list[Drawing]:
    passed: dict[str, dict[str, Bar]] = {}
    classes: dict[str, dict[str, Bar]] = {}
    after: dict[str, dict[str, Bar]] = {}
    for series, arm, records in judged_arms(runs, keep):
        passed.setdefault(series.label, {})[arm] = _pass_bar([each.passed for each in records])
        for name, wanted in (("execute", True), ("refuse", False)):
            of_class = [each.passed for each in records if each.should_succeed is wanted]
            if of_class:
                classes.setdefault(f"{series.label}, {name}", {})[arm] = _pass_bar(of_class)
        calls = _calls_bar(series.outcomes(arm, keep))
        if calls is not None:
            after.setdefault(series.label, {})[arm] = calls
    colours = {arm: view_colour(arm) for series in runs.series for arm in series.arms}
    share = "% passed, with exact 95 % intervals"
    plots = [
        grouped_bars("Pass rates by view", passed, colours, highest=100.0, axis=share),
        grouped_bars("Pass rates by class and view", classes, colours, highest=100.0, axis=share),
    ]
    if after:
        unit = "mean calls after the goal, 95 % by goals"
        plots.append(grouped_bars("Calls after the goal", after, colours, axis=unit))
    for series in runs.series:
        rows = []
        for domain, of_domain in by_domain.items():
            paired = paired_arms(series, RUNTIME, of_domain)
            if paired is not None and len(paired):
                label = f"{domain.replace('_', ' ')} ({len(paired)})"
                rows.append((label, paired.discordance.wins, paired.discordance.losses))
        if rows:
            title = f"{PG} against flat by domain, {series.label}"
            sides = [(f"{arm} alone passes", view_colour(arm)) for arm in ("flat", PG)]
            plots.append(diverging_bars(title, rows, sides[0], sides[1]))
    return plots


def _pass_bar(passed: Sequence[bool]) -> Bar:
    interval = clopper_pearson(sum(passed), len(passed))
    bounds = None if isinstance(interval, Undefined) else (100 * interval.low, 100 * interval.high)
    return Bar(100 * sum(passed) / len(passed), bounds, len(passed))


def _calls_bar(outcomes: Sequence[RunOutcome]) -> Bar | None:
    """Mean calls after the goal, with goals resampled."""
    rows = [(each.unit, each.post_goal_calls) for each in outcomes]
    counted = [(unit, (calls, 1)) for unit, calls in rows if calls is not None]
    if not counted:
        return None
    within = clustered_interval(counted, ratio, draws=DRAWS)
    bounds = None if isinstance(within, Undefined) else (within.low, within.high)
    return Bar(sum(calls for _, (calls, _) in counted) / len(counted), bounds, len(counted))
