"""Options of reports on runs."""

from __future__ import annotations

import click

from sopilot.cli.options import FILE, NEW_FOLDER, all_of
from sopilot_lab.experiments.report.tables import MOST_MISSING
from sopilot_lab.sopbench.recorded import SCREENS

FILLED = click.option("--filled", is_flag=True, help="Leave out rows and tables without a figure.")
report_options = all_of(
    click.option(
        "-o",
        "--output",
        type=NEW_FOLDER,
        help="Write report.md, report.html, csv/*.csv, tex/*.tex and figures/*.svg into this "
        "folder; figures/*.pdf too with the extra `figures`.",
    ),
    click.option(
        "--vary",
        multiple=True,
        metavar="FIELD",
        help="Field that may differ between folders, beside arm, model, run, tools and language: "
        "`budgets` or `user`. Each value gets its own rows.",
    ),
    click.option(
        "--screen",
        type=click.Choice(list(SCREENS)),
        default="paper",
        show_default=True,
        help="Execute tasks to leave out of tables: `paper` leaves 819 tasks, `paper-bank` 821.",
    ),
    click.option(
        "--mechanism",
        multiple=True,
        type=FILE,
        help="Output of `qualify --json` or `lab lens --json`, for the figure of the mechanism.",
    ),
    click.option(
        "--most-missing",
        type=click.FloatRange(0, 1),
        default=MOST_MISSING,
        show_default=True,
        help="Exit with 1 if more than this share of an arm's tasks has no verdict.",
    ),
)
