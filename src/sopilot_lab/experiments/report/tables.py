"""Tables about one arm at a time: classes, cost, missing runs, repetitions, compiler effort."""

from __future__ import annotations

import io
import statistics
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import sopilot
from sopilot.program.codec import program_to_yaml
from sopilot.program.model import Kind
from sopilot_lab.experiments.report.contrasts import PG, runtime_contrasts
from sopilot_lab.experiments.report.formats import Table, figure, percent, percent_of
from sopilot_lab.experiments.report.runs import Keep, RunSet, Series, screened
from sopilot_lab.experiments.run_folder import BenchRecord
from sopilot_lab.experiments.summary import ends_not_reached
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.reach import Reach
from sopilot_lab.sopbench.recorded import Baseline, Screen, subset_size, tally
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.sopbench.source import load_tasks
from sopilot_lab.statistics.intervals import Interval, Undefined, clopper_pearson
from sopilot_lab.statistics.rates import pass_k, post_goal, run_to_run


def judged_arms(runs: RunSet, keep: Keep) -> Iterator[tuple[Series, str, list[BenchRecord]]]:
    """Each arm of each series that has judged runs, with these runs."""
    for series in runs.series:
        for arm in series.arms:
            if records := series.judged(arm, keep):
                yield series, arm, records


def judged_domains(
    runs: RunSet, pools: Mapping[str, Keep]
) -> Iterator[tuple[Series, str, str, list[BenchRecord]]]:
    """Each arm of each series, per domain and pooled, with its judged runs."""
    for series in runs.series:
        for domain, keep in pools.items():
            for arm in series.arms:
                if records := series.judged(arm, keep):
                    yield series, domain, arm, records


