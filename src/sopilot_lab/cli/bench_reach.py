"""``sopilot bench reach`` and ``sopilot bench defects``: what can be passed at all."""

from __future__ import annotations

from typing import Any

import click

from sopilot.cli.output import give, json_option, progress
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.sopbench.defects import defect_lines, replay_goals
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.reach_survey import reach_cache, reach_document, reach_lines
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.sopbench.screen import SCREENED_GOALS


@click.command()
@click.option("--domain", type=click.Choice([*DOMAINS, "all"]), default="all", show_default=True)
@click.option("--goal", help="Only this goal of the domain.")
@click.option(
    "--tools",
    type=click.Choice(["official", "full-state", "both"]),
    default="both",
    show_default=True,
)
@click.option("--fresh", is_flag=True, help="Search again instead of using what was found before.")
@json_option
def reach(domain: str, goal: str | None, tools: str, fresh: bool, as_json: bool) -> None:
    """Search for a passing run of every task; where there is none, prove it."""
    upstream = shared_upstream()
    references = select_tasks(domain, upstream, goal=goal)
    lists: list[Any] = ["official", "full-state"] if tools == "both" else [tools]
    cache = None if fresh else reach_cache()
    answer = reach_document(references, lists, upstream, cache, progress)
    give(as_json, answer, reach_lines(answer, lists))


@click.command()
@click.option(
    "--goal",
    "goals",
    multiple=True,
    help="DOMAIN/GOAL; default: the five goals that the study screened.",
)
@json_option
def defects(goals: tuple[str, ...], as_json: bool) -> None:
    """Replay the screened goals after everything they need and classify what happens."""
    upstream = shared_upstream()
    wanted = [_goal(each) for each in goals] or list(SCREENED_GOALS)
    found = replay_goals(upstream, wanted)
    give(
        as_json,
        {
            "confirmed": sum(each.classification == "confirmed defect" for each in found),
            "reachable": sum(each.classification == "reachable" for each in found),
            "goals": [each.as_json() for each in found],
            "upstream_commit": upstream.checkout.commit,
        },
        defect_lines(found),
    )


def _goal(text: str) -> tuple[str, str]:
    domain, _, goal = text.partition("/")
    if domain not in DOMAINS or not goal:
        raise click.BadParameter("write DOMAIN/GOAL, for example bank/open_account")
    return domain, goal
