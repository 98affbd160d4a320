"""The study's tables from folders of runs, as Markdown, HTML with plots, and CSV."""

from sopilot.lab.bench.report._document import Document, build_document, to_html
from sopilot.lab.bench.report._markdown import to_csv, to_markdown
from sopilot.lab.bench.report._mechanism import Mechanism, read_mechanism
from sopilot.lab.bench.report._missing import MOST_MISSING
from sopilot.lab.bench.report._table import Table
from sopilot.lab.bench.report.runs import RunSet, load_runs

__all__ = [
    "MOST_MISSING",
    "Document",
    "Mechanism",
    "RunSet",
    "Table",
    "build_document",
    "load_runs",
    "read_mechanism",
    "to_csv",
    "to_html",
    "to_markdown",
]
