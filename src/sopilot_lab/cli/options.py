"""Options of the check that tells whether a model should be paged.

Options of a report on runs: what may differ, what is left out, what is too little.
"""

from __future__ import annotations

import click

from sopilot.cli.options import FILE, FOLDER, NEW_FILE, NEW_FOLDER, all_of
from sopilot_lab.experiments.report.missing import MOST_MISSING
from sopilot_lab.qualification.plan import CASES
from sopilot_lab.qualification.probe import QUESTIONS
from sopilot_lab.qualification.rule import ARMS_CHECKED
from sopilot_lab.qualification.running import TIMEOUT
from sopilot_lab.qualification.spending import CALLS, MINUTES
from sopilot_lab.sopbench.screen import SCREENS

check_options = all_of(
    click.option("--model", required=True, metavar="MODEL"),
    click.option(
        "--handbook", "source", help="A handbook file or bundled name. Default: all desks."
    ),
    click.option("--scenarios", help="Default: the handbook's name with `.scenarios.yaml`."),
    click.option(
        "--arm",
        "only_arms",
        multiple=True,
        type=click.Choice(ARMS_CHECKED),
        help="Run these alone (repeatable). Default: all of them.",
    ),
    click.option(
        "--from",
        "recorded_in",
        multiple=True,
        type=FOLDER,
        help="Folders of `bench run --traces` of this model (repeatable).",
    ),
    click.option("--cases", default=CASES, show_default=True, type=click.IntRange(1)),
    click.option("--probe", default=QUESTIONS, show_default=True, type=click.IntRange(0)),
    click.option(
        "--scope",
        type=click.Choice(["handbook", "goal"]),
        help="What a case shows: the whole handbook, or its own goal alone, as in the study. "
        "Default: handbook; goal for `local`, whose context does not hold a whole one.",
    ),
    click.option("--calls", default=CALLS, show_default=True, help="Most requests to the model."),
    click.option("--minutes", default=MINUTES, show_default=True, help="Longest, for this call."),
    click.option(
        "--timeout",
        default=TIMEOUT,
        show_default=True,
        type=click.FloatRange(0, min_open=True),
        help="Seconds for one answer. An endpoint that is silent for twice as long ends the check.",
    ),
    click.option("--money", type=float, help="Most money; needs --price."),
    click.option(
        "--price",
        type=(float, float),
        metavar="IN OUT",
        help="Per million prompt and reply tokens.",
    ),
    click.option("--parallel", default=1, show_default=True, help="Cases at a time."),
    click.option("--estimate", "only_estimate", is_flag=True, help="Print the estimate and stop."),
    click.option("--restart", is_flag=True, help="Forget what an earlier call has finished."),
    click.option("--html", type=NEW_FILE, help="Copy the page here."),
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
