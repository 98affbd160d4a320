"""``sopilot bench report``."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.doors.terminal.option_types import FILE, NEW_FOLDER
from sopilot.doors.terminal.output import give, json_option, progress
from sopilot.lab.bench.archive_reading import archived_document, is_archive, opened_archive
from sopilot.lab.bench.report import MOST_MISSING, Document, load_runs, read_mechanism
from sopilot.lab.bench.report.files import document_data, report_files, whole_document, write_report
from sopilot.lab.bench.screen import SCREENS


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=NEW_FOLDER,
    help="Write report.md, report.html and csv/*.csv into this folder.",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="FIELD",
    help="What may differ between folders beside arm, model, run, tools and language, such as "
    "`budgets` or `user`; each value makes rows of its own.",
)
@click.option(
    "--screen",
    type=click.Choice(list(SCREENS)),
    default="paper",
    show_default=True,
    help="The execute tasks that tables leave out: `paper` leaves 819 tasks, `paper-bank` 821.",
)
@click.option(
    "--mechanism",
    multiple=True,
    type=FILE,
    help="What `gate --json` or `lens --json` printed, for the figure of the mechanism.",
)
@click.option(
    "--most-missing",
    type=click.FloatRange(0, 1),
    default=MOST_MISSING,
    show_default=True,
    help="Exit with 1 if an arm lacks a verdict for more than this share of its tasks.",
)
@json_option
def report(
    folders: tuple[Path, ...],
    output: Path | None,
    vary: tuple[str, ...],
    screen: str,
    mechanism: tuple[Path, ...],
    most_missing: float,
    as_json: bool,
) -> None:
    """Every table of the study that these folders of runs can fill.

    Folders of one configuration are put together: domains, repetitions (`bench run --run 2`).
    Folders of another harness are refused, with what differs. An archive of `bench archive` is
    counted again as it was packed, without SOPBench.
    """
    if len(folders) == 1 and is_archive(folders[0]):
        with opened_archive(folders[0]) as base:
            document = archived_document(base)
    else:
        document = whole_document(
            load_runs(folders, vary=vary),
            progress,
            screen=screen,
            mechanism=read_mechanism(mechanism),
            most_missing=most_missing,
        )
    hand_over(document, output, as_json, names_files=True)
    for each in document.alarms:
        progress(f"missing: {each}")
    if document.alarms:
        raise SystemExit(1)


def hand_over(
    document: Document, output: Path | None, as_json: bool, *, names_files: bool = False
) -> None:
    """Written where that is wanted, and told: the report itself where it is not."""
    files = report_files(document)
    if output is not None:
        write_report(output, files)
    told = files["report.md"] if output is None else f"{len(files)} files in {output}"
    written = {"written": sorted(files) if output is not None else []} if names_files else {}
    give(as_json, document_data(document) | written, [told])
