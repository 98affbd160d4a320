"""What a policy usually says and a handbook leaves out, each with place, cause and cure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from sopilot.language.compiler import left_out, optional_parameters
from sopilot.language.diagnostics import Diagnostic, Place, Severity
from sopilot.language.handbook import (
    Action,
    Constant,
    Handbook,
    Name,
    Procedure,
    Term,
    free_names,
    leaves,
    obligations,
)
from sopilot.language.handbook.grammar import NOW
from sopilot.language.handbook.locating import locate_input, locate_requirement
from sopilot.runtime.vm.schema_check import READ

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


def unread_keywords(handbook: Handbook, *, text: str, source: str) -> list[Diagnostic]:
    """What the schema of a guarded action's input says and nobody holds a call to."""
    return [
        Diagnostic(
            "unread-keyword",
            f"`{word}` in the schema of `{item.name}` is shown to the model, and `{action.name}` "
            "is carried out whether it holds or not",
            locate_input(text, source, action.name, item.name),
            "require it: a predicate with `verify: arguments` and a `verdict`",
            Severity.WARNING,
        )
        for action in handbook.actions.values()
        if action.is_guarded
        for item in action.inputs
        for word in dict.fromkeys(_unread(item.schema or {}))
    ]


def _unread(schema: Mapping[str, object]) -> Iterator[str]:
    for word, value in schema.items():
        if word not in READ and word not in _ANNOTATIONS:
            yield word
        elif word == "items" and isinstance(value, Mapping):
            yield from _unread(value)
        elif word == "properties" and isinstance(value, Mapping):
            for one in value.values():
                yield from _unread(one) if isinstance(one, Mapping) else ()


_ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "deprecated", "$comment", "$schema", "$id")
)
"""Keywords that forbid nothing."""


def never_proven(handbook: Handbook, *, text: str, source: str) -> list[Diagnostic]:
    """Requirements of guarded actions about a value that is none, or is none long enough."""
    found: list[Diagnostic] = []
    for procedure in handbook.procedures.values():
        action = handbook.actions[procedure.action]
        if not (action.is_guarded or procedure.confirm):
            continue
        required = leaves(obligations(handbook, procedure))
        loose = left_out(procedure, action)
        optional = optional_parameters(required, loose, handbook.predicates, handbook.actions)
        needed = [
            (leaf.predicate, parameter, term)
            for leaf in required
            for parameter, term in leaf.arguments
            if parameter not in optional.get(leaf.predicate, ())
        ]
        told = [
            *_nulls(handbook, needed),
            *_left_out(handbook, action, loose, needed),
            *_moving(procedure),
        ]
        for predicate, why, cure in dict.fromkeys(told):
            message = f"`{procedure.name}` is guarded, and {why}; then a person must decide"
            place = locate_requirement(text, source, procedure.name, predicate)
            found.append(Diagnostic("unprovable", message, place, cure, Severity.WARNING))
    return found


_Told = tuple[str, str, str]
"""A predicate, why it cannot be proven, and the cure."""


_Needed = Iterable[tuple[str, str, Term]]
"""A predicate, a parameter of it that must have a value, and what it is given."""


def _nulls(handbook: Handbook, needed: _Needed) -> Iterator[_Told]:
    for predicate, name, term in needed:
        if term == Constant(None):
            why = f"`{predicate}` is required of `null`, which is no value for `{name}`"
            cure = f"say in its verdict what that means (`{name} == null || …`), and give "
            yield predicate, why, cure + f"`{name}` to no input that is required"
    for predicate in dict.fromkeys(predicate for predicate, _, _ in needed):
        recipes = handbook.predicates[predicate].recipes
        for call in (call for recipe in recipes for call in recipe):
            if call.action not in handbook.actions:
                continue
            must = {item.name for item in handbook.actions[call.action].inputs if item.required}
            for name, origin in call.arguments:
                if origin == Constant(None) and name in must:
                    why = f"`{predicate}` calls `{call.action}` with `null` for `{name}`"
                    yield predicate, why, f"make `{name}` of `{call.action}` optional"


def _left_out(
    handbook: Handbook, action: Action, loose: Mapping[str, str], needed: _Needed
) -> Iterator[_Told]:
    """Names that need not have a value at the act."""
    for predicate, parameter, term in needed:
        one = handbook.predicates[predicate]
        if not isinstance(term, Name) or term.name not in loose:
            continue
        if parameter in one.optional or one.computes == parameter:
            continue
        what = "a computed argument" if one.computes else f"`{predicate}`"
        item = loose[term.name]
        why = f"{what} needs `{term.name}`, which a call of `{action.name}` may leave out"
        cure = f"make `{item}` of `{action.name}` required, or say what holds without it "
        yield ("" if one.made else predicate), why, cure + f"(`{parameter} == null`)"


_STEADY = re.compile(r"\b(?:round|day|year|years_between)\s*\(")
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
    """Without what `round`, `day`, `year` and `years_between` make of a time."""
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
