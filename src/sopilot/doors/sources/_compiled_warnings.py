"""What only compiling a handbook shows to be doubtful, each with place, cause and cure."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.doors.sources.explaining import show_leaf
from sopilot.language.compiler import Compiled, Unopened, Unprovable, judged_by_model, unprovable
from sopilot.language.diagnostics import Diagnostic, Place, Severity
from sopilot.language.handbook import Action
from sopilot.language.handbook.locating import locate_requirement


def compiled_warnings(
    procedure: str, compiled: Compiled, actions: Mapping[str, Action], *, text: str, source: str
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
            f"`{name}` cannot be verified with the actions that are offered",
            at(name),
            "offer every action of one of its recipes, or write `verify: arguments`",
        )
        for name in compiled.missing_recipes
    ]
    found += [
        Diagnostic(
            "wide-verifier",
            f"`{name}` is verified by `{call.action}`, which reads everything",
            at(name),
            "name a verifier that reads only what is asked, beside it under `any`",
            Severity.NOTE,
        )
        for name, ranked in why.recipes.items()
        for call in ranked.chosen
        if call.action in actions and actions[call.action].full_state
    ]
    found += [
        Diagnostic(
            "model-judged",
            f"`{procedure}` is guarded, and may rest on a model's word for `{name}`",
            at(name),
            severity=Severity.NOTE,
        )
        for name in judged_by_model(compiled.program)
    ]
    found += [
        _unprovable(procedure, one, at(one.predicate)) for one in unprovable(compiled.program)
    ]
    return found


def _unprovable(procedure: str, one: Unprovable, place: Place) -> Diagnostic:
    if one.verifier:
        why = (
            f"what proves `{one.predicate}` is never fresh: `{one.verifier}` changes what it reads"
        )
        help = f"say what `{one.verifier}` changes and reads (`changes`, `reads`)"
    else:
        why = f"nobody but a model can judge `{one.predicate}`"
        help = "give it a `verdict`, or write `judged_by: model` if a model's word is enough"
    message = f"`{procedure}` is guarded, and {why}; where that is needed, a person must decide"
    return Diagnostic("unprovable", message, place, help, Severity.WARNING)


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
