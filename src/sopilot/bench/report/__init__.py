"""The study's tables from folders of runs, as Markdown, HTML with plots, and CSV."""

from sopilot.bench.report.document import Document, build_document
from sopilot.bench.report.html_page import to_html
from sopilot.bench.report.markdown import to_csv, to_markdown
from sopilot.bench.report.runs import RunSet, load_runs
from sopilot.bench.report.table import Table

__all__ = [
    "Document",
    "RunSet",
    "Table",
    "build_document",
    "load_runs",
    "to_csv",
    "to_html",
    "to_markdown",
]
