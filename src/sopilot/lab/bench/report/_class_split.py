"""Tables about one arm at a time: classes of tasks, reachability, cost."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from sopilot.lab.bench._reach import Reach
from sopilot.lab.bench._tally import tally
from sopilot.lab.bench.baselines import Baseline
from sopilot.lab.bench.report._table import Table, figure, percent
from sopilot.lab.bench.report.runs import Keep, RunSet
from sopilot.lab.bench.summary import ends_not_reached
from sopilot.lab.stats import Undefined, clopper_pearson


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
            kept = series.kept(arm, keep)
            if not kept:
                continue
            counts = tally(each.verdict or {} for each in kept)
            endings = ends_not_reached(kept)
            known = reach.get(series.tools, {})
            reachable = [each for each in kept if each.task in known and known[each.task].reachable]
            of_reachable = (
                percent(sum(each.passed for each in reachable), len(reachable))
                if known
                else table.lacks("reachability was not searched (no checkout)")
            )
            after = [each.r2 for each in kept if each.r2 is not None]
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
                    str(sum(sum((each.findings or {}).values()) for each in kept)),
                ]
            )
    return table


def cost(runs: RunSet, keep: Keep, scope: str) -> Table:
    table = Table(
        "cost",
        f"Tokens and calls a task ({scope})",
        ["series", "arm", "n", "prompt tokens", "mean", "a call", "completion tokens",
         "model calls", "domain calls", "system characters a call", "mean", "seconds"],
        method="median [quartiles] over tasks; mean: over tasks; a call: prompt tokens of all "
        "tasks by their model calls; system characters: those of the first message, sent with "
        "every call",
    )  # fmt: skip
    for series in runs.series:
        for arm in series.arms:
            kept = series.kept(arm, keep)
            if not kept:
                continue
            tokens = [each.prompt_tokens for each in kept]
            calls = sum(each.agent_turns for each in kept)
            characters = [each.system_characters for each in kept]
            why = f"{series.label}: the model reports no tokens"
            if any(tokens):
                spent = [quartiles(tokens), f"{statistics.fmean(tokens):,.0f}"]
                spent.append(f"{sum(tokens) / calls:,.0f}" if calls else "–")
                spent.append(quartiles([each.completion_tokens for each in kept]))
            else:
                spent = [table.lacks(why)] * 4
            table.rows.append(
                [
                    series.label,
                    arm,
                    str(len(kept)),
                    *spent,
                    quartiles([each.agent_turns for each in kept]),
                    quartiles([len(each.calls) for each in kept]),
                    quartiles(characters),
                    f"{statistics.fmean(characters):,.0f}",
                    quartiles([each.seconds for each in kept], digits=2),
                ]
            )
    return table


def official(baselines: Sequence[Baseline], why_none: str) -> Table:
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
    return table


def quartiles(values: Sequence[float], digits: int = 0) -> str:
    def shown(value: float) -> str:
        return f"{value:,.{digits}f}"

    if len(values) == 1:
        return shown(values[0])
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{shown(middle)} [{shown(low)}–{shown(high)}]"
