"""Findings of `sopilot check` in one file, each with place, cause and cure: mistakes, and warnings
of gaps that policies often leave."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import yaml

from sopilot.compiler.action_facts import secret_names
from sopilot.compiler.functions import left_out, optional_parameters
from sopilot.compiler.pipeline import Compiled, compile_handbook
from sopilot.compiler.prerequisites import Unopened
from sopilot.compiler.recipes import judged_by_model, shared_state, unprovable
from sopilot.files.text import is_program_text, read_text
from sopilot.handbook.consistency import obligations
from sopilot.handbook.expressions import free_names
from sopilot.handbook.grammar import NOW
from sopilot.handbook.model import Action, Handbook, Procedure
from sopilot.handbook.reader import read_handbook
from sopilot.handbook.requirements import Constant, Name, Term, leaves
from sopilot.handbook.yaml import locate, locate_requirement
from sopilot.messages.catalogue import sentence
from sopilot.messages.diagnostic import Diagnostic, Place, Severity
from sopilot.messages.errors import UserMistake
from sopilot.program.codec import program_from_yaml
from sopilot.runner.sources import SCENARIOS
from sopilot.tasks.examples.example import bundled_names, handbook_text
from sopilot.tasks.folders import PROGRAM, is_workflow_folder
from sopilot.tasks.scenarios import read_scenarios
from sopilot.values.schema import READ

_LIKE_A_SECRET = re.compile(
    r"passw(or)?d|pass_?(code|phrase|key)|secret|(^|_)pin$|(api|private|access)_?key|(^|_)(cvv|cvc)$"
)

_LOOK_UP = re.compile(r"(find|get|fetch|read|look|search|query|list|show|load)(_|$)")

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

_ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "deprecated", "$comment", "$schema", "$id")
)
"""Schema keywords that forbid nothing."""

_Problem = tuple[str, str, str]
"""A predicate, why it cannot be proven, and the cure."""

_Needed = Iterable[tuple[str, str, Term]]
"""A predicate, a parameter of it that must have a value, and the term for it."""


@dataclass(frozen=True, slots=True)
class _Gaps:
    """Warnings of what a handbook without mistakes leaves open. ``text`` is the handbook's, so that
    a place has a line."""

    handbook: Handbook
    text: str
    source: str

    def all(self) -> Iterator[Diagnostic]:
        yield from self._unconfirmed()
        yield from self._secrets_in_clear()
        yield from self._hidden_inputs()
        yield from self._readers_as_goals()
        yield from self._gates_left_open()
        yield from self._gates_of_look_ups()
        yield from self._unread_keywords()
        yield from self._never_proven()
        for name, compiled in compile_handbook(self.handbook).items():
            yield from self._compiled(name, compiled)
        yield from self._recorded_only()

    def _at_requirement(
        self,
        code: str,
        procedure: str,
        message: str,
        help: str = "",
        predicate: str = "",
        severity: Severity = Severity.WARNING,
    ) -> Diagnostic:
        place = locate_requirement(self.text, self.source, procedure, predicate)
        return Diagnostic(code, message, place, help, severity)

    def _at_input(self, code: str, action: str, name: str, message: str, help: str) -> Diagnostic:
        place = locate(self.text, self.source, "actions", action, "input", name)
        return Diagnostic(code, message, place, help, Severity.WARNING)

    def _unconfirmed(self) -> Iterator[Diagnostic]:
        for name, procedure in self.handbook.procedures.items():
            action = self.handbook.actions[procedure.action]
            asks = (action.confirm, procedure.confirm, action.approval) != (None, None, None)
            if action.irreversible and not asks:
                yield self._at_requirement(
                    "unconfirmed",
                    name,
                    f"`{action.name}` is irreversible, and `{name}` doesn't ask the user first",
                    "write `confirm:` with the sentence for the user, or `confirm: false`",
                )

    def _secrets_in_clear(self) -> Iterator[Diagnostic]:
        for action in self.handbook.actions.values():
            for item in action.inputs:
                if not item.secret and _LIKE_A_SECRET.search(item.name.lower()):
                    yield self._at_input(
                        "looks-secret",
                        action.name,
                        item.name,
                        f"`{item.name}` of `{action.name}` looks like a secret, and traces, "
                        "exports and pages show it in clear text",
                        "write `secret: true`",
                    )

    def _hidden_inputs(self) -> Iterator[Diagnostic]:
        """Inputs of guarded actions that are masked because of a secret elsewhere."""
        hidden = set(secret_names(self.handbook))
        asking = {each.action for each in self.handbook.procedures.values() if each.confirm}
        for name in self._goal_actions():
            action = self.handbook.actions[name]
            for item in action.inputs if action.is_guarded or name in asking else ():
                looks_secret = item.secret or _LIKE_A_SECRET.search(item.name.lower())
                if item.name in hidden and not looks_secret:
                    yield self._at_input(
                        "hidden-input",
                        name,
                        item.name,
                        f"`{item.name}` of `{name}` is hidden from the person who approves or "
                        "confirms it, because another action marks this name as `secret`",
                        "drop `secret` there, give it another name, or write `secret: true` here "
                        "as well",
                    )

    def _goal_actions(self) -> list[str]:
        return list(dict.fromkeys(each.action for each in self.handbook.procedures.values()))

    def _readers_as_goals(self) -> Iterator[Diagnostic]:
        for name, procedure in self.handbook.procedures.items():
            action = self.handbook.actions[procedure.action]
            verified = [
                predicate.name
                for predicate in self.handbook.predicates.values()
                if any(call.action == action.name for call in chain(*predicate.recipes))
            ]
            if verified and not action.read_only and action.changes is None:
                yield self._at_requirement(
                    "reader-is-goal",
                    name,
                    f"`{action.name}` verifies `{verified[0]}` and is the action of `{name}`, "
                    "so every call of it counts as a change: no answer is used twice",
                    f"write `read_only: true` on `{action.name}`, or what it `changes`",
                )

    def _gates_left_open(self) -> Iterator[Diagnostic]:
        for gate in self.handbook.predicates.values():
            if gate.established_by is None or gate.closed_by is not None:
                continue
            opening = gate.established_by.action
            words = opening.split("_")
            ends = {
                name
                for place, word in enumerate(words)
                for other in _OPPOSITES.get(word, ())
                for name in ("_".join([*words[:place], other, *words[place + 1 :]]), other)
            }
            for name in sorted(ends & self.handbook.actions.keys() - {opening}):
                yield Diagnostic(
                    "gate-left-open",
                    f"`{gate.name}` stays open after `{name}`, which seems to end it",
                    locate(self.text, self.source, "predicates", gate.name),
                    f"write `closed_by: {name}(…)` if it does",
                    Severity.NOTE,
                )

    def _gates_of_look_ups(self) -> Iterator[Diagnostic]:
        """Gates that a look-up opens: it may answer "no such customer" without failing."""
        for gate in self.handbook.predicates.values():
            if gate.established_by is None or gate.verdict is not None:
                continue
            opening = self.handbook.actions[gate.established_by.action]
            if opening.read_only or _LOOK_UP.match(opening.name):
                yield Diagnostic(
                    "gate-without-verdict",
                    sentence("gate-without-verdict", gate=gate.name, action=opening.name),
                    locate(self.text, self.source, "predicates", gate.name),
                    sentence("add-gate-verdict"),
                    Severity.NOTE,
                )

    def _unread_keywords(self) -> Iterator[Diagnostic]:
        """Schema keywords of guarded actions' inputs that sopilot doesn't enforce."""
        for action in self.handbook.actions.values():
            for item in action.inputs if action.is_guarded else ():
                for word in dict.fromkeys(_unread(item.schema or {})):
                    yield self._at_input(
                        "unread-keyword",
                        action.name,
                        item.name,
                        f"`{word}` in the schema of `{item.name}` is shown to the model, and "
                        f"`{action.name}` is carried out even if a value violates it",
                        "require it: a predicate with `verify: arguments` and a `verdict`",
                    )

    def _never_proven(self) -> Iterator[Diagnostic]:
        """Requirements of guarded actions that a missing or moving value makes unprovable."""
        handbook = self.handbook
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
            problems = [
                *_nulls(handbook, needed),
                *_left_out(handbook, action, loose, needed),
                *_moving(procedure),
            ]
            for predicate, why, cure in dict.fromkeys(problems):
                yield self._unprovable(procedure.name, predicate, why, cure)

    def _unprovable(self, procedure: str, predicate: str, why: str, cure: str) -> Diagnostic:
        message = f"`{procedure}` is guarded, and {why}, so a person must decide"
        return self._at_requirement("unprovable", procedure, message, cure, predicate)

    def _compiled(self, procedure: str, compiled: Compiled) -> Iterator[Diagnostic]:
        why, program = compiled.explanation, compiled.program
        for action, leaf in why.unchecked:
            yield self._at_requirement(
                "unchecked-requirement",
                procedure,
                f"verifier `{action}` requires `{leaf}`, which nothing checks before that call",
                "add it to the procedure's `requires`",
            )
        for unopened in why.unopened:
            yield self._unopened(procedure, unopened)
        for name in compiled.missing_recipes:
            yield self._at_requirement(
                "missing-recipe",
                procedure,
                f"`{name}` cannot be verified with the actions that are offered",
                "offer every action of one of its recipes, or write `verify: arguments`",
                name,
                Severity.ERROR,
            )
        for name, ranked in why.recipes.items():
            for call in ranked.chosen:
                if call.action in self.handbook.actions and (
                    self.handbook.actions[call.action].full_state
                ):
                    yield self._at_requirement(
                        "wide-verifier",
                        procedure,
                        f"`{name}` is verified by `{call.action}`, which reads everything at once",
                        "add, under `any`, a verifier that reads only the needed data",
                        name,
                        Severity.NOTE,
                    )
        for name in judged_by_model(program):
            message = f"`{procedure}` is guarded, and may rely on a model's judgement of `{name}`"
            yield self._at_requirement("model-judged", procedure, message, "", name, Severity.NOTE)
        for name in shared_state(program):
            yield self._at_requirement(
                "shared-state",
                procedure,
                f"`{procedure}` is guarded, and may use `{name}` from an earlier connection",
                f"drop `state: shared` of `{name}` if its server keeps state per connection",
                severity=Severity.NOTE,
            )
        for item in unprovable(program):
            reason = f"only a model can judge `{item.predicate}`"
            cure = (
                "give it a `verdict`, or write `judged_by: model` if a model's judgement is enough"
            )
            if item.verifier:
                reason = (
                    f"`{item.predicate}` can't be proven, because `{item.verifier}` changes the "
                    "data that it reads"
                )
                cure = f"say what `{item.verifier}` changes and reads (`changes`, `reads`)"
            yield self._unprovable(procedure, item.predicate, reason, cure)

    def _unopened(self, procedure: str, item: Unopened) -> Diagnostic:
        gate = str(item.gate)
        needs = f"`{item.check}` calls `{item.action}`, which requires `{gate}`"
        problem, cure = "it is opened only later", f"put `{gate}` in front of it"
        if not item.later:
            problem = "only an earlier `any` or `first` checks that, and it can be true without it"
            cure = f"require `{gate}` by itself, in front of it"
        return self._at_requirement(
            "gate-too-late" if item.later else "gate-may-stay-shut",
            procedure,
            f"{needs}, but {problem}",
            cure,
            item.check.predicate,
        )

    def _recorded_only(self) -> Iterator[Diagnostic]:
        actions = [self.handbook.actions[name] for name in self._goal_actions()]
        loose = [
            f"`{action.name}`"
            for action in actions
            if not action.irreversible and action.approval is None
        ]
        if loose:
            yield Diagnostic(
                "recorded-only",
                f"sopilot doesn't guard {', '.join(loose)}: it makes and records each call, "
                "even unchecked",
                Place(self.source),
                "write `irreversible: true` or `approval:` if the call must be proven first",
                Severity.NOTE,
            )


def _unread(schema: Mapping[str, object]) -> Iterator[str]:
    for word, value in schema.items():
        if word not in READ and word not in _ANNOTATIONS:
            yield word
        elif word == "items" and isinstance(value, Mapping):
            yield from _unread(value)
        elif word == "properties" and isinstance(value, Mapping):
            for item in value.values():
                yield from _unread(item) if isinstance(item, Mapping) else ()


def _nulls(handbook: Handbook, needed: _Needed) -> Iterator[_Problem]:
    for predicate, name, term in needed:
        if term == Constant(None):
            why = f"`{predicate}` is required for `null`, which isn't a value of `{name}`"
            cure = f"give `null` a meaning in its verdict (`{name} == null || …`), and don't pass "
            yield predicate, why, cure + f"`{name}` to a required input"
    for predicate in dict.fromkeys(predicate for predicate, _, _ in needed):
        for call in chain(*handbook.predicates[predicate].recipes):
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
        cure = f"make `{item}` of `{action.name}` required, or say in the verdict what is true "
        cure += f"without it (`{parameter} == null`)"
        yield ("" if entry.made else predicate), why, cure


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
            why = f"`{item.name}` is computed from `now`: its value changes before the call is made"
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
            return [*findings, *_Gaps(handbook, text, source).all()]
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
