"""``sopilot bench wording``: the official arms against SOPBench's own text."""

from __future__ import annotations

import click

from sopilot.cli.output import give, json_option
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.sopbench.wording_check import check_official, official_lines


@click.command()
@click.option("--domain", type=click.Choice([*DOMAINS, "all"]), default="all", show_default=True)
@click.option("--goal", help="Only this goal of the domain.")
@click.option(
    "--tools", type=click.Choice(["official", "full-state"]), default="official", show_default=True
)
@json_option
def wording(domain: str, goal: str | None, tools: str, as_json: bool) -> None:
    """Check that the arm `official` shows SOPBench's text byte for byte.

    Also that `official-recipes` adds to it below and changes nothing, that `official-code`
    quotes every sentence of it, and that the text is the one of SOPBench's recorded runs.
    """
    upstream = shared_upstream()
    references = select_tasks(domain, upstream, goal=goal)
    found = check_official(
        references, "full-state" if tools == "full-state" else "official", upstream
    )
    row = found.as_json()
    give(as_json, row | {"upstream_commit": upstream.checkout.commit}, official_lines(found))
    if not found.holds:
        raise SystemExit(1)
