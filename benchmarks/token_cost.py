"""The cost of paging: tokens, model calls and price of `fused` and `pg` against `flat`, and the
calls of `pg` against those of the paper's, which reuses within one frame.

    python benchmarks/token_cost.py [--domain bank|all] [--limit N] [--tools official] [--json FILE]

Runs every task with the reference executor under each arm, compares outcomes, findings and
rule verdicts, and measures each switch of `fused` alone. The figures depend on nothing but
code and checkout: runs are exact, and upstream's hash seed is fixed. Exit 1 when a bound is
missed.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from campaign import main
from sopbench_runs import Bench, MeteredRun
from sopilot.views.catalogue import VIEWS
from sopilot.views.fused import ALL_OFF, ALL_ON, PAGED, FusedSwitches, fused_view
from sopilot.views.view import View
from sopilot_lab.sopbench.process import ToolList, shared_upstream
from sopilot_lab.sopbench.reference import DOMAINS, TaskReference
from vocabulary import smollm2

HASH_SEED = 0
"""Upstream invents some numbers with ``hash()``; they stand in results, so in prompts."""
MOST = {"tokens": 1.0, "calls": 1.0, "price": 1.1}
"""Bounds of the medians of `fused` relative to `flat`. The price weighs written tokens already."""
MOST_PAGED_CALLS = 0.8
"""Bound of the median of `pg` relative to `pg-paper`."""
PAPER = {
    "what": "DeepSeek-V4-Flash, medians of the paper's appendix",
    "domain": "bank",
    "prompt_tokens": {"flat": 59_051, "pg": 160_658},
    "calls": {"flat": 6, "pg": 14},
    "pg_to_flat": {"tokens": round(160_658 / 59_051, 2), "calls": round(14 / 6, 2)},
}
CACHED_WEIGHT, COMPLETION_WEIGHT = 0.1, 4.0
"""An assumption: what a cached and a written token cost, where a prompt token costs 1.
Providers' lists have 0.1 to 0.5 and 3 to 5."""
COMPARED = ("flat", "pg-paper", "pg", "fused")


def ablations() -> dict[str, View]:
    """None, each switch alone, all of them, and all but one."""
    names = ("enter_calls", "reuse", "machine_verdicts", "combine", "fold", "short_step")
    chosen: dict[str, FusedSwitches] = {
        "none": ALL_OFF,
        **{name: _with(ALL_OFF, name, True) for name in names},
        "enter_calls and reuse (pg)": PAGED,
        "all (fused)": ALL_ON,
        **{f"all, without {name}": _with(ALL_ON, name, False) for name in names},
    }
    return {name: fused_view(switches, name) for name, switches in chosen.items()}


def _with(switches: FusedSwitches, name: str, value: bool) -> FusedSwitches:
    changed: dict[str, Any] = {name: value}
    return replace(switches, **changed)


async def run_arm(bench: Bench, tasks: Sequence[TaskReference], arm: View) -> list[MeteredRun]:
    return [await bench.run(task, arm) for task in tasks]


def spread(values: Sequence[float]) -> dict[str, float]:
    if len(values) < 2:
        return {"median": values[0], "q1": values[0], "q3": values[0]}
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": middle, "q1": low, "q3": high}


def price(run: MeteredRun) -> float:
    """The price of a run, in uncached prompt tokens."""
    fresh = run.prompt_tokens - run.cached_tokens
    return fresh + CACHED_WEIGHT * run.cached_tokens + COMPLETION_WEIGHT * run.completion_tokens


def figures(runs: Sequence[MeteredRun]) -> dict[str, Any]:
    return {
        "n": len(runs),
        "pass": sum(run.passed for run in runs),
        "prompt_tokens": spread([run.prompt_tokens for run in runs]),
        "cache_served": spread([run.cached_tokens for run in runs]),
        "not_cached": spread([run.prompt_tokens - run.cached_tokens for run in runs]),
        "calls": spread([len(run.sent) for run in runs]),
        "completion_tokens": spread([run.completion_tokens for run in runs]),
        "price": spread([price(run) for run in runs]),
    }


