"""``sopilot bench report`` and ``sopilot bench archive``."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.doors.cli.output import json_option, print_json, progress, say
from sopilot.lab.bench import shared_upstream
from sopilot.lab.bench.archive import build_archive
from sopilot.lab.bench.report import MOST_MISSING, load_runs, read_mechanism
from sopilot.lab.bench.report.files import report_files, whole_document, write_report
from sopilot.lab.bench.report.runs import run_folders
from sopilot.lab.bench.screen import SCREENS

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
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
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
    Folders of another harness are refused, with what differs.
    """
    document = whole_document(
        load_runs(folders, vary=vary),
        progress,
        screen=screen,
        mechanism=read_mechanism(mechanism),
        most_missing=most_missing,
    )
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
        answer = {"notes": document.notes, "alarms": document.alarms, "tables": tables}
        print_json(answer | {"written": written})
    elif output is None:
        say(files["report.md"])
    else:
        say(f"{len(files)} files in {output}")
    for each in document.alarms:
        progress(f"missing: {each}")
    if document.alarms:
        raise SystemExit(1)


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
