"""What a policy usually says and a handbook leaves out, each with place, cause and cure."""

from __future__ import annotations

import re

from sopilot.language.diagnostics import Diagnostic, Place, Severity
from sopilot.language.handbook import Handbook
from sopilot.language.handbook.locating import locate_input, locate_requirement

_LIKE_A_SECRET = re.compile(
    r"passw(or)?d|pass_?(code|phrase|key)|secret|(^|_)pin$|(api|private|access)_?key|(^|_)(cvv|cvc)$"
)


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
    found += [
        Diagnostic(
            "looks-secret",
            f"`{item.name}` of `{action.name}` looks like a secret, and stands in clear in traces, "
            "exports and pages",
            locate_input(text, source, action.name, item.name),
            "write `secret: true`",
            Severity.WARNING,
        )
        for action in handbook.actions.values()
        for item in action.inputs
        if not item.secret and _LIKE_A_SECRET.search(item.name.lower())
    ]
    return found


def recorded_only(handbook: Handbook, source: str) -> list[Diagnostic]:
    """Every action that a procedure is for and that nothing holds."""
    loose = [
        f"`{name}`"
        for name in dict.fromkeys(one.action for one in handbook.procedures.values())
        if not (action := handbook.actions[name]).irreversible and action.approval is None
    ]
    if not loose:
        return []
    return [
        Diagnostic(
            "recorded-only",
            f"nothing holds {', '.join(loose)}: a call is made and recorded, checked or not",
            Place(source),
            "write `irreversible: true` or `approval:` for what must not happen unproven",
            Severity.NOTE,
        )
    ]