def ratios(runs: Sequence[MeteredRun], base: Sequence[MeteredRun]) -> dict[str, float]:
    """Ratios of the medians, and the median of the ratios per task."""

    def both(of: Sequence[float], to: Sequence[float]) -> tuple[float, float]:
        paired = statistics.median(a / b for a, b in zip(of, to, strict=True))
        return round(statistics.median(of) / statistics.median(to), 4), round(paired, 4)

    measured: dict[str, Callable[[MeteredRun], float]] = {
        "tokens": lambda run: run.prompt_tokens,
        "calls": lambda run: len(run.sent),
        "completion": lambda run: run.completion_tokens,
        "price": price,
    }
    found: dict[str, float] = {}
    for name, measure in measured.items():
        found[name], found[f"{name}_paired"] = both(
            [measure(run) for run in runs], [measure(run) for run in base]
        )
    return found


def differences(fused: Sequence[MeteredRun], pg: Sequence[MeteredRun]) -> dict[str, list[str]]:
    pairs = list(zip(fused, pg, strict=True))
    return {
        "outcomes": [
            one.task
            for one, other in pairs
            if (one.result.ending, one.passed) != (other.result.ending, other.passed)
        ],
        "verdicts": [one.task for one, other in pairs if one.verdicts != other.verdicts],
        "findings": [
            f"{one.task}: {sorted(one.findings)} instead of {sorted(other.findings)}"
            for one, other in pairs
            if sorted(one.findings) != sorted(other.findings)
        ],
    }


async def domain_row(bench: Bench, domain: str, limit: int | None) -> dict[str, Any]:
    tasks = bench.tasks(domain, limit)
    runs = {name: await run_arm(bench, tasks, VIEWS[name]) for name in COMPARED}
    row: dict[str, Any] = {"domain": domain, "tasks": len(tasks)}
    row["arms"] = {name: figures(runs[name]) for name in COMPARED}
    row["fused_to_flat"] = ratios(runs["fused"], runs["flat"])
    row["pg_to_flat"] = ratios(runs["pg"], runs["flat"])
    row["pg_to_paper"] = ratios(runs["pg"], runs["pg-paper"])
    row["findings"] = {name: sum(len(run.findings) for run in runs[name]) for name in COMPARED[1:]}
    row["differences_from_pg"] = differences(runs["fused"], runs["pg"])
    return row


def within_bounds(row: dict[str, Any]) -> bool:
    ratio = row["fused_to_flat"]
    return (
        all(ratio[name] <= most for name, most in MOST.items())
        and row["pg_to_paper"]["calls"] <= MOST_PAGED_CALLS
        and not row["differences_from_pg"]["outcomes"]
        and not row["differences_from_pg"]["verdicts"]
        and not row["differences_from_pg"]["findings"]
    )


async def over_sopbench(
    domain: str, limit: int | None, tools: ToolList, ablation: bool
) -> dict[str, Any]:
    upstream = shared_upstream(HASH_SEED)
    bench = Bench(upstream, tools)
    domains = DOMAINS if domain == "all" else (domain,)
    rows = []
    for each in domains:
        rows.append(await domain_row(bench, each, limit))
        print(f"{each}: {rows[-1]['fused_to_flat']}", flush=True)
    table = {}
    if ablation:
        tasks = bench.tasks(domains[0], limit)
        flat = await run_arm(bench, tasks, VIEWS["flat"])
        for name, arm in ablations().items():
            runs = await run_arm(bench, tasks, arm)
            table[name] = figures(runs) | {"to_flat": ratios(runs, flat)}
    met = {row["domain"]: within_bounds(row) for row in rows}
    if table:
        met["ablation"] = len({row["pass"] for row in table.values()}) == 1
    return {
        "passed": all(met.values()),
        "what": "prompt tokens as sent, model calls and tokens written a task, reference executor",
        "price": "prompt not cached + "
        f"{CACHED_WEIGHT:g} × cached + {COMPLETION_WEIGHT:g} × written (weights assumed)",
        "tokenizer": smollm2().name,
        "tools": tools,
        "upstream_commit": upstream.checkout.commit,
        "hash_seed": HASH_SEED,
        "bounds": {**MOST, "pg_to_paper_calls": MOST_PAGED_CALLS},
        "met": met,
        "paper": PAPER,
        "domains": rows,
        "ablation_on": domains[0],
        "ablation": table,
    }


def measure(domain: str, limit: int | None, tools: ToolList, no_ablation: bool) -> dict[str, Any]:
    return asyncio.run(over_sopbench(domain, limit, tools, not no_ablation))


if __name__ == "__main__":
    main(__doc__, measure, domain="bank", limit=int, tools="official", no_ablation=False)