def class_split(
    runs: RunSet, keep: Keep, scope: str, reach: Mapping[str, Mapping[str, Reach]], name: str
) -> Table:
    """``reach``: tool list → task → reach; empty without a search."""
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
    for series, arm, records in judged_arms(runs, keep):
        counts = tally(each.verdict or {} for each in records)
        endings = ends_not_reached(records)
        known = reach.get(series.tools, {})
        reachable = [each for each in records if each.task in known and known[each.task].reachable]
        of_reachable = (
            percent(sum(each.passed for each in reachable), len(reachable))
            if known
            else table.lacks("reachability was not searched (no checkout)")
        )
        after = [each.r2 for each in records if each.r2 is not None]
        interval = clopper_pearson(counts.refuse_passed, counts.refuse)
        table.add(
            series.label,
            arm,
            counts.n,
            percent(counts.passed, counts.n),
            of_reachable,
            percent(counts.execute_passed, counts.execute),
            percent(counts.refuse_passed, counts.refuse),
            percent_of(interval.low if isinstance(interval, Interval) else None),
            percent_of(counts.balanced),
            counts.not_reached,
            endings["refused"],
            endings["budget"],
            counts.wrongly_reached,
            counts.sequence_only,
            percent(counts.passed + counts.sequence_only, counts.n),
            figure(statistics.fmean(after) if after else None, ".3f"),
            sum(sum((each.findings or {}).values()) for each in records),
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
    for series, domain, arm, records in judged_domains(runs, pools):
        counts = tally(each.verdict or {} for each in records)
        table.add(
            series.label,
            domain,
            arm,
            counts.n,
            percent(counts.passed, counts.n),
            counts.execute,
            percent(counts.execute_passed, counts.execute),
            counts.refuse,
            percent(counts.refuse_passed, counts.refuse),
            percent_of(counts.balanced),
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
    for series, domain, arm, records in judged_domains(runs, pools):
        seconds = {each.task: each.seconds for each in records}
        flat = {each.task: each.seconds for each in series.judged("flat", pools[domain])}
        both = seconds.keys() & flat.keys()
        mean = f"{statistics.fmean(seconds.values()):.1f}"
        cells = [series.label, domain, arm, str(len(seconds)), mean]
        cells.append(quartiles([*seconds.values()], digits=1))
        if any(flat[task] for task in both):
            ours, theirs = (sum(some[task] for task in both) for some in (seconds, flat))
            cells += [f"{theirs / len(both):.1f}", f"{ours / theirs:.2f}"]
        else:
            why = f"{series.label}, {domain}: no task was judged under both {arm} and flat"
            cells += [table.lacks(why)] * 2
        table.rows.append(cells)
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
    for series, arm, records in judged_arms(runs, keep):
        unknown = f"{series.label}: its records do not tell calls apart"
        by_call = [
            int(request.get("prompt_tokens", 0)) for each in records for request in each.requests
        ]
        if any(each.prompt_tokens for each in records):
            tokens = _spread(table, [each.prompt_tokens for each in records])
            tokens += _spread(table, by_call, unknown)
            tokens.append(quartiles([each.completion_tokens for each in records]))
        else:
            tokens = [table.lacks(f"{series.label}: the model reports no tokens")] * 5
        table.add(
            series.label,
            arm,
            len(records),
            *tokens,
            quartiles([each.agent_turns for each in records]),
            quartiles([len(each.calls) for each in records]),
            *_spread(table, [size for each in records for size in each.system_by_call], unknown),
            quartiles([each.seconds for each in records], digits=2),
        )
    return table


def _spread(table: Table, values: Sequence[float], unknown: str = "") -> list[str]:
    """Quartiles and mean; the reason ``unknown`` where nothing was counted."""
    if not any(values):
        return [table.lacks(unknown)] * 2
    return [quartiles(values), f"{statistics.fmean(values):,.0f}"]


def quartiles(values: Sequence[float], digits: int = 0) -> str:
    if len(values) == 1:
        return f"{values[0]:,.{digits}f}"
    quarters = statistics.quantiles(values, n=4, method="inclusive")
    low, middle, high = (f"{value:,.{digits}f}" for value in quarters)
    return f"{middle} [{low}–{high}]"


def spending(runs: RunSet, keep: Keep, scope: str) -> Table:
    """The cost of a sweep beside its outcomes."""
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
            records = series.judged(arm, keep)
            requests = [request for each in records for request in each.requests]
            if not requests:
                why = f"{series.label}, {arm}: its records do not tell requests apart"
                table.add_lacking(why, series.label, arm)
                continue
            costs = [each.cost for each in records if each.cost is not None]
            unpriced = f"{series.label}: no price was given"
            reasons, served = (
                Counter(str(request[name]) for request in requests if request.get(name))
                for name in ("finish_reason", "served_model")
            )
            table.add(
                series.label,
                arm,
                f"{len(requests):,}",
                f"{sum(each.attempts for each in records):,}",
                f"{sum(each.reasoning_tokens for each in records):,}",
                f"{sum(each.discarded_tokens for each in records):,}",
                f"{sum(each.simulator_tokens for each in records):,}",
                f"{sum(costs):.4f}" if costs else table.lacks(unpriced),
                _counted(reasons) or "not told",
                _counted(served) or "not told",
            )
    return table


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.most_common())


def official(
    baselines: Sequence[Baseline], published: Mapping[str, Mapping[str, float]], why_none: str
) -> Table:
    """``published`` are the leaderboard's scores; the study's table has one of them."""
    table = Table(
        "official-configurations",
        "Official configurations, recomputed on the screened Bank subset",
        ["model", "mode", "tool list", "n", "pass %", "refusal %"],
        method="from upstream's records verdicts, not run again; `oracle` offers the tools of the "
        "right answer alone, so its rows are not comparable with `full`",
    )
    if not baselines:
        table.add_nothing(why_none)
    for each in baselines:
        if each.complete:
            passed = percent(each.tally.passed, each.tally.n)
            refused = percent(each.tally.refuse_passed, each.tally.refuse)
        else:
            why = f"{each.model} ({each.mode}, {each.tools}): {each.why}"
            passed, refused = table.lacks(why), "–"
        table.add(each.model, each.mode, each.tools, each.tally.n, passed, refused)
    for model, scores in published.items():
        if model.startswith("Qwen2.5-7B"):
            why = "the leaderboard scores all tasks of a domain and has no classes"
            score = f"{scores['bank']:.1f}"
            table.add(model, "leaderboard", "–", 134, score, table.lacks(why))
    return table


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
        for arm, of_arm in series.arms.items():
            judged, absent = series.judged(arm, keep), series.missing(arm, keep)
            passed = sum(each.passed for each in judged)
            planned = len(judged) + len(absent)
            table.add(
                series.label,
                arm,
                planned,
                len(judged),
                len(absent),
                of_arm.broken.get(of_arm.first, 0),
                _counted(Counter(absent.values())),
                percent(passed, len(judged)),
                percent(passed, planned),
            )
    return table


def alarming(runs: RunSet, keep: Keep, most: float = MOST_MISSING) -> list[str]:
    """The arms that miss more than that share of their tasks."""
    results = []
    for series in runs.series:
        for arm in series.arms:
            absent, planned = len(series.missing(arm, keep)), len(series.planned(arm, keep))
            if absent > most * planned:
                share = percent(absent, planned)
                results.append(f"{series.label}, {arm}: {absent} tasks ({share} %) have no verdict")
    return results


def full_denominators(
    runs: RunSet, scoring: Mapping[str, Mapping[str, Sequence[bool]]], screen: Screen
) -> Table:
    """Rates over every task of the domains, the screened ones counted as failed. A planned part
    of a domain has no such rate: its other tasks have no verdict."""
    arms = ("official", "flat", PG)
    table = Table(
        "full-denominator",
        "Over all tasks, omissions counted as failures",
        ["series", "domain", "tasks", "screened out", *(f"{arm} %" for arm in arms)],
        method="a task that the screen leaves out, or that has no verdict, counts as failed",
    )
    if not scoring:
        table.add_nothing("no SOPBench checkout")
        return table
    for series in runs.series:
        for domain in (each for each in runs.domains if each in scoring):
            whole = sum(map(len, scoring[domain].values()))
            left_in = subset_size(scoring[domain], domain, screen)
            keep = screened(screen, domain)
            cells = []
            for arm in arms:
                planned = len(series.planned(arm, keep))
                if arm not in series.arms:
                    cells.append(table.lacks(f"{series.label}: no runs of {arm}"))
                elif planned < left_in:
                    why = f"{series.label}, {arm}: {planned} of {left_in} tasks were asked"
                    cells.append(table.lacks(why))
                else:
                    passed = sum(each.passed for each in series.judged(arm, keep))
                    cells.append(percent(passed, whole))
            table.add(series.label, domain, whole, whole - left_in, *cells)
    return table


_DRAWS = 1_000


def repeated_arms(runs: RunSet, keep: Keep) -> Table:
    table = Table(
        "repeats",
        "Repetitions: pass^k and agreement between runs",
        ["series", "arm", "runs", "tasks", "pass % by run", "pass@k %", "pass^k %", "agreement %",
         "next run agrees %"],
        method="k: the number of runs; pass@k: one of k passes, pass^k: all of them do, over the "
        "tasks with k judged runs; agreement: tasks with one verdict in all runs; next run: mean "
        "over runs that follow one another",
    )  # fmt: skip
    for series in runs.series:
        for arm, of_arm in series.arms.items():
            count = len(of_arm.runs)
            if count < 2:
                continue
            outcomes = series.every_run(arm, keep)
            result, spread = pass_k(outcomes, count), run_to_run(outcomes)
            rates = "/".join(f"{100 * rate:.1f}" for _, rate in spread.rates)
            table.add(
                series.label,
                arm,
                count,
                spread.tasks,
                rates or "–",
                percent_of(result.at),
                percent_of(result.every),
                percent_of(spread.agreement),
                percent_of(_neighbours(series, arm, keep)),
            )
    if not table.rows:
        table.add_nothing("no configuration was run twice (`lab run --run 2`)")
    return table


def _neighbours(series: Series, arm: str, keep: Keep) -> float | Undefined:
    shares = []
    for item, other in pairwise(sorted(series.arms[arm].runs)):
        left = {each.task: each.passed for each in series.judged(arm, keep, item)}
        right = {each.task: each.passed for each in series.judged(arm, keep, other)}
        both = left.keys() & right.keys()
        if both:
            shares.append(sum(left[task] == right[task] for task in both) / len(both))
    return statistics.fmean(shares) if shares else Undefined("no task in two runs")


def delta_r2(runs: RunSet, keep: Keep) -> Sequence[tuple[str, float, Interval | None]]:
    """Series and runtime → ΔR2 with its interval, for the figure."""
    deltas = []
    columns = [(series, *each) for series in runs.series for each in runtime_contrasts(series)]
    for series, label, contrast in columns:
        if {*contrast} <= series.arms.keys():
            after = post_goal(*(series.outcomes(arm, keep) for arm in contrast), draws=_DRAWS)
            within = after.interval if isinstance(after.interval, Interval) else None
            if not isinstance(after.delta, Undefined):
                deltas.append((label, after.delta, within))
    return deltas


PACKAGES = {
    "Compiler": ("sopilot/compiler",),
    "Emitters (frames, prose, official wording, two languages)": ("sopilot/views",),
    "Program: codec, verifier, printer": ("sopilot/program",),
    "SOPBench as a source of handbooks": (
        "sopilot_lab/sopbench/source.py",
        "sopilot_lab/sopbench/reference.py",
    ),
}


def compiler_effort(upstream: Upstream | None) -> Table:
    table = Table(
        "compiler-effort",
        "Compiler effort",
        ["quantity", "count"],
        method="source lines: all (without blank lines, comments and docstrings)",
    )
    root = Path(sopilot.__file__).parents[1]
    for title, places in PACKAGES.items():
        total, code = 0, 0
        for each in _sources(root, places):
            lines = source_lines(each.read_text("utf-8"))
            total, code = total + lines[0], code + lines[1]
        table.add(f"{title}, source lines", f"{total:,} ({code:,})")
    if upstream is None:
        table.add_lacking("no SOPBench checkout", "Programs")
        return table
    shelf = ProgramShelf("official", upstream)
    programs = [
        (task, shelf.program(task).program)
        for task in load_tasks("sopbench:all", upstream=upstream)
    ]
    sizes = [len(program_to_yaml(program)) for _, program in programs]
    functions = [(task, each) for task, program in programs for each in program.functions.values()]
    counts = Counter(task.reference for task, _ in functions).values()
    named = {(task.domain, each.predicate) for task, each in functions if each.predicate}
    gates = {each.predicate for _, each in functions if each.kind is Kind.GATE}
    fallbacks = {task.reference for task, each in functions if "missing recipe" in each.notes}
    recipes = "/".join(str(len(upstream.metadata(domain)["recipes"])) for domain in DOMAINS)
    goals = len({(task.domain, task.goal) for task, _ in programs})
    listed = ", ".join(sorted(str(each) for each in gates))
    spread = f"{statistics.median(counts):g} / {max(counts)}"
    range_ = f"{statistics.median(sizes):,.0f} ({min(sizes):,}–{max(sizes):,})"
    table.rows += [
        ["Goals named in those sources", str(_goals_named(root, upstream))],
        ["Stateful gates, one shared template", f"{len(gates)} ({listed})"],
        ["Programs / goals", f"{len(programs)} / {goals}"],
        ["Rules (domain, predicate)", str(len(named))],
        ["Functions a program, median / maximum", spread],
        ["Characters a program, median (range)", range_],
        ["Programs with a missing recipe", str(len(fallbacks))],
        [f"Recipes in the source ({', '.join(DOMAINS)})", recipes],
    ]
    return table


def _sources(root: Path, places: tuple[str, ...]) -> list[Path]:
    paths = [root / place for place in places]
    return [each for path in paths for each in (sorted(path.rglob("*.py")) or [path])]


def _goals_named(root: Path, upstream: Upstream) -> int:
    """Goals that any of the sources mentions as a string: hand mappings would have to."""
    text = "".join(
        each.read_text("utf-8") for places in PACKAGES.values() for each in _sources(root, places)
    )
    goals = {goal for domain in DOMAINS for goal in upstream.tasks(domain)}
    return sum(f'"{goal}"' in text or f"'{goal}'" in text for goal in goals)


def source_lines(text: str) -> tuple[int, int]:
    """All lines, and those that hold code: a docstring is a string that stands alone."""
    code: set[int] = set()
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
               tokenize.ENDMARKER, tokenize.ENCODING)  # fmt: skip
    begins_statement = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            begins_statement = True
            continue
        if token.type in skipped:
            continue
        if not (token.type == tokenize.STRING and begins_statement):
            code.update(range(token.start[0], token.end[0] + 1))
        begins_statement = False
    return len(text.splitlines()), len(code)
