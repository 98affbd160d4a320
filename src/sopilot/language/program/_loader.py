"""YAML → program, as input from anyone: strict, bounded, every mistake at its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sopilot.language.diagnostics import Diagnostic, Place, UserMistake
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.fields import (
    Field,
    Fields,
    constant,
    entries,
    fields,
    flag,
    missing,
    optional_text,
    text,
    text_or_none,
    wording,
    wrong,
)
from sopilot.language.handbook.nodes import ListNode, MapNode, Node, ScalarNode
from sopilot.language.handbook.yaml_nodes import parse_nodes
from sopilot.language.program._report import WHOLE
from sopilot.language.program._step_loader import json_of, load_step, texts
from sopilot.language.program.model import (
    Act,
    ActionFacts,
    Function,
    Guarded,
    Kind,
    Program,
    Source,
    Step,
)
from sopilot.language.program.verifier import verify_program

LARGEST_PROGRAM = 20_000_000
"""Characters. A program says at length what its handbook says in a line."""

_PROGRAM_KEYS = (
    "sopilot_program",
    "entry",
    "compiler",
    "source",
    "constants",
    "guarded",
    "types",
    "actions",
    "read_only",
    "functions",
    "secrets",
    "not_found",
)
_FUNCTION_KEYS = (
    "kind",
    "parameters",
    "predicate",
    "says",
    "says_not",
    "verdict",
    "remedy",
    "steps",
    "fallbacks",
    "notes",
    "judged_by",
    "closed_by",
    "principal",
    "computes",
    "value",
    "optional",
    "question",
    "tells",
)


def program_from_yaml(written: str, source: str = "<input>") -> Program:
    """The program in ``written``, verified. Raises ``UserMistake`` with every mistake found."""
    report = DiagnosticCollector(source)
    root = parse_nodes(written, report, largest=LARGEST_PROGRAM)
    if root is None:
        raise UserMistake(report.diagnostics())
    loader = _Loader(source, report)
    program = loader.program(root)
    mistakes = [*report.diagnostics(), *loader.diagnostics]
    found = verify_program(program, places=loader.places)
    if mistakes:
        # What could not be read is missing from the program: only what the verifier says
        # about functions that were read whole, and does not rest on the others, is certain.
        found = [one for one in found if loader.is_certain(one)]
    mistakes += found
    if mistakes:
        raise UserMistake(sorted(mistakes, key=lambda one: (one.place.line, one.place.column)))
    return program


class _Loader:
    def __init__(self, source: str, report: DiagnosticCollector) -> None:
        self.source = source
        self.report = report
        self.places: dict[tuple[str, int], Place] = {}
        self.diagnostics: list[Diagnostic] = []
        self._broken: set[str] = set()

    def is_certain(self, diagnostic: Diagnostic) -> bool:
        function = diagnostic.place.path.split("@", 1)[0]
        rests_on_others = ("unused-function", "wrong-arguments")
        return (
            (function, WHOLE) in self.places
            and function not in self._broken
            and diagnostic.code not in rests_on_others
        )

    def program(self, root: Node) -> Program:
        report = self.report
        found = fields(report, root, _PROGRAM_KEYS, "a program")
        self.places["", WHOLE] = Place(self.source, root.line, root.column)
        for needed in ("sopilot_program", "entry", "functions"):
            if needed not in found and isinstance(root, MapNode):
                missing(report, root, needed, "a program")
        functions: dict[str, Function] = {}
        if "functions" in found:
            for key, value in entries(report, found["functions"].value, "`functions`"):
                functions[key.text] = self._function(key, value)
        return Program(
            entry=optional_text(report, found, "entry"),
            functions=functions,
            source=self._source(found),
            compiler=optional_text(report, found, "compiler"),
            constants=self._constants(found),
            guarded=self._guarded(found),
            types=_schemas(report, found, "types"),
            actions=_actions(report, found),
            format=_whole(report, found, "sopilot_program") or 0,
            read_only=texts(report, found, "read_only"),
            secrets=texts(report, found, "secrets"),
            not_found=_expressions(report, found, "not_found"),
        )

    def _source(self, found: Fields) -> Source:
        if "source" not in found:
            return Source("", "", "")
        keys = ("handbook", "procedure", "sha256", "tools")
        inner = fields(self.report, found["source"].value, keys, "`source`")
        values = [optional_text(self.report, inner, key) for key in keys]
        return Source(*values)

    def _constants(self, found: Fields) -> dict[str, Any]:
        if "constants" not in found:
            return {}
        return {
            key.text: constant(self.report, value, f"`{key.text}`")
            if isinstance(value, ScalarNode)
            else json_of(value)
            for key, value in entries(self.report, found["constants"].value, "`constants`")
        }

    def _guarded(self, found: Fields) -> tuple[Guarded, ...]:
        if "guarded" not in found:
            return ()
        node = found["guarded"].value
        if not isinstance(node, ListNode):
            wrong(self.report, node, "`guarded`", "a list")
            return ()
        guards = []
        for item in node.items:
            keys = ("action", "roles", "needed", "expires_seconds", "recheck", "when")
            inner = fields(self.report, item, keys, "a guard")
            if "action" not in inner:
                missing(self.report, item, "action", "a guard")
            guards.append(
                Guarded(
                    action=optional_text(self.report, inner, "action"),
                    roles=texts(self.report, inner, "roles"),
                    needed=_whole(self.report, inner, "needed") or 0,
                    expires_seconds=_whole(self.report, inner, "expires_seconds"),
                    recheck="recheck" in inner
                    and flag(self.report, inner["recheck"].value, "`recheck`"),
                    when=text_or_none(self.report, inner, "when"),
                )
            )
        return tuple(guards)

    def _function(self, key: ScalarNode, node: Node) -> Function:
        report = DiagnosticCollector(self.source)
        name = key.text
        self.places[name, WHOLE] = Place(self.source, key.line, key.column)
        what = f"function `{name}`"
        found = fields(report, node, _FUNCTION_KEYS, what)
        for needed in ("kind", "steps"):
            if needed not in found and isinstance(node, MapNode):
                missing(report, key, needed, what)
        function = Function(
            name=name,
            kind=_kind(report, found),
            parameters=texts(report, found, "parameters"),
            steps=self._steps(report, name, found),
            says=wording(report, found, "says"),
            says_not=wording(report, found, "says_not"),
            predicate=text_or_none(report, found, "predicate"),
            fallbacks=_fallbacks(report, found),
            verdict=text_or_none(report, found, "verdict"),
            remedy=wording(report, found, "remedy"),
            notes=texts(report, found, "notes"),
            judged_by_model=_judged_by_model(report, found),
            closed_by=_closed_by(report, found),
            principal="principal" in found
            and flag(report, found["principal"].value, "`principal`"),
            computes=optional_text(report, found, "computes"),
            value=text_or_none(report, found, "value"),
            optional=texts(report, found, "optional"),
            question=optional_text(report, found, "question"),
            tells=wording(report, found, "tells"),
        )
        if report.failed:
            self._broken.add(name)
            self.diagnostics += report.diagnostics()
        return function

    def _steps(self, report: DiagnosticCollector, function: str, found: Fields) -> tuple[Step, ...]:
        steps: list[Step] = []
        for item in _items(report, found, "steps"):
            step = load_step(report, item)
            if step is not None:
                place = Place(self.source, item.line, item.column)
                self.places[function, len(steps)] = place
                steps.append(step)
        return tuple(steps)


def _kind(report: DiagnosticCollector, found: Fields) -> Kind:
    word = optional_text(report, found, "kind")
    if word in set(Kind):
        return Kind(word)
    if "kind" in found:
        kinds = ", ".join(f"`{kind}`" for kind in Kind)
        wrong(report, found["kind"].value, "`kind`", f"one of {kinds}")
    return Kind.RULE


def _fallbacks(report: DiagnosticCollector, found: Fields) -> tuple[tuple[Act, ...], ...]:
    fallbacks = []
    for item in _items(report, found, "fallbacks"):
        if not isinstance(item, ListNode):
            wrong(report, item, "a fallback", "a list of `act` steps")
            continue
        acts = []
        for inner in item.items:
            step = load_step(report, inner)
            if isinstance(step, Act):
                acts.append(step)
            elif step is not None:
                wrong(report, inner, "a part of a fallback", "an `act` step")
        fallbacks.append(tuple(acts))
    return tuple(fallbacks)


def _judged_by_model(report: DiagnosticCollector, found: Fields) -> bool:
    if "judged_by" not in found:
        return False
    if optional_text(report, found, "judged_by") != "model":
        wrong(report, found["judged_by"].value, "`judged_by`", "`model`")
    return True


def _closed_by(report: DiagnosticCollector, found: Fields) -> Act | None:
    if "closed_by" not in found:
        return None
    step = load_step(report, found["closed_by"].value)
    if isinstance(step, Act):
        return step
    if step is not None:
        wrong(report, found["closed_by"].value, "`closed_by`", "an `act` step")
    return None


def _schemas(
    report: DiagnosticCollector, found: Fields, key: str
) -> dict[str, Mapping[str, object]]:
    """Name → JSON Schema; a bare word is a type."""
    if key not in found:
        return {}
    schemas: dict[str, Mapping[str, object]] = {}
    for name, node in entries(report, found[key].value, f"`{key}`"):
        value = json_of(node)
        if isinstance(value, str):
            value = {"type": value}
        if isinstance(value, dict):
            schemas[name.text] = value
        else:
            wrong(report, node, f"`{name.text}`", "a type or a JSON Schema")
    return schemas


def _expressions(report: DiagnosticCollector, found: Fields, key: str) -> dict[str, str]:
    if key not in found:
        return {}
    return {
        name.text: text(report, node, f"`{name.text}`")
        for name, node in entries(report, found[key].value, f"`{key}`")
    }


def _actions(report: DiagnosticCollector, found: Fields) -> dict[str, ActionFacts]:
    if "actions" not in found:
        return {}
    actions: dict[str, ActionFacts] = {}
    for name, node in entries(report, found["actions"].value, "`actions`"):
        keys = ("input", "required", "changes", "reads")
        inner = fields(report, node, keys, f"the action `{name.text}`")
        actions[name.text] = ActionFacts(
            _schemas(report, inner, "input"),
            texts(report, inner, "required"),
            texts(report, inner, "changes") if "changes" in inner else None,
            texts(report, inner, "reads") if "reads" in inner else None,
        )
    return actions


def _items(report: DiagnosticCollector, found: Fields, key: str) -> tuple[Node, ...]:
    if key not in found:
        return ()
    node = found[key].value
    if isinstance(node, ListNode):
        return node.items
    wrong(report, node, f"`{key}`", "a list")
    return ()


def _whole(report: DiagnosticCollector, found: Fields, key: str) -> int | None:
    field: Field | None = found.get(key)
    if field is None:
        return None
    node = field.value
    value = node.value if isinstance(node, ScalarNode) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    wrong(report, node, f"`{key}`", "a whole number")
    return None
