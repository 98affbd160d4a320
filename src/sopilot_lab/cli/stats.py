"""`sopilot stats`: the tests on counts or on result files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import NEW_FILE
from sopilot.cli.output import give, json_option
from sopilot.files.text import write_whole
from sopilot_lab import statistics as stats
from sopilot_lab.experiments.outcome_files import foreign_rows, rows_of
from sopilot_lab.statistics import figures
from sopilot_lab.statistics.bootstrap import DRAWS as RESAMPLES
from sopilot_lab.statistics.clustered import DRAWS
from sopilot_lab.statistics.figures import Arms, FigureObject, figure_json, figure_lines
from sopilot_lab.statistics.outcomes import RunOutcome
from sopilot_lab.statistics.paired import Discordance

CONFIDENCE = click.option("--confidence", type=float, default=0.95, show_default=True)


SEEDED = click.option("--seed", type=int, default=stats.SEED, show_default=True)


RESAMPLED = click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=RESAMPLES,
    show_default=True,
    help="Bootstrap draws of the clustered interval.",
)


ARMS = click.option(
    "--arms",
    nargs=2,
    metavar="FIRST SECOND",
    help="The arms to compare; needed unless the file holds exactly two.",
)


RUN = click.option("--run", type=click.IntRange(min=0), help="Use this repetition alone.")


COUNT = click.IntRange(min=0)


FILE = click.Path(exists=True, path_type=Path)


FILES = click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")


@click.group()
def command() -> None:
    """Exact paired tests, clustered permutation, intervals.

    A FILE is JSON Lines or JSON, a folder of `bench run`, an Inspect log (.eval; ours or
    another's) or a folder of them. A row has `task`, `goal`, `kind` (execute or refuse),
    `passed`, and optionally `arm`, `model`, `domain`, `cluster`, `run`, `post_goal_calls`;
    an Inspect log gives them by its samples' metadata. A figure that does not exist is
    said to be undefined.
    """


@command.command()
@click.argument("wins", type=COUNT)
@click.argument("losses", type=COUNT)
@json_option
def mcnemar(wins: int, losses: int, as_json: bool) -> None:
    """Exact two-sided McNemar test on WINS and LOSSES."""
    show({"wins": wins, "losses": losses, "p": stats.mcnemar(wins, losses)}, as_json)


@command.command("non-inferiority")
@click.argument("wins", type=COUNT)
@click.argument("losses", type=COUNT)
@click.argument("pairs", type=COUNT)
@click.option("--margin", type=float, default=0.05, show_default=True, help="Fixed beforehand.")
@json_option
def non_inferiority(wins: int, losses: int, pairs: int, margin: float, as_json: bool) -> None:
    """Exact one-sided test that the first side loses less than a margin, on WINS and LOSSES
    of PAIRS; pairs that agree count."""
    show(figures.non_inferior(wins, losses, pairs, margin), as_json)


@command.command()
@click.argument("parts", nargs=-1, required=True, metavar="W:L...")
@json_option
def sign(parts: Sequence[str], as_json: bool) -> None:
    """Exact sign test on pooled W:L counts that share no task."""
    counts = [_discordance(part) for part in parts]
    whole = stats.pool(counts)
    show({"wins": whole.wins, "losses": whole.losses, "p": stats.sign_test(counts)}, as_json)


@command.command("clopper-pearson")
@click.argument("passed", type=COUNT)
@click.argument("trials", type=COUNT)
@CONFIDENCE
@json_option
def clopper_pearson(passed: int, trials: int, confidence: float, as_json: bool) -> None:
    """Exact interval for PASSED of TRIALS, and Wilson's beside it."""
    show(figures.proportion(passed, trials, confidence), as_json)


@command.command()
@click.argument("p_values", nargs=-1, required=True, type=float, metavar="P...")
@click.option("--q", type=float, default=0.05, show_default=True, help="False discovery rate.")
@json_option
def bh(p_values: Sequence[float], q: float, as_json: bool) -> None:
    """Benjamini–Hochberg over several p-values."""
    show(figures.discoveries(p_values, q), as_json)


@command.command()
@FILES
@ARMS
@RUN
@click.option("--monte-carlo", is_flag=True, help="Sample the sign flips instead of counting all.")
@click.option("--draws", type=click.IntRange(min=1), default=DRAWS, show_default=True)
@SEEDED
@json_option
def clustered(
    files: Sequence[Path], monte_carlo: bool, as_json: bool, arms: Arms, run: int | None, **how: Any
) -> None:
    """Goal-clustered sign-flip test on FILE...

    They hold outcomes of two arms, or rows of `goal`, `wins`, `losses`.
    """
    show(figures.clustered(rows_of(files), arms, run, exact=not monte_carlo, **how), as_json)


@command.command()
@FILES
@ARMS
@RUN
@json_option
def joint(files: Sequence[Path], arms: Arms, run: int | None, as_json: bool) -> None:
    """Task-joint sign-flip test: models that share tasks flip together."""
    show(figures.joint(_outcomes(files), arms, run), as_json)


@command.command()
@click.argument("file_a", type=FILE)
@click.argument("file_b", type=FILE)
@RUN
@CONFIDENCE
@RESAMPLED
@SEEDED
@json_option
def pairs(file_a: Path, file_b: Path, run: int | None, as_json: bool, **how: Any) -> None:
    """FILE_A against FILE_B on their common tasks; a win is a pass of FILE_A alone."""
    sides = [(str(file), _outcomes([file])) for file in (file_a, file_b)]
    show(figures.compared(sides, run, **how), as_json)


@command.command()
@FILES
@json_option
def accuracy(files: Sequence[Path], as_json: bool) -> None:
    """Pass rates by kind and their balanced mean, for each model and arm."""
    show(figures.accuracies(_outcomes(files)), as_json)


@command.command("pass-k")
@FILES
@click.option("-k", type=click.IntRange(min=1), default=1, show_default=True)
@json_option
def pass_k(files: Sequence[Path], k: int, as_json: bool) -> None:
    """pass@k, pass^k and the spread between runs, for each model and arm."""
    show(figures.repeated(_outcomes(files), k), as_json)


@command.command()
@click.option("--tasks", type=click.IntRange(min=1), help="Find the smallest visible effect.")
@click.option("--effect", type=float, help="Find the number of tasks this effect needs.")
@click.option("--discordance", type=float, required=True, help="Share of discordant pairs.")
@click.option("--alpha", type=float, default=0.05, show_default=True)
@click.option("--power", type=float, default=0.8, show_default=True)
@json_option
def mde(tasks: int | None, effect: float | None, as_json: bool, **how: float) -> None:
    """What a paired design can see: minimum detectable effect, or tasks needed."""
    if tasks is None and effect is None:
        raise click.UsageError("give --tasks, --effect, or both for the power they have together")
    show(figures.design(tasks, effect, **how), as_json)


@command.command()
@FILES
@ARMS
@CONFIDENCE
@RESAMPLED
@SEEDED
@json_option
def r2(files: Sequence[Path], arms: Arms, as_json: bool, **how: Any) -> None:
    """Mean calls after the goal succeeded, for each model: first arm minus second."""
    show(figures.after_goal(_outcomes(files), arms, **how), as_json)


@command.command("import")
@click.argument("archive", type=FILE)
@click.option(
    "--field", "fields", multiple=True, metavar="OURS=THEIRS",
    help="What they call our `task`, `goal`, `kind`, `passed`, `arm`, `model`, `domain`, `run`; "
    "dots lead into objects (repeatable).",
)  # fmt: skip
@click.option(
    "--set", "constants", multiple=True, metavar="OURS=VALUE",
    help="The same value for every row; {file} and {folder} say where it was (repeatable).",
)  # fmt: skip
@click.option("-o", "--output", required=True, type=NEW_FILE, help="Write JSON Lines here.")
@json_option
def import_(
    archive: Path, fields: Sequence[str], constants: Sequence[str], output: Path, as_json: bool
) -> None:
    """Read per-task outcomes from somebody else's ARCHIVE: a ZIP, a folder or a file.

    JSON, JSON Lines and CSV are read; the other commands then take the file that this writes.
    """
    rows = foreign_rows(archive, _named(fields), _named(constants))
    write_whole(output, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    show({"rows": len(rows), "tasks": len({row["task"] for row in rows})}, as_json)


def _named(options: Sequence[str]) -> dict[str, str]:
    for each in options:
        if "=" not in each:
            raise click.BadParameter(f"`{each}` is not NAME=VALUE")
    return dict(each.split("=", 1) for each in options)


def _outcomes(files: Sequence[Path]) -> tuple[RunOutcome, ...]:
    return stats.outcomes_from(rows_of(files))


def _discordance(part: str) -> Discordance:
    wins, colon, losses = part.partition(":")
    if not colon or not (wins.isdecimal() and losses.isdecimal()):
        raise click.BadParameter(f"`{part}` is not W:L, as in 9:1", param_hint="W:L")
    return Discordance(int(wins), int(losses))


def show(report: FigureObject, as_json: bool) -> None:
    give(as_json, figure_json(report), figure_lines(report), indent=None)
