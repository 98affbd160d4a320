"""Options of reports on runs."""

from __future__ import annotations

import functools

import click

from sopilot.cli.options import FILE, NEW_FOLDER, all_of
from sopilot_lab.experiments.report.tables import MOST_MISSING
from sopilot_lab.sopbench.recorded import SCREENS
from sopilot_lab.sopbench.reference import DOMAINS

shown = functools.partial(click.option, show_default=True)
domain_option = functools.partial(shown, "--domain", type=click.Choice([*DOMAINS, "all"]))
screen_option = functools.partial(shown, "--screen", type=click.Choice(list(SCREENS)))
RUNNER = click.option(
    "--runner",
    type=click.Choice(["inspect", "plain"]),
    help="Runner. Default: inspect if installed.",
)
PRICE = click.option(
    "--price", type=(float, float), metavar="IN OUT", help="Price per million tokens."
)
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
        help="Combine folders that differ in `budgets` or `user`. Each value gets its own rows.",
    ),
    screen_option(
        default="paper",
        help="Which `execute` tasks to leave out of tables: `paper` keeps 819, `paper-bank` 821.",
    ),
    click.option(
        "--mechanism",
        multiple=True,
        type=FILE,
        help="Output of `qualify --json` or `lab lens --json`, for the mechanism figure.",
    ),
    shown(
        "--most-missing",
        type=click.FloatRange(0, 1),
        default=MOST_MISSING,
        help="Exit with 1 if more than this share of an arm's tasks has no verdict.",
    ),
)
