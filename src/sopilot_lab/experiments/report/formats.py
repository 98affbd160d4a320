"""A table of a report, and its Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sopilot_lab.statistics.intervals import Interval, Undefined


@dataclass(slots=True)
class Table:
    """``name`` is the CSV's file name; ``method`` says how figures came about; ``missing``
    why cells are empty."""

    name: str
    title: str
    header: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    method: str = ""
    missing: list[str] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        self.rows.append([str(cell) for cell in cells])

    def lacks(self, why: str) -> str:
        """An empty cell, its reason kept once."""
        if why not in self.missing:
            self.missing.append(why)
        return f"– [{self.missing.index(why) + 1}]"

    def add_lacking(self, why: str, *named: str) -> None:
        """A row whose cells behind ``named`` are all empty for one reason."""
        self.add(*named, *[self.lacks(why)] * (len(self.header) - len(named)))

    def add_nothing(self, why: str) -> None:
        """The only row of a table that nothing is known for."""
        self.add(self.lacks(why), *["–"] * (len(self.header) - 1))

    def as_dicts(self) -> list[dict[str, str]]:
        """The rows by column; of two columns with one name the last."""
        return [dict(zip(self.header, row, strict=True)) for row in self.rows]

    def filled(self) -> Table:
        """The rows that hold a figure, with the reasons that they still name."""
        shown = Table(self.name, self.title, self.header, method=self.method)
        for row in self.rows:
            if not _is_empty(row):
                reasons = [(cell, self.reason(cell)) for cell in row]
                shown.add(*(shown.lacks(why) if why else cell for cell, why in reasons))
        return shown

    def reason(self, cell: str) -> str | None:
        """Why the cell is empty, where it refers to a reason."""
        number = _REFERENCE.fullmatch(cell)
        return self.missing[int(number[1]) - 1] if number else None


_REFERENCE = re.compile(r"– \[(\d+)\]")


def _is_empty(row: Sequence[str]) -> bool:
    """Whether a row has an empty cell and no figure behind its name but a count of none."""
    if not any(_REFERENCE.fullmatch(cell) for cell in row):
        return False
    rest = [cell for cell in row[1:] if cell != "0" and not cell.startswith("–")]
    return not any(letter.isdigit() for cell in rest for letter in cell)


def filled_tables(tables: Sequence[Table]) -> list[Table]:
    """The tables in which there is a figure, without their empty rows."""
    return [shown for shown in (table.filled() for table in tables) if shown.rows]


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "–"


def points(share: float) -> str:
    """A difference of shares in percentage points."""
    return f"{100 * share:+.1f}"


def p_text(p: float) -> str:
    """A p-value as the study prints it; small values keep their exponent."""
    if p < 0.0001:
        return f"{p:.1e}"
    return f"{p:.4f}".lstrip("0") if p < 1 else "1.000"


def figure(value: float | Undefined | None, form: str = ".2f") -> str:
    if value is None:
        return "–"
    return f"– ({value.reason})" if isinstance(value, Undefined) else format(value, form)


def percent_of(share: float | Undefined | None) -> str:
    return figure(100 * share if isinstance(share, float) else share, ".1f")


def interval_points(interval: Interval | Undefined) -> str:
    if isinstance(interval, Undefined):
        return f"– ({interval.reason})"
    return f"{points(interval.low)} to {points(interval.high)}"


def table_markdown(table: Table) -> list[str]:
    rows = (table.header, ["---"] * len(table.header), *table.rows)
    cells = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
    lines = [f"## {table.title}", "", *(f"| {row} |" for row in cells)]
    if table.method:
        lines += ["", f"*{table.method}.*"]
    if table.missing:
        lines += ["", *(f"- [{number}] {why}" for number, why in enumerate(table.missing, 1))]
    return lines


def to_csv(table: Table) -> str:
    """An empty cell holds its reason, so that the file stands alone."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.header)
    for row in table.rows:
        reasons = [(cell, table.reason(cell)) for cell in row]
        writer.writerow([cell if why is None else f"missing: {why}" for cell, why in reasons])
    return stream.getvalue()


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
