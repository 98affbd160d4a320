"""What only compiling a handbook shows to be doubtful, each with place, cause and cure."""

from __future__ import annotations

from sopilot.doors.sources.explaining import show_leaf
from sopilot.language.compiler import Compiled, Unopened
from sopilot.language.diagnostics import Diagnostic, Place, Severity
from sopilot.language.handbook.locating import locate_requirement


def compiled_warnings(
    procedure: str, compiled: Compiled, *, text: str, source: str
) -> list[Diagnostic]:
    """``text`` is the handbook's, so that a place has a line."""

    def at(predicate: str = "") -> Place:
        return locate_requirement(text, source, procedure, predicate)

    why = compiled.explanation
    found = [
        Diagnostic(
            "unchecked-requirement",
            f"verifier `{action}` requires `{show_leaf(leaf)}`, which is not put in front "
            "and which this procedure does not check",
            at(),
            "add it to the procedure's `requires`",
            Severity.WARNING,
        )
        for action, leaf in why.unchecked
    ]
    found += [_unopened(one, at(one.check.predicate)) for one in why.unopened]
    found += [
        Diagnostic(
            "missing-recipe",
            f"no verifier of `{name}` is offered",
            at(name),
            "offer one of its actions, or write `verify: arguments`",
        )
        for name in compiled.missing_recipes
    ]
    return found


def _unopened(one: Unopened, place: Place) -> Diagnostic:
    gate = show_leaf(one.gate)
    needs = f"`{show_leaf(one.check)}` calls `{one.action}`, which requires `{gate}`"
    if one.later:
        return Diagnostic(
            "gate-too-late",
            f"{needs}, but that is opened only later",
            place,
            f"put `{gate}` in front of it",
            Severity.WARNING,
        )
    return Diagnostic(
        "gate-may-stay-shut",
        f"{needs}, but before it that stands only inside an `any` or `first`, "
        "which can hold without it",
        place,
        f"require `{gate}` by itself, in front of it",
        Severity.WARNING,
    )
