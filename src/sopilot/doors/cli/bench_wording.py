"""``sopilot bench wording``: the official arms against SOPBench's own text."""

from __future__ import annotations

import click

from sopilot.doors.cli.output import json_option, print_json, say
from sopilot.lab.bench import DOMAINS, shared_upstream
from sopilot.lab.bench.official_check import PAPER, check_official
from sopilot.lab.bench.selection import select_tasks


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
    if as_json:
        print_json(row | {"upstream_commit": upstream.checkout.commit})
    else:
        by_paper = found.paper_leaves + found.paper_checks
        say(f"{found.identical} of {found.tasks} texts are upstream's, byte for byte")
        say(f"{found.recipes_below_it} of {found.tasks} have their recipes below the whole text")
        say(f"{found.as_recorded} of {found.recorded} stand in a recorded run of upstream's")
        say(
            f"correspondences: {found.sentences:,} sentences, {found.compared:,} comparisons; "
            f"{len(found.mismatches)} mismatches"
        )
        if found.paper_tasks:
            say(
                f"by the study's rule, on {found.paper_tasks} screened Bank tasks: {by_paper} "
                f"(it counts {PAPER})"
            )
        for each in found.mismatches[:5]:
            say(f"  {each}")
    if not found.holds:
        raise SystemExit(1)
