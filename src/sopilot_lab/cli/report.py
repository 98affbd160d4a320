"""``sopilot lab report``."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.cli.options import AS_JSON, EITHER
from sopilot.cli.output import Exit, Output, progress
from sopilot.values.text import Lines
from sopilot_lab.cli.options import FILLED, report_options
from sopilot_lab.experiments.archive_reading import archived_document, is_archive, opened_archive
from sopilot_lab.experiments.report.document import Document
from sopilot_lab.experiments.report.files import (
    document_data,
    to_markdown,
    whole_document,
    write_report,
)
from sopilot_lab.experiments.report.formats import filled_tables
from sopilot_lab.experiments.report.mechanism import read_mechanism
from sopilot_lab.experiments.report.runs import load_runs


@click.command()
@click.argument("folders", nargs=-1, required=True, type=EITHER)
@report_options
@FILLED
@AS_JSON
def report(
    folders: tuple[Path, ...],
    output: Path | None,
    vary: tuple[str, ...],
    screen: str,
    mechanism: tuple[Path, ...],
    most_missing: float,
    filled: bool,
) -> Output:
    """Print every table of the study that these folders of runs can fill.

    Folders of one configuration are combined: domains, repetitions (`lab run --run 2`). Folders
    that differ in code, budgets or user are refused. An archive of `lab archive` is recomputed as
    it was packed, without SOPBench.
    """
    if len(folders) == 1 and is_archive(folders[0]):
        with opened_archive(folders[0]) as base:
            document = archived_document(base, mechanism=read_mechanism(mechanism))
    else:
        document = whole_document(
            load_runs(folders, vary=vary),
            progress,
            screen=screen,
            mechanism=read_mechanism(mechanism),
            most_missing=most_missing,
        )
    for each in document.alarms:
        progress(f"missing: {each}")
    return report_output(document, output, filled=filled, code=Exit.if_any(document.alarms))


def report_output(
    document: Document, output: Path | None, *, filled: bool, code: Exit = Exit.DONE
) -> Output:
    """Write the report to ``output`` and print a summary, or print the report itself."""
    if filled:
        document.tables = filled_tables(document.tables)
    files = [] if output is None else write_report(output, document)
    message = to_markdown(document) if output is None else f"{len(files)} files in {output}"
    return Output(document_data(document) | {"written": files}, [Lines(message)], code)
