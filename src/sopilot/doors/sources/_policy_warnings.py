"""What a policy usually says and a handbook leaves out, each with place, cause and cure."""

from __future__ import annotations

from sopilot.language.diagnostics import Diagnostic, Severity
from sopilot.language.handbook import Handbook
from sopilot.language.handbook.locating import locate_requirement


def policy_warnings(handbook: Handbook, *, text: str, source: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for name, procedure in handbook.procedures.items():
        action = handbook.actions[procedure.action]
        said = (action.confirm, procedure.confirm, action.approval)
        if action.irreversible and said == (None, None, None):
            found.append(
                Diagnostic(
                    "unconfirmed",
                    f"`{action.name}` cannot be undone, and `{name}` asks nobody before it",
                    locate_requirement(text, source, name, ""),
                    "write `confirm:` and what the user is told, or `confirm: false`",
                    Severity.WARNING,
                )
            )
    return found
