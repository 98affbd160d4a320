"""Tables about one arm at a time: classes of tasks, reachability, cost."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sopilot_lab.experiments.record import BenchRecord
from sopilot_lab.experiments.report.runs import Keep, RunSet, Series
from sopilot_lab.experiments.report.table import Table, figure, percent
from sopilot_lab.experiments.summary import ends_not_reached
from sopilot_lab.sopbench.baselines import Baseline
from sopilot_lab.sopbench.reach import Reach
from sopilot_lab.sopbench.recorded import tally
from sopilot_lab.statistics.intervals import clopper_pearson
from sopilot_lab.statistics.undefined import Undefined


def class_split(
    runs: RunSet, keep: Keep, scope: str, reach: Mapping[str, Mapping[str, Reach]], name: str
) -> Table:
    """``reach``: tool list → task → reach; empty where nobody searched."""
    table = Table(
        name,
        f"By class ({scope})",
        [
            "series", "arm", "n", "pass %", "of reachable %", "execute %", "refuse %",
            "refuse 95 % from", "balanced %", "goal not reached", "of these refused",
            "of these out of budget", "goal reached, should be refused", "sequence only",
            "credited %", "R2", "findings",
        ],
        method="balanced: mean of execute and refusal accuracy; goal not reached: execute tasks, "
        "by how the run ended; sequence only: right state and no violation, wrong order of calls; "
        "credited: with these counted as passes; R2: mean calls after the goal had succeeded; "
        "interval: exact Clopper–Pearson, lower bound",
    )  # fmt: skip
    for series in runs.series:
        for arm in series.arms:
            stored = series.kept(arm, keep)
            if not stored:
                continue
            counts = tally(each.verdict or {} for each in stored)
            endings = ends_not_reached(stored)
            known = reach.get(series.tools, {})
            reachable = [
                each for each in stored if each.task in known and known[each.task].reachable
            ]
            of_reachable = (
                percent(sum(each.passed for each in reachable), len(reachable))
                if known
                else table.lacks("reachability was not searched (no checkout)")
            )
            after = [each.r2 for each in stored if each.r2 is not None]
            interval = clopper_pearson(counts.refuse_passed, counts.refuse)
            low = "–" if isinstance(interval, Undefined) else f"{100 * interval.low:.1f}"
            table.rows.append(
                [
                    series.label,
                    arm,
                    str(counts.n),
                    percent(counts.passed, counts.n),
                    of_reachable,
                    percent(counts.execute_passed, counts.execute),
                    percent(counts.refuse_passed, counts.refuse),
                    low,
                    "–" if counts.balanced is None else f"{100 * counts.balanced:.1f}",
                    str(counts.not_reached),
                    str(endings["refused"]),
                    str(endings["budget"]),
                    str(counts.wrongly_reached),
                    str(counts.sequence_only),
                    percent(counts.passed + counts.sequence_only, counts.n),
                    figure(statistics.fmean(after) if after else None, 3),
                    str(sum(sum((each.findings or {}).values()) for each in stored)),
                ]
            )
    return table


def cost(runs: RunSet, keep: Keep, scope: str) -> Table:
    table = Table(
        "cost",
        f"Tokens and calls a task ({scope})",
        ["series", "arm", "n", "prompt tokens", "mean", "a call", "mean a call",
         "completion tokens", "model calls", "domain calls", "system characters a call",
         "mean a call", "seconds"],
        method="median [quartiles] over tasks, `a call` over all calls of all tasks; system "
        "characters: first message and slot",
    )  # fmt: skip
    for series in runs.series:
        for arm in series.arms:
            stored = series.kept(arm, keep)
            if stored:
                table.rows.append(
                    [series.label, arm, str(len(stored)), *_spent(table, series, stored)]
                )
    return table


def classes_by_domain(runs: RunSet, pools: Mapping[str, Keep]) -> Table:
    table = Table(
        "classes-domains",
        "Execute and refusal by domain",
        ["series", "domain", "arm", "n", "pass %", "execute n", "execute %", "refuse n",
         "refuse %", "balanced %"],
        method="balanced: mean of execute and refusal accuracy",
    )  # fmt: skip
    for series in runs.series:
        for domain, keep in pools.items():
            for arm in series.arms:
                counts = tally(each.verdict or {} for each in series.kept(arm, keep))
                if not counts.n:
                    continue
                table.rows.append(
                    [
                        series.label,
                        domain,
                        arm,
                        str(counts.n),
                        percent(counts.passed, counts.n),
                        str(counts.execute),
                        percent(counts.execute_passed, counts.execute),
                        str(counts.refuse),
                        percent(counts.refuse_passed, counts.refuse),
                        "–" if counts.balanced is None else f"{100 * counts.balanced:.1f}",
                    ]
                )
    return table


def wall_clock(runs: RunSet, pools: Mapping[str, Keep]) -> Table:
    """Seconds per task, on the tasks that an arm and `flat` both judged."""
    table = Table(
        "wall-clock",
        "Wall clock by domain",
        ["series", "domain", "arm", "n", "mean seconds", "median [quartiles]", "mean of flat",
         "times flat"],
        method="seconds of a whole run, waiting for the model included; the last two columns: on "
        "the tasks that both the arm and flat judged",
    )  # fmt: skip
    for series in runs.series:
        for domain, keep in pools.items():
            flat = {each.task: each.seconds for each in series.kept("flat", keep)}
            for arm in series.arms:
                stored = {each.task: each.seconds for each in series.kept(arm, keep)}
                if not stored:
                    continue
                both = stored.keys() & flat.keys()
                cells = [series.label, domain, arm, str(len(stored))]
                cells += [f"{statistics.fmean(stored.values()):.1f}"]
                cells += [quartiles([*stored.values()], digits=1)]
                if both and any(flat[task] for task in both):
                    ours, theirs = (sum(some[task] for task in both) for some in (stored, flat))
                    cells += [f"{theirs / len(both):.1f}", f"{ours / theirs:.2f}"]
                else:
                    why = f"{series.label}, {domain}: no task was judged under both {arm} and flat"
                    cells += [table.lacks(why)] * 2
                table.rows.append(cells)
    return table


def spending(runs: RunSet, keep: Keep, scope: str) -> Table:
    """What a sweep took that its outcomes do not show."""
    table = Table(
        "spending",
        f"Spent on all tasks ({scope})",
        ["series", "arm", "requests", "attempts", "reasoning tokens", "discarded tokens",
         "simulator tokens", "money", "finish reasons", "served by"],
        method="sums over judged runs; discarded: spent on answers that could not be used; "
        "simulator: on a user that a model plays; money: by the price that was given",
    )  # fmt: skip
    for series in runs.series:
        for arm in series.arms:
            stored = series.kept(arm, keep)
            requests = [request for each in stored for request in each.requests]
            if not requests:
                why = f"{series.label}, {arm}: its records do not tell requests apart"
                table.rows.append([series.label, arm, *[table.lacks(why)] * 8])
                continue
            costs = [each.cost for each in stored if each.cost is not None]
            none = f"{series.label}: no price was given"
            table.rows.append(
                [
                    series.label,
                    arm,
                    f"{len(requests):,}",
                    f"{sum(each.attempts for each in stored):,}",
                    f"{sum(each.reasoning_tokens for each in stored):,}",
                    f"{sum(each.discarded_tokens for each in stored):,}",
                    f"{sum(each.simulator_tokens for each in stored):,}",
                    f"{sum(costs):.4f}" if costs else table.lacks(none),
                    _counted(requests, "finish_reason"),
                    _counted(requests, "served_model"),
                ]
            )
    return table


def _counted(request: Sequence[Mapping[str, Any]], name: str) -> str:
    counter = Counter(str(item[name]) for item in request if item.get(name))
    return ", ".join(f"{count} {what}" for what, count in counter.most_common()) or "not told"


def _spent(table: Table, series: Series, bench_records: Sequence[BenchRecord]) -> list[str]:
    tokens = [each.prompt_tokens for each in bench_records]
    by_call = [
        int(request.get("prompt_tokens", 0)) for each in bench_records for request in each.requests
    ]
    shown = [count for each in bench_records for count in each.system_by_call]
    if any(tokens):
        cells = [quartiles(tokens), _mean(tokens), *_by_call(table, series, by_call)]
        cells.append(quartiles([each.completion_tokens for each in bench_records]))
    else:
        cells = [table.lacks(f"{series.label}: the model reports no tokens")] * 5
    cells.append(quartiles([each.agent_turns for each in bench_records]))
    cells.append(quartiles([len(each.calls) for each in bench_records]))
    cells += _by_call(table, series, shown)
    return [*cells, quartiles([each.seconds for each in bench_records], digits=2)]


def _by_call(table: Table, series: Series, values: Sequence[float]) -> list[str]:
    if not any(values):
        return [table.lacks(f"{series.label}: its records do not tell calls apart")] * 2
    return [quartiles(values), _mean(values)]


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):,.0f}"


def official(
    baselines: Sequence[Baseline], published: Mapping[str, Mapping[str, float]], why_none: str
) -> Table:
    """``published``: the leaderboard's scores, of which the study's table has one."""
    table = Table(
        "official-configurations",
        "Official configurations, recomputed on the screened Bank subset",
        ["model", "mode", "tool list", "n", "pass %", "refusal %"],
        method="from upstream's stored verdicts, not run again; `oracle` offers the tools of the "
        "right answer alone, so its rows are not comparable with `full`",
    )
    if not baselines:
        table.rows.append([table.lacks(why_none), *["–"] * 5])
    for each in baselines:
        cells = [each.model, each.mode, each.tools, str(each.tally.n)]
        if each.complete:
            cells.append(percent(each.tally.passed, each.tally.n))
            cells.append(percent(each.tally.refuse_passed, each.tally.refuse))
        else:
            cells += [table.lacks(f"{each.model} ({each.mode}, {each.tools}): {each.why}"), "–"]
        table.rows.append(cells)
    for model, scores in published.items():
        if model.startswith("Qwen2.5-7B"):
            why = "the leaderboard scores all tasks of a domain and has no classes"
            cells = [model, "leaderboard", "–", "134", f"{scores['bank']:.1f}", table.lacks(why)]
            table.rows.append(cells)
    return table


def quartiles(values: Sequence[float], digits: int = 0) -> str:
    def shown(value: float) -> str:
        return f"{value:,.{digits}f}"

    if len(values) == 1:
        return shown(values[0])
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{shown(middle)} [{shown(low)}–{shown(high)}]"
