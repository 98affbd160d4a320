"""A report as one HTML page that loads nothing."""

from __future__ import annotations

from html import escape

from sopilot.lab.bench.report.document import Document
from sopilot.lab.bench.report.table import Table

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 70rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: .28rem .6rem; border-bottom: 1px solid #ddd; text-align: left;
         vertical-align: top; }
th { border-bottom: 2px solid #888; }
td.figure { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.method, .missing { color: #555; font-size: 13px; }
svg { display: block; margin: 1.4rem 0; max-width: 100%; height: auto; }
"""


def to_html(document: Document) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in document.notes)
    plots = "\n".join(document.plots)
    tables = "\n".join(_table(table) for table in document.tables)
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(document.title)}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}</style></head><body>\n"
        f"<h1>{escape(document.title)}</h1>\n<ul>{notes}</ul>\n"
        f"<h2>Plots</h2>\n{plots}\n{tables}\n</body></html>\n"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    rows = "".join(
        "<tr>" + "".join(_cell(str(cell)) for cell in row) + "</tr>\n" for row in table.rows
    )
    text = f"<h2>{escape(table.title)}</h2>\n"
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    text += f'<div class="wide"><table>{body}</table></div>'
    if table.method:
        text += f'<p class="method">{escape(table.method)}.</p>'
    if table.missing:
        items = "".join(f"<li>{escape(why)}</li>" for why in table.missing)
        text += f'<ol class="missing">{items}</ol>'
    return text


def _cell(text: str) -> str:
    is_figure = bool(text) and (text[0].isdigit() or text[0] in "–.-")
    return f'<td class="figure">{escape(text)}</td>' if is_figure else f"<td>{escape(text)}</td>"
