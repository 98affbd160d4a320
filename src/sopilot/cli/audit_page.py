from __future__ import annotations

from collections.abc import Sequence

from sopilot.runner.audit_inputs import Audited, clean_together
from sopilot.web.pages import render_audit


def page_of(audited: Sequence[Audited]) -> str:
    """Of the first that has findings, else of the first that wasn't judged."""
    together = clean_together(item.report.clean for item in audited)
    worst = next(item for item in audited if item.report.clean is together)
    return render_audit(worst.report, worst.rows, title=worst.title)
