"""`sopilot lab stats`: tests on counts and on result files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import NEW_FILE, json_option
from sopilot.cli.output import give
from sopilot.files.text import write_whole
from sopilot_lab.experiments.outcome_files import foreign_rows, rows_of
from sopilot_lab.statistics import figures, paired
from sopilot_lab.statistics.figures import Arms, FigureObject, figure_json, figure_lines
from sopilot_lab.statistics.intervals import DRAWS, SEED
from sopilot_lab.statistics.paired import Discordance
from sopilot_lab.statistics.reading import outcomes_from

CONFIDENCE = click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals.",
)
COUNT = click.IntRange(min=0)
FILE = click.Path(exists=True, path_type=Path)
FILES = click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")


@click.group()
def command() -> None:
    """Test paired outcomes: exact tests, clustered permutation, intervals.

    A FILE is JSON Lines or JSON, a folder of `lab run`, an Inspect log (.eval) or a folder of them.
    A row has `task`, `goal`, `kind` (execute or refuse), `passed`, and optionally `arm`, `model`,
    `domain`, `cluster`, `run`, `post_goal_calls`. An Inspect log has them in its samples' metadata.
    A figure that can't be computed is printed as undefined, with the reason.
    """


@command.command()
@click.argument("wins", type=COUNT)
@click.argument("losses", type=COUNT)
@json_option
def mcnemar(wins: int, losses: int, as_json: bool) -> None:
    """Run the exact two-sided McNemar test on WINS and LOSSES."""
    show({"wins": wins, "losses": losses, "p": paired.mcnemar(wins, losses)}, as_json)


@command.command("non-inferiority")
@click.argument("wins", type=COUNT)
@click.argument("losses", type=COUNT)
@click.argument("pairs", type=COUNT)
@click.option(
    "--margin",
    type=float,
    default=0.05,
    show_default=True,
    help="Largest loss to exclude; fix it beforehand.",
)
@json_option
def non_inferiority(wins: int, losses: int, pairs: int, margin: float, as_json: bool) -> None:
    """Run an exact one-sided test that the first side loses less than a margin. PAIRS includes the
    pairs that agree."""
    show(figures.not_inferior(wins, losses, pairs, margin), as_json)


@command.command()
@click.argument("parts", nargs=-1, required=True, metavar="W:L...")
@json_option
def sign(parts: Sequence[str], as_json: bool) -> None:
    """Run the exact sign test on pooled W:L counts that share no task."""
    counts = [_discordance(part) for part in parts]
    whole = paired.pool(counts)
    show(
        {"wins": whole.wins, "losses": whole.losses, "p": paired.mcnemar(whole.wins, whole.losses)},
        as_json,
    )


@command.command("clopper-pearson")
@click.argument("passed", type=COUNT)
@click.argument("trials", type=COUNT)
@CONFIDENCE
@json_option
def clopper_pearson(passed: int, trials: int, confidence: float, as_json: bool) -> None:
    """Compute the exact interval for PASSED of TRIALS, and Wilson's."""
    show(figures.proportion(passed, trials, confidence), as_json)


@command.command()
@click.argument("p_values", nargs=-1, required=True, type=float, metavar="P...")
@click.option("--q", type=float, default=0.05, show_default=True, help="False discovery rate.")
@json_option
def bh(p_values: Sequence[float], q: float, as_json: bool) -> None:
    """Apply the Benjamini–Hochberg procedure to several p-values."""
    show(figures.discoveries(p_values, q), as_json)


@command.command()
@click.option(
    "--tasks",
    type=click.IntRange(min=1),
    help="Number of tasks; prints the smallest effect that they can show.",
)
@click.option(
    "--effect",
    type=float,
    help="Difference of pass rates; prints the number of tasks that can show it.",
)
@click.option(
    "--discordance", type=float, required=True, help="Expected share of discordant pairs."
)
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of the test.")
@click.option(
    "--power", "wanted", type=float, default=0.8, show_default=True, help="Power to reach."
)
@json_option
def mde(tasks: int | None, effect: float | None, as_json: bool, **how: float) -> None:
    """Compute the minimum detectable effect of a paired design, or the number of tasks for an
    effect."""
    if tasks is None and effect is None:
        raise click.UsageError("give --tasks, --effect, or both for the power they have together")
    show(figures.design(tasks, effect, **how), as_json)


@command.command()
@FILES
@click.option(
    "--arms",
    nargs=2,
    metavar="FIRST SECOND",
    help="Arms to compare. Optional if the files contain exactly two, or are two files of one arm.",
)
@click.option("--run", type=click.IntRange(min=0), help="Use only this repetition.")
@click.option("--monte-carlo", is_flag=True, help="Sample the sign flips instead of counting all.")
@CONFIDENCE
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=DRAWS,
    show_default=True,
    help="Bootstrap draws of the clustered intervals.",
)
@click.option("--seed", type=int, default=SEED, show_default=True, help="Seed of every draw.")
@json_option
def compare(
    files: Sequence[Path], arms: Arms, run: int | None, monte_carlo: bool, as_json: bool, **how: Any
) -> None:
    """Compare two arms on their common tasks: by task, by goal, across models, by kind.

    Pass two FILEs of one arm each to compare them; a win is a task that only the first passed.
    Rows of `goal`, `wins` and `losses` get the tests by goal.
    """
    rows = [rows_of([file]) for file in files]
    show(figures.contrast(rows, arms, run, exact=not monte_carlo, **how), as_json)


@command.command()
@FILES
@click.option(
    "-k",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The k of pass@k and pass^k.",
)
@json_option
def describe(files: Sequence[Path], k: int, as_json: bool) -> None:
    """Print pass rates by kind, pass@k, pass^k and the spread between runs, by model and arm."""
    show(figures.description(outcomes_from(rows_of(files)), k), as_json)


@command.command("import")
@click.argument("archive", type=FILE)
@click.option(
    "--field", "fields", multiple=True, metavar="OURS=THEIRS",
    help="The archive's field for `task`, `goal`, `kind`, `passed`, `arm`, `model`, `domain` "
    "or `run`. Use dots for nested objects (repeatable).",
)  # fmt: skip
@click.option(
    "--set", "constants", multiple=True, metavar="OURS=VALUE",
    help="Set a value in every row; {file} and {folder} stand for the row's origin (repeatable).",
)  # fmt: skip
@click.option("-o", "--output", required=True, type=NEW_FILE, help="Write JSON Lines here.")
@json_option
def import_(
    archive: Path, fields: Sequence[str], constants: Sequence[str], output: Path, as_json: bool
) -> None:
    """Convert per-task outcomes of another ARCHIVE (a ZIP, a folder or a file) to JSON Lines.

    Reads JSON, JSON Lines and CSV. Pass the file it writes to `compare` and `describe`.
    """
    rows = foreign_rows(archive, _named(fields), _named(constants))
    write_whole(output, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    show({"rows": len(rows), "tasks": len({row["task"] for row in rows})}, as_json)


def _named(options: Sequence[str]) -> dict[str, str]:
    for each in options:
        if "=" not in each:
            raise click.BadParameter(f"`{each}` is not NAME=VALUE")
    return dict(each.split("=", 1) for each in options)


def _discordance(part: str) -> Discordance:
    wins, colon, losses = part.partition(":")
    if not colon or not (wins.isdecimal() and losses.isdecimal()):
        raise click.BadParameter(f"`{part}` is not W:L, as in 9:1", param_hint="W:L")
    return Discordance(int(wins), int(losses))


def show(report: FigureObject, as_json: bool) -> None:
    give(as_json, figure_json(report), figure_lines(report), indent=None)
