"""``sopilot lab sopbench check``: what SOPBench's data, simulators and recordings hold."""

from __future__ import annotations

import functools
from dataclasses import asdict
from typing import Any

import click

from sopilot.cli.options import json_option
from sopilot.cli.output import give, progress
from sopilot_lab.cli.options import domain_option, screen_option, shown
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


_domain = functools.partial(domain_option, help="SOPBench domain.")
_goal_option = click.option("--goal", help="Only this goal of the domain.")


@click.group()
def sopbench() -> None:
    """Work with the SOPBench checkout at SOPBENCH_HOME."""


@sopbench.group()
def check() -> None:
    """Check SOPBench's data, simulators and recordings."""


@check.command()
@_domain(default="all")
@_goal_option
@shown(
    "--tools",
    type=click.Choice(["official", "full-state", "both"]),
    default="both",
    help="Tool list: `full-state` adds the tool that reads the whole database.",
)
@click.option("--fresh", is_flag=True, help="Search again instead of reading the cache.")
@json_option
def reach(domain: str, goal: str | None, tools: str, fresh: bool, as_json: bool) -> None:
    """Search for a passing run of every task, or prove that there is none."""
    upstream = shared_upstream()
    references = select_tasks(domain, upstream, goal=goal)
    lists: list[Any] = ["official", "full-state"] if tools == "both" else [tools]
    cache = None if fresh else reach_cache()
    answer = reach_document(references, lists, upstream, cache, progress)
    give(as_json, answer, reach_lines(answer, lists))


@check.command()
@click.option(
    "--goal",
    "goals",
    multiple=True,
    help="DOMAIN/GOAL (repeatable). Default: the five goals that the study screened.",
)
@json_option
def defects(goals: tuple[str, ...], as_json: bool) -> None:
    """Make every call that a screened goal needs, then the goal's call, and classify the result."""
    upstream = shared_upstream()
    wanted = [_goal(each) for each in goals] or list(SCREENED_GOALS)
    result = replay_goals(upstream, wanted)
    give(
        as_json,
        {
            "confirmed": sum(each["classification"] == "confirmed defect" for each in result),
            "reachable": sum(each["classification"] == "reachable" for each in result),
            "goals": result,
            "upstream_commit": upstream.checkout.commit,
        },
        defect_lines(result),
    )


def _goal(text: str) -> tuple[str, str]:
    domain, _, goal = text.partition("/")
    if domain not in DOMAINS or not goal:
        raise click.BadParameter("write DOMAIN/GOAL, for example bank/open_account")
    return domain, goal


@check.command()
@_domain(default="bank")
@screen_option(
    "screen_name",
    default="paper",
    help="`paper` leaves out the execute tasks that the study left out.",
)
@click.option(
    "--leaderboard",
    "published",
    is_flag=True,
    help="Print SOPBench's published scores of all tasks instead; they can't be recomputed.",
)
@json_option
def baselines(domain: str, screen_name: str, published: bool, as_json: bool) -> None:
    """Recompute the official configurations from their stored verdicts.

    Each row says which tool list the configuration had: `full`, or `oracle`, which offers only the
    tools of the right answer.
    """
    if published:
        scores = leaderboard(find_checkout())
        none = ["this checkout's README has no leaderboard"]
        give(as_json, {"leaderboard": scores}, leaderboard_lines(scores) if scores else none)
        return
    upstream = shared_upstream()
    screen = SCREENS[screen_name]
    domains = DOMAINS if domain == "all" else (domain,)
    rows = [row for each in domains for row in recompute(upstream, each, screen)]
    report = {
        "screen": screen_name,
        "upstream_commit": upstream.checkout.commit,
        "configurations": [row.as_json() for row in rows],
    }
    give(as_json, report, baseline_lines(rows) if rows else [_NO_RECORDINGS])


@check.command()
@_domain(default="all")
@json_option
def screen(domain: str, as_json: bool) -> None:
    """Apply the zero-pass rule: list goals whose execute tasks no recorded run passed.

    The rule doesn't prove that no run can pass: see `reach` and `defects`.
    """
    checkout, domains = find_checkout(), DOMAINS if domain == "all" else (domain,)
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
    give(as_json, report, lines)


@check.command()
@_domain(default="all")
@_goal_option
@shown(
    "--tools",
    type=click.Choice(["official", "full-state"]),
    default="official",
    help="Tool list: `full-state` adds the tool that reads the whole database.",
)
@json_option
def wording(domain: str, goal: str | None, tools: str, as_json: bool) -> None:
    """Check that the arm `official` shows SOPBench's text byte for byte.

    Also check that `official-recipes` only appends to this text and that `official-code` quotes
    each of its sentences. Check that SOPBench's recorded runs used the same text.
    """
    upstream = shared_upstream()
    references = select_tasks(domain, upstream, goal=goal)
    result = check_official(
        references, "full-state" if tools == "full-state" else "official", upstream
    )
    row = result.as_json()
    give(as_json, row | {"upstream_commit": upstream.checkout.commit}, official_lines(result))
    if not result.holds:
        raise SystemExit(1)
