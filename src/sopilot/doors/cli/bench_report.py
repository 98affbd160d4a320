"""``sopilot bench report``."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.doors.terminal.output import give, json_option, progress
from sopilot.doors.terminal.report_options import report_options
from sopilot.lab.bench.archive_reading import archived_document, is_archive, opened_archive
from sopilot.lab.bench.report import Document, load_runs, read_mechanism
from sopilot.lab.bench.report.files import document_data, report_files, whole_document, write_report
from sopilot.language.diagnostics.plain_text import Lines


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@report_options
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
    give(as_json, document_data(document) | written, [Lines(told)])
