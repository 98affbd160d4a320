"""One look for every page: templates, one style sheet, plots as SVG.

Owns how a page is laid out, that everything put into it is escaped, and the page of an
audit; other rooms hand their values to a template. A page is one file that loads nothing.
Jinja2 is imported when the first page is made. May import ``audit``.
"""

from sopilot.runtime.html_pages._audit_page import render_audit
from sopilot.runtime.html_pages._charts import (
    Mark,
    diverging_bars,
    dot_plot,
    grouped_bars,
    side_by_side,
)
from sopilot.runtime.html_pages._drawing import Drawing
from sopilot.runtime.html_pages._templates import render

__all__ = [
    "Drawing",
    "Mark",
    "diverging_bars",
    "dot_plot",
    "grouped_bars",
    "render",
    "render_audit",
    "side_by_side",
]
