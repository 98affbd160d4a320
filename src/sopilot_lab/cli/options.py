"""Options of reports on runs."""

from __future__ import annotations

import functools

import click

from sopilot.cli.options import FILE, NEW_FOLDER, all_of, flag, option
from sopilot_lab.experiments.report.tables import MOST_MISSING
from sopilot_lab.sopbench.recorded import SCREENS
from sopilot_lab.sopbench.reference import DOMAINS

shown = functools.partial(option, show_default=True)
domain_option = functools.partial(shown, "--domain", type=click.Choice([*DOMAINS, "all"]))
screen_option = functools.partial(shown, "--screen", type=click.Choice(list(SCREENS)))
DOMAIN = domain_option("SOPBench domain.", default="all")
RUNNER = option(
    "--runner", "Runner. Default: inspect if installed.", type=click.Choice(["inspect", "plain"])
)
PRICE = option("--price IN OUT", "Price per million tokens.", type=(float, float))
FILLED = flag("--filled", "Leave out rows and tables without a figure.")
report_options = all_of(
    option(
        "-o,--output",
        "Write report.md, report.html, csv/*.csv, tex/*.tex and figures/*.svg into this folder; "
        "figures/*.pdf too with the extra `figures`.",
        type=NEW_FOLDER,
    ),
    option(
        "--vary FIELD",
        "Combine folders that differ in `budgets` or `user`. Each value gets its own rows.",
        multiple=True,
    ),
    screen_option(
        "Which `execute` tasks to leave out of tables: `paper` keeps 819, `paper-bank` 821.",
        default="paper",
    ),
    option(
        "--mechanism",
        "Output of `qualify --json` or `lab lens --json`, for the mechanism figure.",
        multiple=True,
        type=FILE,
    ),
    shown(
        "--most-missing",
        "Exit with 1 if more than this share of an arm's tasks has no verdict.",
        type=click.FloatRange(0, 1),
        default=MOST_MISSING,
    ),
)
