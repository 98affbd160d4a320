"""Calls in their context: which name an argument may be, and which parameter it fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sopilot.handbook.call_syntax import (
    WrittenCall,
    parse_call,
    parse_signature,
)
from sopilot.handbook.fields import bad_identifier, wrong
from sopilot.handbook.grammar import SyntaxProblem, is_identifier
from sopilot.handbook.nodes import Node, ScalarNode, Spot
from sopilot.handbook.requirements import (
    Binding,
    CallBinding,
    Constant,
    Name,
    Origin,
    Path,
    Tree,
    plain_binding,
)
from sopilot.messages.diagnostic import DiagnosticCollector, did_you_mean


class NamedRequirement(NamedTuple):
    """A tree under a name, put in wherever it is required."""

    parameters: tuple[str, ...]
    tree: Tree


@dataclass(slots=True)
class Signatures:
    """Everything that can be called, with parameters; filled before any call is read. ``constants``
    are the handbook's parameters."""

    report: DiagnosticCollector
    constants: Mapping[str, Any]
    requirements: dict[str, NamedRequirement] = field(default_factory=dict)
    actions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    predicates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Predicates whose declaration was refused; using one is no further mistake."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a call stands. ``names`` have a value there. In an ``open`` scope any other name is a
    value that somebody still has to supply; in a recipe (``answers``) a name may lead into an
    earlier answer."""

    signatures: Signatures
    what: str
    names: frozenset[str]
    open: bool = False
    answers: bool = False

    @property
    def report(self) -> DiagnosticCollector:
        return self.signatures.report

    @property
    def constants(self) -> Mapping[str, Any]:
        return self.signatures.constants


class Signature(NamedTuple):
    """``parameters`` are the names, each with its place in the declaration."""

    name: str
    parameters: Mapping[str, Spot]


def read_signature(report: DiagnosticCollector, key: ScalarNode, kind: str) -> Signature | None:
    """A declaration like ``covers(user, amount)`` of a predicate or a requirement."""
    try:
        declared, names = parse_signature(key.text)
    except SyntaxProblem as error:
        message = f"`{key.text}` does not declare {kind}: {error.message}"
        report.error("bad-declaration", message, key.spot(error.at), error.help)
        return None
    if not is_identifier(declared):
        bad_identifier(report, key, declared, kind)
        return None
    parameters: dict[str, Spot] = {}
    for name, offset in names:
        if name in parameters:
            message = f"`{declared}` has the parameter `{name}` twice"
            report.error("duplicate-parameter", message, key.spot(offset))
        parameters.setdefault(name, key.spot(offset))
    return Signature(declared, parameters)


def read_call(
    report: DiagnosticCollector, node: Node, what: str, example: str
) -> WrittenCall | None:
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
        wrong(report, node, what, f"a call like `{example}`")
        return None
    try:
        return parse_call(node.text)
    except SyntaxProblem as error:
        report.error("bad-expression", error.message, node.spot(error.at), error.help)
        return None


def bind(
    node: Node, call: WrittenCall, parameters: Sequence[str], scope: Scope, *, complete: bool
) -> Binding:
    """Arguments → parameters, in declared order. ``complete`` demands every parameter."""
    return plain_binding(bind_call(node, call, parameters, scope, complete=complete))


def bind_call(
    node: Node, call: WrittenCall, parameters: Sequence[str], scope: Scope, *, complete: bool
) -> CallBinding:
    """The same in a recipe, where arguments may lead into earlier answers."""
    assert isinstance(node, ScalarNode)  # read_call made the call from it
    report, name, count = scope.report, call.name, len(call.arguments)
    positional = next((at for at, item in enumerate(call.arguments) if item.keyword), count)
    if positional > len(parameters) or (complete and count < len(parameters)):
        noun = "argument" if len(parameters) == 1 else "arguments"
        message = f"`{name}` takes {len(parameters)} {noun}, not {count}"
        report.error("wrong-arity", message, node, f"`{name}({', '.join(parameters)})`")
    filled: dict[str, Origin] = {}
    for index, (term, keyword, offset) in enumerate(call.arguments):
        parameter, at = keyword, node.spot(offset)
        if index < positional:
            parameter = parameters[index] if index < len(parameters) else None
        elif parameter is None:
            report.error("argument-order", "a positional argument follows a named one", at)
        elif parameter not in parameters:
            help = did_you_mean(parameter, parameters)
            message = f"`{name}` has no parameter `{parameter}`"
            report.error("unknown-argument", message, at, help)
            parameter = None
        elif parameter in filled:
            message = f"`{parameter}` of `{name}` is given twice"
            report.error("duplicate-argument", message, at)
            parameter = None
        if parameter is not None:
            filled[parameter] = _resolve(term, at, scope)
    return tuple((item, filled[item]) for item in parameters if item in filled)


def _resolve(term: Origin, at: Spot, scope: Scope) -> Origin:
    if isinstance(term, Path):
        if not scope.answers:
            message = f"`{term}` is a path into an answer, but {scope.what} has none"
            scope.report.error("path-outside-recipe", message, at)
        return term
    if isinstance(term, Constant) or term.name in scope.names:
        return term
    if term.name in scope.constants:
        value = scope.constants[term.name]
        if isinstance(value, list | dict):
            message = f"`{term.name}` is a table, which only expressions can read"
            scope.report.error("table-argument", message, at)
            return Constant(None)
        return Constant(value)
    if not scope.open:
        message = f"`{term.name}` is neither an input of {scope.what} nor a handbook parameter"
        help = did_you_mean(term.name, scope.names | scope.constants.keys())
        scope.report.error("unbound-name", message, at, help)
    return Name(term.name)
