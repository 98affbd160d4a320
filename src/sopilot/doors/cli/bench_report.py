"""``sopilot bench report`` and ``sopilot bench archive``."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.doors.cli.output import json_option, print_json, progress, say
from sopilot.lab.bench import shared_upstream
from sopilot.lab.bench.archive import build_archive
from sopilot.lab.bench.report import load_runs
from sopilot.lab.bench.report.files import report_files, whole_document, write_report
from sopilot.lab.bench.report.runs import run_folders

_folders = click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)


@click.command()
@_folders
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write report.md, report.html and csv/*.csv into this folder.",
)
@json_option
def report(folders: tuple[Path, ...], output: Path | None, as_json: bool) -> None:
    """Every table of the study that these folders of runs can fill."""
    document = whole_document(load_runs(folders), progress)
    files = report_files(document)
    if output is not None:
        write_report(output, files)
    if as_json:
        tables = {
            table.name: {
                "title": table.title,
                "header": list(table.header),
                "rows": [list(row) for row in table.rows],
                "method": table.method,
                "missing": table.missing,
            }
            for table in document.tables
        }
        written = sorted(files) if output is not None else []
        print_json({"notes": document.notes, "tables": tables, "written": written})
    elif output is None:
        say(files["report.md"])
    else:
        say(f"{len(files)} files in {output}")


@click.command()
@_folders
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="A ZIP."
)
@click.option("--forbid", multiple=True, help="A word that must not be in it, such as a name.")
@json_option
def archive(
    folders: tuple[Path, ...], output: Path, forbid: tuple[str, ...], as_json: bool
) -> None:
    """Pack programs, results, configurations and tables with a SHA-256 manifest.

    Refuses credentials, absolute paths, names of people, hidden files and text of SOPBench.
    Needs the checkout: without it nobody can tell what is SOPBench's.
    """
    upstream = shared_upstream()
    files = report_files(whole_document(load_runs(folders), progress))
    names = build_archive(
        run_folders(folders), output, analysis=files, upstream=upstream, forbidden=forbid
    )
    if as_json:
        print_json({"archive": output.name, "files": names})
    else:
        say(f"{len(names)} files in {output}")
