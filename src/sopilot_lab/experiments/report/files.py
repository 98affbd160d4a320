"""The whole report, as the files it is kept in."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sopilot.files.text import whole_text, write_whole
from sopilot.messages.errors import UserMistake
from sopilot.web.pages import Drawing
from sopilot_lab.experiments.report.document import Document, build_document, to_html
from sopilot_lab.experiments.report.formats import Table, table_markdown, to_csv, to_latex
from sopilot_lab.experiments.report.runs import RunSet
from sopilot_lab.sopbench.process import ToolList, Upstream, shared_upstream
from sopilot_lab.sopbench.reach import Reach, survey_tasks

FROM_CHECKOUT: Final = ("full-denominator", "official-configurations", "compiler-effort", "defects")
"""Tables that are read from the checkout, not counted from runs."""


def whole_document(
    runs: RunSet, tell: Callable[[str], None], *, archived: Path | None = None, **how: Any
) -> Document:
    """Build the document with the reachable tasks: searched for if there is a checkout, or as an
    archive recorded them when it was packed. ``how`` is for ``build_document``."""
    if archived is not None:
        return _archived_document(runs, archived, **how)
    upstream: Upstream | None = None
    with suppress(UserMistake):  # tables that need the checkout say that there is none
        upstream = shared_upstream()
    reach: dict[str, dict[str, Reach]] = {}
    if upstream is not None:
        tell("looking up what is reachable …")
        for tools in sorted({c.tools for c in runs.configurations}):
            listed: ToolList = "full-state" if tools == "full-state" else "official"
            tasks = [each.tasks() for each in runs.series if each.tools == tools]
            reach[tools] = survey_tasks(set().union(*tasks), listed, upstream)
    document = build_document(runs, upstream=upstream, reach=reach, **how)
    document.reach = reach
    return document


def _archived_document(runs: RunSet, archived: Path, **how: Any) -> Document:
    packed = read_packed(archived, "reach")
    reach = {
        tools: {task: Reach(**item) for task, item in tasks.items()}
        for tools, tasks in packed.items()
    }
    document = build_document(runs, upstream=None, reach=reach, **how)
    stated = read_packed(archived, "tables")
    document.tables = [
        Table(table.name, **stated[table.name])
        if table.name in FROM_CHECKOUT and table.name in stated
        else table
        for table in document.tables
    ]
    document.reach = reach
    return document


def read_packed(archived: Path, name: str) -> dict[str, Any]:
    """The data of `archive_analysis` in an archive; empty where it can't be read."""
    try:
        data = json.loads(whole_text(archived / "analysis" / f"{name}.json"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def document_data(document: Document) -> dict[str, Any]:
    """The report for scripts: notes, alarms, and the tables by name."""
    return {
        "notes": document.notes,
        "alarms": document.alarms,
        "tables": {
            table.name: {
                "title": table.title,
                "header": list(table.header),
                "rows": [list(row) for row in table.rows],
                "method": table.method,
                "missing": table.missing,
            }
            for table in document.tables
        },
    }


def archive_analysis(document: Document, how: Mapping[str, Any]) -> dict[str, str]:
    """The report's files with the data that an archive's reader needs to count them again."""
    reach = {
        tools: {task: item.as_json() for task, item in tasks.items()}
        for tools, tasks in document.reach.items()
    }
    data = {"tables": document_data(document)["tables"], "reach": reach, "how": dict(how)}
    texts = {f"{name}.json": json.dumps(each, indent=1) + "\n" for name, each in data.items()}
    return report_files(document) | texts


def to_markdown(document: Document) -> str:
    lines = [f"# {document.title}", ""]
    lines += [f"- {result}" for result in document.results]
    for table in document.tables:
        lines += ["", *table_markdown(table)]
    lines += ["", "## About these runs", "", *(f"- {note}" for note in document.notes)]
    return "\n".join(lines) + "\n"


def report_files(document: Document) -> dict[str, str]:
    files = {"report.md": to_markdown(document), "report.html": to_html(document)}
    files |= {f"figures/{file_name(each)}.svg": each.as_file() for each in document.plots}
    files |= {f"csv/{table.name}.csv": to_csv(table) for table in document.tables}
    return files | {f"tex/{table.name}.tex": to_latex(table) for table in document.tables}


def file_name(plot: Drawing) -> str:
    """The title in small letters, with hyphens for everything else."""
    return re.sub(r"[^a-z0-9]+", "-", plot.title.lower()).strip("-")


def write_report(output: Path, document: Document) -> list[str]:
    """The names of the files. PDFs are written where the extra `figures` is installed; an archive
    has none, for they hold the time of their making."""
    files = report_files(document)
    for name, text in files.items():
        write_whole(output / name, text, "name a folder you may write to", private=True)
    if importlib.util.find_spec("cairosvg") is None:
        return sorted(files)
    pdfs = {f"figures/{file_name(each)}.pdf": each.as_pdf() for each in document.plots}
    for name, made in pdfs.items():
        (output / name).write_bytes(made)
    return sorted([*files, *pdfs])
