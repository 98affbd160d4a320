"""Findings of `sopilot check` in one file, each with place, cause and cure: mistakes, and warnings
of gaps that policies often leave."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from sopilot.compiler.action_facts import secret_names
from sopilot.compiler.functions import left_out, optional_parameters
from sopilot.compiler.pipeline import Compiled, compile_handbook
from sopilot.compiler.prerequisites import Unopened
from sopilot.compiler.recipes import Unprovable, judged_by_model, shared_state, unprovable
from sopilot.files.text import is_program_text, read_text
from sopilot.handbook.checks import obligations
from sopilot.handbook.expressions import free_names
from sopilot.handbook.grammar import NOW
from sopilot.handbook.model import Action, Handbook, Procedure
from sopilot.handbook.reader import read_handbook
from sopilot.handbook.requirements import Constant, Name, Term, leaves
from sopilot.handbook.yaml import locate_input, locate_predicate, locate_requirement
from sopilot.messages.diagnostic import Diagnostic, Place, Severity
from sopilot.messages.errors import UserMistake
from sopilot.program.codec import program_from_yaml
from sopilot.runner.explain import show_leaf
from sopilot.runner.sources import SCENARIOS
from sopilot.tasks.examples.example import bundled_names, handbook_text
from sopilot.tasks.folders import PROGRAM, is_workflow_folder
from sopilot.tasks.scenarios import read_scenarios
from sopilot.values.schema import READ


def compiled_warnings(
    procedure: str, compiled: Compiled, actions: Mapping[str, Action], *, text: str, source: str
) -> list[Diagnostic]:
    """``text`` is the handbook's, so that a place has a line."""

    def at(predicate: str = "") -> Place:
        return locate_requirement(text, source, procedure, predicate)

    why = compiled.explanation
    results = [
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
    results += [_unopened(item, at(item.check.predicate)) for item in why.unopened]
    results += [
        Diagnostic(
            "missing-recipe",
            f"`{name}` cannot be verified with the actions that are offered",
            at(name),
            "offer every action of one of its recipes, or write `verify: arguments`",
        )
        for name in compiled.missing_recipes
    ]
    results += [
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
    results += [
        Diagnostic(
            "model-judged",
            f"`{procedure}` is guarded, and may rest on a model's word for `{name}`",
            at(name),
            severity=Severity.NOTE,
        )
        for name in judged_by_model(compiled.program)
    ]
    results += [
        Diagnostic(
            "shared-state",
            f"`{procedure}` is guarded, and may rest on `{name}` from an earlier connection",
            at(),
            f"drop `state: shared` of `{name}` if its server keeps a state for each connection",
            Severity.NOTE,
        )
        for name in shared_state(compiled.program)
    ]
    results += [
        _unprovable(procedure, item, at(item.predicate)) for item in unprovable(compiled.program)
    ]
    return results


def _unprovable(procedure: str, item: Unprovable, place: Place) -> Diagnostic:
    if item.verifier:
        why = (
            f"what proves `{item.predicate}` is never fresh: "
            f"`{item.verifier}` changes what it reads"
        )
        help = f"say what `{item.verifier}` changes and reads (`changes`, `reads`)"
    else:
        why = f"nobody but a model can judge `{item.predicate}`"
        help = "give it a `verdict`, or write `judged_by: model` if a model's word is enough"
    message = f"`{procedure}` is guarded, and {why}; where that is needed, a person must decide"
    return Diagnostic("unprovable", message, place, help, Severity.WARNING)


def _unopened(unopened: Unopened, place: Place) -> Diagnostic:
    gate = show_leaf(unopened.gate)
    needs = f"`{show_leaf(unopened.check)}` calls `{unopened.action}`, which requires `{gate}`"
    if unopened.later:
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


_LIKE_A_SECRET = re.compile(
    r"passw(or)?d|pass_?(code|phrase|key)|secret|(^|_)pin$|(api|private|access)_?key|(^|_)(cvv|cvc)$"
)


def policy_warnings(handbook: Handbook, *, text: str, source: str) -> list[Diagnostic]:
    diagnostics: list[Diagnostic] = []
    for name, procedure in handbook.procedures.items():
        action = handbook.actions[procedure.action]
        reply = (action.confirm, procedure.confirm, action.approval)
        if action.irreversible and reply == (None, None, None):
            diagnostics.append(
                Diagnostic(
                    "unconfirmed",
                    f"`{action.name}` cannot be undone, and `{name}` asks nobody before it",
                    locate_requirement(text, source, name, ""),
                    "write `confirm:` and what the user is told, or `confirm: false`",
                    Severity.WARNING,
                )
            )
    diagnostics += [
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
    return [
        *diagnostics,
        *_hidden_inputs(handbook, text, source),
        *_readers_as_goals(handbook, text, source),
        *_gates_left_open(handbook, text, source),
    ]


def _hidden_inputs(handbook: Handbook, text: str, source: str) -> Iterator[Diagnostic]:
    """Inputs of guarded actions that are masked because of a secret elsewhere."""
    hidden = set(secret_names(handbook))
    for name in dict.fromkeys(procedure.action for procedure in handbook.procedures.values()):
        action = handbook.actions[name]
        asks = any(
            procedure.confirm
            for procedure in handbook.procedures.values()
            if procedure.action == name
        )
        for item in action.inputs if action.is_guarded or asks else ():
            if item.secret or item.name not in hidden or _LIKE_A_SECRET.search(item.name.lower()):
                continue
            yield Diagnostic(
                "hidden-input",
                f"`{item.name}` of `{name}` is hidden from the person who approves or confirms it, "
                "because a value that goes by this name is `secret` elsewhere",
                locate_input(text, source, name, item.name),
                "drop `secret` there, give it another name, or write `secret: true` here as well",
                Severity.WARNING,
            )


def _readers_as_goals(handbook: Handbook, text: str, source: str) -> Iterator[Diagnostic]:
    for name, procedure in handbook.procedures.items():
        action = handbook.actions[procedure.action]
        verified = [
            predicate.name
            for predicate in handbook.predicates.values()
            if any(call.action == action.name for recipe in predicate.recipes for call in recipe)
        ]
        if verified and not action.read_only and action.changes is None:
            yield Diagnostic(
                "reader-is-goal",
                f"`{action.name}` verifies `{verified[0]}` and is what `{name}` is for, so every "
                "call of it counts as a change: no answer is used twice",
                locate_requirement(text, source, name, ""),
                f"write `read_only: true` on `{action.name}`, or what it `changes`",
                Severity.WARNING,
            )


_OPPOSITES = {
    "login": ("logout", "logoff"), "log": ("logout",), "signin": ("signout",),
    "sign": ("signout",), "in": ("out", "off"), "authenticate": ("logout", "deauthenticate"),
    "identify": ("logout",), "open": ("close", "shut"), "unlock": ("lock",),
    "start": ("stop", "end"), "begin": ("end",), "enable": ("disable",),
    "activate": ("deactivate",), "join": ("leave",),
    "connect": ("disconnect",), "grant": ("revoke",), "register": ("deregister", "unregister"),
    "enter": ("leave", "exit"), "acquire": ("release",), "reserve": ("release",),
    "lend": ("return",), "subscribe": ("unsubscribe",),
}  # fmt: skip
"""Words of an action that opens a gate, and of one that shuts it."""


def _gates_left_open(handbook: Handbook, text: str, source: str) -> Iterator[Diagnostic]:
    for gate in handbook.predicates.values():
        if gate.established_by is None or gate.closed_by is not None:
            continue
        words = gate.established_by.action.split("_")
        ends = {
            name
            for place, word in enumerate(words)
            for other in _OPPOSITES.get(word, ())
            for name in ("_".join([*words[:place], other, *words[place + 1 :]]), other)
        }
        for name in sorted(ends & handbook.actions.keys() - {gate.established_by.action}):
            yield Diagnostic(
                "gate-left-open",
                f"`{gate.name}` stays open after `{name}`, which seems to end it",
                locate_predicate(text, source, gate.name),
                f"write `closed_by: {name}(…)` if it does",
                Severity.NOTE,
            )


def unread_keywords(handbook: Handbook, *, text: str, source: str) -> list[Diagnostic]:
    """Schema keywords of guarded actions' inputs that sopilot doesn't enforce."""
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
            for item in value.values():
                yield from _unread(item) if isinstance(item, Mapping) else ()


_ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "deprecated", "$comment", "$schema", "$id")
)
"""Keywords that forbid nothing."""


def never_proven(handbook: Handbook, *, text: str, source: str) -> list[Diagnostic]:
    """Requirements of guarded actions that a missing or moving value makes unprovable."""
    diagnostics: list[Diagnostic] = []
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
        messages = [
            *_nulls(handbook, needed),
            *_left_out(handbook, action, loose, needed),
            *_moving(procedure),
        ]
        for predicate, why, cure in dict.fromkeys(messages):
            message = f"`{procedure.name}` is guarded, and {why}; then a person must decide"
            place = locate_requirement(text, source, procedure.name, predicate)
            diagnostics.append(Diagnostic("unprovable", message, place, cure, Severity.WARNING))
    return diagnostics


_Problem = tuple[str, str, str]
"""A predicate, why it cannot be proven, and the cure."""

_Needed = Iterable[tuple[str, str, Term]]
"""A predicate, a parameter of it that must have a value, and what it is given."""


def _nulls(handbook: Handbook, needed: _Needed) -> Iterator[_Problem]:
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
) -> Iterator[_Problem]:
    """Values that the guarded call may leave out."""
    for predicate, parameter, term in needed:
        entry = handbook.predicates[predicate]
        if not isinstance(term, Name) or term.name not in loose:
            continue
        if parameter in entry.optional or entry.computes == parameter:
            continue
        what = "a computed argument" if entry.computes else f"`{predicate}`"
        item = loose[term.name]
        why = f"{what} needs `{term.name}`, which a call of `{action.name}` may leave out"
        cure = f"make `{item}` of `{action.name}` required, or say what holds without it "
        yield ("" if entry.made else predicate), why, cure + f"(`{parameter} == null`)"


