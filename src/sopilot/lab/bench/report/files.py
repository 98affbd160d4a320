"""The whole report, as the files it is kept in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sopilot.adapters.text_files import write_whole
from sopilot.lab.bench._reach import Reach
from sopilot.lab.bench.reach_survey import reach_cache, survey
from sopilot.lab.bench.reference import task_references
from sopilot.lab.bench.report._document import Document, build_document, to_html
from sopilot.lab.bench.report._markdown import to_csv, to_markdown
from sopilot.lab.bench.report.runs import RunSet
from sopilot.lab.bench.sopbench_process import ToolList, Upstream, shared_upstream
from sopilot.language.diagnostics import UserMistake


def whole_document(runs: RunSet, tell: Callable[[str], None]) -> Document:
    """With what can be reached, where a checkout is at hand to search in."""
    upstream = _upstream()
    reach: dict[str, dict[str, Reach]] = {}
    if upstream is not None:
        tell("looking up what is reachable …")
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


def report_files(document: Document) -> dict[str, str]:
    files = {"report.md": to_markdown(document), "report.html": to_html(document)}
    return files | {f"csv/{table.name}.csv": to_csv(table) for table in document.tables}


def write_report(output: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        write_whole(output / name, text, "name a folder you may write to", private=True)
