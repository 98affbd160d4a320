"""`sopilot lab stats`: tests on counts and on result files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import AS_JSON, EITHER, NEW_FILE, flag, option
from sopilot.cli.output import Output
from sopilot.files.text import write_whole
from sopilot_lab.cli.options import shown
from sopilot_lab.experiments.outcome_files import foreign_rows, rows_of
from sopilot_lab.statistics import figures, paired
from sopilot_lab.statistics.figures import Arms, FigureObject, figure_json, figure_lines
from sopilot_lab.statistics.intervals import DRAWS, SEED
from sopilot_lab.statistics.paired import Discordance
from sopilot_lab.statistics.reading import outcomes_from

CONFIDENCE = shown("--confidence", "Confidence level of the intervals.", default=0.95)
COUNT = click.IntRange(min=0)
FILES = click.argument("files", nargs=-1, required=True, type=EITHER, metavar="FILE...")


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
@AS_JSON
def mcnemar(wins: int, losses: int) -> Output:
    """Run the exact two-sided McNemar test on WINS and LOSSES."""
    return _output({"wins": wins, "losses": losses, "p": paired.mcnemar(wins, losses)})


@command.command("non-inferiority")
@click.argument("wins", type=COUNT)
@click.argument("losses", type=COUNT)
@click.argument("pairs", type=COUNT)
@shown("--margin", "Largest loss to exclude; fix it beforehand.", default=0.05)
@AS_JSON
def non_inferiority(wins: int, losses: int, pairs: int, margin: float) -> Output:
    """Run an exact one-sided test that the first side loses less than a margin. PAIRS includes the
    pairs that agree."""
    return _output(figures.not_inferior(wins, losses, pairs, margin))


@command.command()
@click.argument("parts", nargs=-1, required=True, metavar="W:L...")
@AS_JSON
def sign(parts: Sequence[str]) -> Output:
    """Run the exact sign test on pooled W:L counts that share no task."""
    whole = paired.pool(map(_discordance, parts))
    wins, losses = whole.wins, whole.losses
    return _output({"wins": wins, "losses": losses, "p": paired.mcnemar(wins, losses)})


@command.command("clopper-pearson")
@click.argument("passed", type=COUNT)
@click.argument("trials", type=COUNT)
@CONFIDENCE
@AS_JSON
def clopper_pearson(passed: int, trials: int, confidence: float) -> Output:
    """Compute the exact interval for PASSED of TRIALS, and Wilson's."""
    return _output(figures.proportion(passed, trials, confidence))


@command.command()
@click.argument("p_values", nargs=-1, required=True, type=float, metavar="P...")
@shown("--q", "False discovery rate.", default=0.05)
@AS_JSON
def bh(p_values: Sequence[float], q: float) -> Output:
    """Apply the Benjamini–Hochberg procedure to several p-values."""
    return _output(figures.discoveries(p_values, q))


@command.command()
@option(
    "--tasks",
    "Number of tasks; prints the smallest effect that they can show.",
    type=click.IntRange(min=1),
)
@option(
    "--effect",
    "Difference of pass rates; prints the number of tasks that can show it.",
    type=float,
)
@option("--discordance", "Expected share of discordant pairs.", type=float, required=True)
@shown("--alpha", "Level of the test.", default=0.05)
@shown("--power", "Power to reach.", "wanted", default=0.8)
@AS_JSON
def mde(tasks: int | None, effect: float | None, **how: float) -> Output:
    """Compute the minimum detectable effect of a paired design, or the number of tasks for an
    effect."""
    if tasks is None and effect is None:
        raise click.UsageError("give --tasks, --effect, or both for the power they have together")
    return _output(figures.design(tasks, effect, **how))


@command.command()
@FILES
@option(
    "--arms FIRST SECOND",
    "Arms to compare. Optional if the files contain exactly two, or are two files of one arm.",
    nargs=2,
)
@option("--run", "Use only this repetition.", type=click.IntRange(min=0))
@flag("--monte-carlo", "Sample the sign flips instead of counting all.")
@CONFIDENCE
@shown(
    "--draws",
    "Bootstrap draws of the clustered intervals.",
    type=click.IntRange(min=1),
    default=DRAWS,
)
@shown("--seed", "Seed of every draw.", default=SEED)
@AS_JSON
def compare(
    files: Sequence[Path], arms: Arms, run: int | None, monte_carlo: bool, **how: Any
) -> Output:
    """Compare two arms on their common tasks: by task, by goal, across models, by kind.

    Pass two FILEs of one arm each to compare them; a win is a task that only the first passed.
    Rows of `goal`, `wins` and `losses` get the tests by goal.
    """
    rows = [rows_of([file]) for file in files]
    return _output(figures.contrast(rows, arms, run, exact=not monte_carlo, **how))


@command.command()
@FILES
@shown("-k", "The k of pass@k and pass^k.", type=click.IntRange(min=1), default=1)
@AS_JSON
def describe(files: Sequence[Path], k: int) -> Output:
    """Print pass rates by kind, pass@k, pass^k and the spread between runs, by model and arm."""
    return _output(figures.description(outcomes_from(rows_of(files)), k))


@command.command("import")
@click.argument("archive", type=EITHER)
@option(
    "--field OURS=THEIRS",
    "The archive's field for `task`, `goal`, `kind`, `passed`, `arm`, `model`, `domain` or `run`. "
    "Use dots for nested objects (repeatable).",
    "fields",
    multiple=True,
)
@option(
    "--set OURS=VALUE",
    "Set a value in every row; {file} and {folder} stand for the row's origin (repeatable).",
    "constants",
    multiple=True,
)
@option("-o,--output", "Write JSON Lines here.", type=NEW_FILE, required=True)
@AS_JSON
def import_(archive: Path, fields: Sequence[str], constants: Sequence[str], output: Path) -> Output:
    """Convert per-task outcomes of another ARCHIVE (a ZIP, a folder or a file) to JSON Lines.

    Reads JSON, JSON Lines and CSV. Pass the file it writes to `compare` and `describe`.
    """
    rows = foreign_rows(archive, _named(fields), _named(constants))
    write_whole(output, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return _output({"rows": len(rows), "tasks": len({row["task"] for row in rows})})


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


def _output(report: FigureObject) -> Output:
    return Output(figure_json(report), figure_lines(report), indent=None)