_STEADY = re.compile(r"\b(?:round|day|year|years_between)\s*\(")
_TEXTS = re.compile(r"'[^']*'|\"[^\"]*\"")
_CONDITION = re.compile(r"[^?:]*\?")
_COMPARED = re.compile(r"[<>=!]=|[<>]|\bin\b")


def _moving(procedure: Procedure) -> Iterator[_Problem]:
    """Arguments computed from the time: a second later they differ."""
    for item in procedure.computed:
        if NOW not in free_names(item.value) or NOW in item.uses:
            continue
        rest = _CONDITION.sub("", _without_steady(_TEXTS.sub("''", item.value)))
        if re.search(rf"(?<![.\w]){NOW}\b", rest) and not _COMPARED.search(rest):
            why = (
                f"`{item.name}` is computed from `now`: it is another value before the call is made"
            )
            yield "", why, "count in whole units of time, as in `round(days_between(x, now), 0)`"


def _without_steady(text: str) -> str:
    """The text without calls of `round`, `day`, `year` and `years_between`, which are steady."""
    while match := _STEADY.search(text):
        end, depth = match.end(), 1
        while end < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[: match.start()] + "0" + text[end:]
    return text


def recorded_only(handbook: Handbook, source: str) -> list[Diagnostic]:
    """Actions of procedures that aren't guarded."""
    loose = [
        f"`{name}`"
        for name in dict.fromkeys(procedure.action for procedure in handbook.procedures.values())
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


_NAMING = frozenset({"handbook", "actions", "predicates", "procedures", "sopilot_program"})
"""A handbook or a program has one of these."""


def check_text(text: str, source: str) -> list[Diagnostic]:
    """Every finding in one handbook, program or scenario file."""
    try:
        if source.endswith(SCENARIOS):
            return _check_scenarios(text, source)
        if is_program_text(text):
            program_from_yaml(text, source)
            return []
        handbook, findings = read_handbook(text, source)
        if handbook is not None and not any(f.severity is Severity.ERROR for f in findings):
            findings = [*findings, *policy_warnings(handbook, text=text, source=source)]
            findings = [*findings, *unread_keywords(handbook, text=text, source=source)]
            findings = [*findings, *never_proven(handbook, text=text, source=source)]
            for name, compiled in compile_handbook(handbook).items():
                result = compiled_warnings(
                    name, compiled, handbook.actions, text=text, source=source
                )
                findings = [*findings, *result]
            findings = [*findings, *recorded_only(handbook, source)]
        return findings
    except UserMistake as mistake:
        return list(mistake.diagnostics)


def _check_scenarios(text: str, source: str) -> list[Diagnostic]:
    """Check against the handbook beside it, whose own mistakes are reported under its name."""
    path = Path(source.removesuffix(SCENARIOS) + ".yaml")
    handbook, _ = read_handbook(read_text(path), str(path))
    return read_scenarios(text, handbook, source)[1] if handbook is not None else []


def _is_meant(source: str, text: str) -> bool:
    """Whether a YAML file of a folder is ours, or can't be read at all."""
    if source.endswith(SCENARIOS):
        return True
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return True
    return isinstance(value, dict) and not _NAMING.isdisjoint(map(str, value))


def texts_to_check(paths: Sequence[str]) -> list[tuple[str, str]]:
    """Name and text of every file behind these files, folders and bundled names."""
    result: list[tuple[str, str]] = []
    for name in paths:
        path = Path(name)
        if name in bundled_names():
            result.append((name, handbook_text(name)))
        elif is_workflow_folder(name):
            # The other YAML of such a folder is its tools' own business.
            result.append((str(path / PROGRAM), read_text(path / PROGRAM)))
        elif os.path.isdir(path):
            files = sorted([*path.rglob("*.yaml"), *path.rglob("*.yml")])
            if not files:
                raise UserMistake(f"{name}: no .yaml file in this folder")
            texts = [(str(file), read_text(file)) for file in files]
            meant = [text for text in texts if _is_meant(*text)]
            if not meant:
                raise UserMistake(f"{name}: no handbook, program or scenario in this folder")
            result.extend(meant)
        else:
            result.append((name, read_text(path)))
    return result
