"""``sopilot bench baselines`` and ``sopilot bench screen``: what upstream recorded."""

from __future__ import annotations

from dataclasses import asdict

import click

from sopilot.cli.output import give, json_option
from sopilot_lab.sopbench.baselines import (
    baseline_lines,
    leaderboard,
    leaderboard_lines,
    recompute,
    subset_size,
)
from sopilot_lab.sopbench.checkout import find_checkout
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.sopbench.screen import (
    SCREENED_GOALS,
    SCREENS,
    screen_lines,
    stored_recordings,
    zero_pass,
)

_NO_RECORDINGS = "this checkout holds no recorded trajectories (its folder `output`)"


@click.command()
@click.option("--domain", type=click.Choice([*DOMAINS, "all"]), default="bank", show_default=True)
@click.option(
    "--screen",
    "screen_name",
    type=click.Choice(list(SCREENS)),
    default="paper",
    show_default=True,
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

    Each row says which tool list the configuration had: `full`, or `oracle`, which offers the
    tools of the right answer alone.
    """
    if published:
        scores = leaderboard(find_checkout())
        none = ["this checkout's README has no leaderboard"]
        give(as_json, {"leaderboard": scores}, leaderboard_lines(scores) if scores else none)
        return
    upstream = shared_upstream()
    screen = SCREENS[screen_name]
    rows = []
    for each in DOMAINS if domain == "all" else (domain,):
        size = subset_size(upstream.scoring(each), each, screen)
        rows += recompute(upstream.checkout, each, screen, subset_size=size)
    report = {
        "screen": screen_name,
        "upstream_commit": upstream.checkout.commit,
        "configurations": [row.as_json() for row in rows],
    }
    give(as_json, report, baseline_lines(rows) if rows else [_NO_RECORDINGS])


@click.command()
@click.option("--domain", type=click.Choice([*DOMAINS, "all"]), default="all", show_default=True)
@json_option
def screen(domain: str, as_json: bool) -> None:
    """Apply the zero-pass rule to the recorded runs: goals whose execute tasks nobody passed.

    It shows that nobody did, not that nobody can: see `bench reach` and `bench defects`.
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
