"""``sopilot bench report`` and ``sopilot bench archive``."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.doors.cli.output import json_option, print_json, progress, say
from sopilot.lab.bench import Upstream, shared_upstream, task_references
from sopilot.lab.bench.archive import build_archive
from sopilot.lab.bench.reach import Reach
from sopilot.lab.bench.reach_survey import reach_cache, survey
from sopilot.lab.bench.report import (
    Document,
    build_document,
    load_runs,
    to_csv,
    to_html,
    to_markdown,
)
from sopilot.lab.bench.report.runs import RunSet, run_folders
from sopilot.lab.bench.run_folder import write_whole
from sopilot.lab.bench.sopbench_process import ToolList
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake

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
    document = _document(load_runs(folders))
    files = _files(document)
    if output is not None:
        _write(output, files)
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
    files = _files(_document(load_runs(folders)))
    names = build_archive(
        run_folders(folders), output, analysis=files, upstream=upstream, forbidden=forbid
    )
    if as_json:
        print_json({"archive": output.name, "files": names})
    else:
        say(f"{len(names)} files in {output}")


def _document(runs: RunSet) -> Document:
    upstream = _upstream()
    reach: dict[str, dict[str, Reach]] = {}
    if upstream is not None:
        progress("looking up what is reachable …")
        for tools in sorted({c.tools for c in runs.configurations}):
            listed: ToolList = "full-state" if tools == "full-state" else "official"
            tasks = {
                task
                for series in runs.series
                if series.tools == tools
                for records in series.arms.values()
                for task in records
            }
            references = [task_references(each, upstream=upstream)[0] for each in sorted(tasks)]
            reach[tools] = survey(references, listed, upstream, cache=reach_cache())
    return build_document(runs, upstream=upstream, reach=reach)


def _upstream() -> Upstream | None:
    try:
        return shared_upstream()
    except UserMistake:  # tables that need the checkout say that there is none
        return None


def _files(document: Document) -> dict[str, str]:
    files = {"report.md": to_markdown(document), "report.html": to_html(document)}
    return files | {f"csv/{table.name}.csv": to_csv(table) for table in document.tables}


def _write(output: Path, files: dict[str, str]) -> None:
    try:
        for name, text in files.items():
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(output / name, text)
    except OSError as error:
        raise UserMistake(
            [
                Diagnostic(
                    "cannot-write",
                    f"the report cannot be written there: {error.strerror}",
                    Place(str(output)),
                    "name a folder you may write to",
                )
            ]
        ) from error
