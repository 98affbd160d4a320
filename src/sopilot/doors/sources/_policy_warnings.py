"""What a policy usually says and a handbook leaves out, each with place, cause and cure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sopilot.language.diagnostics import Diagnostic, Place, Severity
from sopilot.language.handbook import (
    Action,
    Constant,
    Handbook,
    Leaf,
    Name,
    Procedure,
    free_names,
    leaves,
)
from sopilot.language.handbook.grammar import NOW
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


def never_proven(handbook: Handbook, *, text: str, source: str) -> list[Diagnostic]:
    """Requirements of guarded actions about a value that is none, or is none long enough."""
    found: list[Diagnostic] = []
    for procedure in handbook.procedures.values():
        action = handbook.actions[procedure.action]
        if not (action.is_guarded or procedure.confirm):
            continue
        required = [*leaves(procedure.requires), *leaves(action.requires)]
        told = [
            *_nulls(handbook, required),
            *_left_out(procedure, action, required),
            *_moving(procedure),
        ]
        for predicate, why, cure in dict.fromkeys(told):
            message = f"`{procedure.name}` is guarded, and {why}; then a person must decide"
            place = locate_requirement(text, source, procedure.name, predicate)
            found.append(Diagnostic("unprovable", message, place, cure, Severity.WARNING))
    return found


_Told = tuple[str, str, str]
"""A predicate, why it cannot be proven, and the cure."""


def _nulls(handbook: Handbook, required: Iterable[Leaf]) -> Iterator[_Told]:
    for leaf in required:
        for name, term in leaf.arguments:
            if term == Constant(None):
                why = f"`{leaf.predicate}` is required of `null`, which is no value for `{name}`"
                cure = f"write a predicate without `{name}`, whose recipe leaves that input out"
                yield leaf.predicate, why, cure
        recipes = handbook.predicates[leaf.predicate].recipes
        for call in (call for recipe in recipes for call in recipe):
            for name, origin in call.arguments:
                if origin == Constant(None):
                    why = f"`{leaf.predicate}` calls `{call.action}` with `null` for `{name}`"
                    yield leaf.predicate, why, f"leave `{name}` out of the call"


def _left_out(procedure: Procedure, action: Action, required: Iterable[Leaf]) -> Iterator[_Told]:
    """Names that need not have a value at the act."""
    bound = {**{item.name: Name(item.name) for item in action.inputs}, **dict(procedure.arguments)}
    given = {item.name for item in procedure.inputs if item.required}
    given |= {one.name for one in procedure.computed}
    optional = {
        term.name: item.name
        for item in action.inputs
        if not item.required and isinstance(term := bound[item.name], Name)
    }
    needed = [(leaf.predicate, term) for leaf in required for _, term in leaf.arguments]
    needed += [("", Name(name)) for one in procedure.computed for name in one.uses]
    for predicate, term in needed:
        if isinstance(term, Name) and term.name in optional.keys() - given:
            what = f"`{predicate}`" if predicate else "a computed argument"
            item = optional[term.name]
            why = f"{what} needs `{term.name}`, which a call of `{action.name}` may leave out"
            yield predicate, why, f"make `{item}` of `{action.name}` required"


_STEADY = re.compile(r"\b(?:round|day)\s*\(")
_TEXTS = re.compile(r"'[^']*'|\"[^\"]*\"")
_CONDITION = re.compile(r"[^?:]*\?")
_COMPARED = re.compile(r"[<>=!]=|[<>]|\bin\b")


def _moving(procedure: Procedure) -> Iterator[_Told]:
    """Arguments that are computed from the time itself: a second later they are others."""
    for one in procedure.computed:
        if NOW not in free_names(one.value) or NOW in one.uses:
            continue
        rest = _CONDITION.sub("", _without_steady(_TEXTS.sub("''", one.value)))
        if re.search(rf"(?<![.\w]){NOW}\b", rest) and not _COMPARED.search(rest):
            why = (
                f"`{one.name}` is computed from `now`: it is another value before the call is made"
            )
            yield "", why, "count in whole units of time, as in `round(days_between(x, now), 0)`"


def _without_steady(text: str) -> str:
    """Without what `round` and `day` make of a time."""
    while match := _STEADY.search(text):
        end, depth = match.end(), 1
        while end < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[: match.start()] + "0" + text[end:]
    return text


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
