"""A report as Markdown, and its tables as CSV."""

from __future__ import annotations

import csv
import io

from sopilot.lab.bench.report._document import Document
from sopilot.lab.bench.report._table import Table


def to_markdown(document: Document) -> str:
    lines = [f"# {document.title}", ""]
    lines += [f"- {note}" for note in document.notes]
    for table in document.tables:
        lines += ["", f"## {table.title}", ""]
        lines.append(_row(table.header))
        lines.append(_row(["---"] * len(table.header)))
        lines += [_row(row) for row in table.rows]
        if table.method:
            lines += ["", f"*{table.method}.*"]
        if table.missing:
            lines.append("")
            lines += [f"- [{number}] {why}" for number, why in enumerate(table.missing, 1)]
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """An empty cell holds its reason, so that the file stands alone."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.header)
    for row in table.rows:
        writer.writerow([_with_reason(table, cell) for cell in row])
    return stream.getvalue()


def _with_reason(table: Table, cell: str) -> str:
    for number, why in enumerate(table.missing, 1):
        if cell == f"– [{number}]":
            return f"missing: {why}"
    return cell


def _row(cells: object) -> str:
    assert isinstance(cells, list | tuple)
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
