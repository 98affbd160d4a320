"""A report as Markdown, and its tables as CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from sopilot_lab.experiments.report.document import Document
from sopilot_lab.experiments.report.table import Table


def to_markdown(document: Document) -> str:
    lines = [f"# {document.title}", ""]
    lines += [f"- {result}" for result in document.results]
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
    lines += ["", "## About these runs", "", *(f"- {note}" for note in document.notes)]
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
    why = table.reason(cell)
    return cell if why is None else f"missing: {why}"


def to_latex(table: Table) -> str:
    """A table to `\\input` into a paper; needs booktabs. Empty cells are explained below it."""
    columns = "l" * len(table.header)
    notes = [f"{table.method}."] if table.method else []
    notes += [f"[{number}] {why}." for number, why in enumerate(table.missing, 1)]
    caption = " ".join([f"{table.title}.", *notes])
    lines = [
        "\\begin{table}[t]",
        "\\centering",
        "\\small",
        f"\\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
        "\\toprule",
        _latex_row(table.header),
        "\\midrule",
        *(_latex_row(row) for row in table.rows),
        "\\bottomrule",
        "\\end{tabular}",
        f"\\caption{{{_latex(caption)}}}",
        f"\\label{{tab:{table.name}}}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    # A bracket after `\\` would be read as its argument.
    shown = [_latex(cell) for cell in cells]
    return " & ".join(f"{{}}{cell}" if cell.startswith("[") else cell for cell in shown) + " \\\\"


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"$<$", ">": r"$>$", "−": "$-$", "≤": r"$\le$", "≥": r"$\ge$", "×": r"$\times$",
    "Δ": r"$\Delta$", "→": r"$\to$", "–": "--", "…": r"\dots{}",
}  # fmt: skip


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _row(cells: object) -> str:
    assert isinstance(cells, list | tuple)
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
