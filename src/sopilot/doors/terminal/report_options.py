"""Options of a report on runs: what may differ, what is left out, what is too little."""

from __future__ import annotations

import click

from sopilot.doors.terminal.option_types import FILE, NEW_FOLDER, all_of
from sopilot.lab.bench.report import MOST_MISSING
from sopilot.lab.bench.screen import SCREENS

report_options = all_of(
    click.option(
        "-o",
        "--output",
        type=NEW_FOLDER,
        help="Write report.md, report.html and csv/*.csv into this folder.",
    ),
    click.option(
        "--vary",
        multiple=True,
        metavar="FIELD",
        help="What may differ between folders beside arm, model, run, tools and language, such as "
        "`budgets` or `user`; each value makes rows of its own.",
    ),
    click.option(
        "--screen",
        type=click.Choice(list(SCREENS)),
        default="paper",
        show_default=True,
        help="The execute tasks that tables leave out: `paper` leaves 819 tasks, `paper-bank` 821.",
    ),
    click.option(
        "--mechanism",
        multiple=True,
        type=FILE,
        help="What `gate --json` or `lens --json` printed, for the figure of the mechanism.",
    ),
    click.option(
        "--most-missing",
        type=click.FloatRange(0, 1),
        default=MOST_MISSING,
        show_default=True,
        help="Exit with 1 if an arm lacks a verdict for more than this share of its tasks.",
    ),
)
