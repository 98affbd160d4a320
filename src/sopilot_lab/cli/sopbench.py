"""``sopilot lab sopbench check``: what SOPBench's data, simulators and recordings hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import click

from sopilot.cli.options import AS_JSON, Decorator, flag, option
from sopilot.cli.output import Exit, Output, progress
from sopilot_lab.cli.options import DOMAIN, domain_option, screen_option, shown
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.sopbench.checkout import find_checkout
from sopilot_lab.sopbench.defects import defect_lines, replay_goals
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.reach import reach_cache, reach_document, reach_lines
from sopilot_lab.sopbench.recorded import (
    SCREENED_GOALS,
    SCREENS,
    baseline_lines,
    leaderboard,
    leaderboard_lines,
    recompute,
    screen_lines,
    stored_recordings,
    zero_pass,
)
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.sopbench.wording import check_official, official_lines

_NO_RECORDINGS = "this checkout contains no recorded trajectories (its folder `output`)"
_GOAL = option("--goal", "Only this goal of the domain.")


def _tools(*lists: str, default: str) -> Decorator:
    says = "Tool list: `full-state` adds the tool that reads the whole database."
    return shown("--tools", says, type=click.Choice(lists), default=default)


@click.group()
def sopbench() -> None:
    """Work with the SOPBench checkout at SOPBENCH_HOME."""


@sopbench.group()
def check() -> None:
    """Check SOPBench's data, simulators and recordings."""


@check.command()
@DOMAIN
@_GOAL
@_tools("official", "full-state", "both", default="both")
@flag("--fresh", "Search again instead of reading the cache.")
@AS_JSON
def reach(domain: str, goal: str | None, tools: str, fresh: bool) -> Output:
    """Search for a passing run of every task, or prove that there is none."""
    upstream = shared_upstream()
    references = select_tasks(domain, upstream, goal=goal)
    lists: list[Any] = ["official", "full-state"] if tools == "both" else [tools]
    cache = None if fresh else reach_cache()
    answer = reach_document(references, lists, upstream, cache, progress)
    return Output(answer, reach_lines(answer, lists))


@check.command()
@option(
    "--goal",
    "DOMAIN/GOAL (repeatable). Default: the five goals that the study screened.",
    "goals",
    multiple=True,
)
@AS_JSON
def defects(goals: tuple[str, ...]) -> Output:
    """Make every call that a screened goal needs, then the goal's call, and classify the result."""
    upstream = shared_upstream()
    wanted = [_goal(each) for each in goals] or list(SCREENED_GOALS)
    result = replay_goals(upstream, wanted)
    classes = Counter(each["classification"] for each in result)
    answer = {
        "confirmed": classes["confirmed defect"],
        "reachable": classes["reachable"],
        "goals": result,
        "upstream_commit": upstream.checkout.commit,
    }
    return Output(answer, defect_lines(result))


def _goal(text: str) -> tuple[str, str]:
    domain, _, goal = text.partition("/")
    if domain not in DOMAINS or not goal:
        raise click.BadParameter("write DOMAIN/GOAL, for example bank/open_account")
    return domain, goal


@check.command()
@domain_option("SOPBench domain.", default="bank")
@screen_option(
    "`paper` leaves out the execute tasks that the study left out.", "screen_name", default="paper"
)
@flag(
    "--leaderboard",
    "Print SOPBench's published scores of all tasks instead; they can't be recomputed.",
    "published",
)
@AS_JSON
def baselines(domain: str, screen_name: str, published: bool) -> Output:
    """Recompute the official configurations from their stored verdicts.

    Each row says which tool list the configuration had: `full`, or `oracle`, which offers only the
    tools of the right answer.
    """
    if published:
        scores = leaderboard(find_checkout())
        none = ["this checkout's README has no leaderboard"]
        return Output({"leaderboard": scores}, leaderboard_lines(scores) if scores else none)
    upstream = shared_upstream()
    screen = SCREENS[screen_name]
    rows = [row for each in _domains(domain) for row in recompute(upstream, each, screen)]
    report = {
        "screen": screen_name,
        "upstream_commit": upstream.checkout.commit,
        "configurations": [row.as_json() for row in rows],
    }
    return Output(report, baseline_lines(rows) if rows else [_NO_RECORDINGS])


def _domains(named: str) -> tuple[str, ...]:
    return DOMAINS if named == "all" else (named,)


@check.command()
@DOMAIN
@AS_JSON
def screen(domain: str) -> Output:
    """Apply the zero-pass rule: list goals whose execute tasks no recorded run passed.

    The rule doesn't prove that no run can pass: see `reach` and `defects`.
    """
    checkout, domains = find_checkout(), _domains(domain)
    records = zero_pass(checkout, domains)
    recordings, empty = stored_recordings(checkout, domains)
    report = {
        "goals": [asdict(each) | {"screened": each.screened} for each in records],
        "screened": [f"{e.domain}/{e.goal}" for e in records if e.screened],
        "paper": [f"{where}/{goal}" for where, goal in SCREENED_GOALS],
        "recordings": recordings,
        "without_verdicts": empty,
    }
    lines = screen_lines(records, recordings, empty) if records else [_NO_RECORDINGS]
    return Output(report, lines)


@check.command()
@DOMAIN
@_GOAL
@_tools("official", "full-state", default="official")
@AS_JSON
def wording(domain: str, goal: str | None, tools: Any) -> Output:
    """Check that the arm `official` shows SOPBench's text byte for byte.

    Also check that `official-recipes` only appends to this text and that `official-code` quotes
    each of its sentences. Check that SOPBench's recorded runs used the same text.
    """
    upstream = shared_upstream()
    result = check_official(select_tasks(domain, upstream, goal=goal), tools, upstream)
    row = result.as_json() | {"upstream_commit": upstream.checkout.commit}
    return Output(row, official_lines(result), Exit.if_any(not result.holds))
