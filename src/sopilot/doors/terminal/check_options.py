"""Options of the check that tells whether a model should be paged."""

from __future__ import annotations

import click

from sopilot.doors.terminal.option_types import FOLDER, NEW_FILE, all_of
from sopilot.lab.discipline import ARMS_CHECKED, CASES, QUESTIONS, TIMEOUT
from sopilot.lab.discipline.spending import CALLS, MINUTES

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
