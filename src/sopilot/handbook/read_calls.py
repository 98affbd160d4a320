"""Calls in their context: which name an argument may be, and which parameter it fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sopilot.handbook.call_syntax import (
    ExpressionError,
    WrittenArgument,
    WrittenCall,
    parse_call,
    parse_signature,
)
from sopilot.handbook.fields import bad_identifier, wrong
from sopilot.handbook.grammar import is_identifier
from sopilot.handbook.nodes import Node, ScalarNode
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
    """``parameters`` are the names, each with its offset in the declaration."""

    name: str
    parameters: Mapping[str, int]


def read_signature(report: DiagnosticCollector, key: ScalarNode, kind: str) -> Signature | None:
    """A declaration like ``covers(user, amount)`` of a predicate or a requirement."""
    try:
        call = parse_signature(key.text)
    except ExpressionError as error:
        at = call_offset(key, error.offset)
        message = f"`{key.text}` does not declare {kind}: {error.message}"
        report.error("bad-declaration", message, key, error.help, offset=at)
        return None
    if not is_identifier(call.name):
        bad_identifier(report, key, call.name, kind)
        return None
    parameters: dict[str, int] = {}
    for argument in call.arguments:
        assert isinstance(argument.term, Name)  # parse_signature refuses anything else
        name, at = argument.term.name, call_offset(key, argument.offset)
        if name in parameters:
            message = f"`{call.name}` has the parameter `{name}` twice"
            report.error("duplicate-parameter", message, key, offset=at)
        parameters.setdefault(name, at)
    return Signature(call.name, parameters)


def call_offset(node: ScalarNode, offset: int) -> int:
    """How far right of the node a character of its text stands; 0 when lines were folded."""
    return offset + len(node.style) if node.one_line else 0


def read_call(
    report: DiagnosticCollector, node: Node, what: str, example: str
) -> WrittenCall | None:
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
        wrong(report, node, what, f"a call like `{example}`")
        return None
    try:
        return parse_call(node.text)
    except ExpressionError as error:
        at = call_offset(node, error.offset)
        report.error("bad-expression", error.message, node, error.help, offset=at)
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
    filled: dict[str, Origin] = {}
    named = next((at for at, item in enumerate(call.arguments) if item.keyword is not None), None)
    positional = call.arguments[:named]
    if len(positional) > len(parameters) or (complete and len(call.arguments) < len(parameters)):
        _report_count(scope.report, node, call, parameters)
    for parameter, argument in zip(parameters, positional, strict=False):
        filled[parameter] = _resolve(node, argument, scope)
    for argument in call.arguments[len(positional) :]:
        if argument.keyword is None:
            at = call_offset(node, argument.offset)
            message = "a positional argument follows a named one"
            scope.report.error("argument-order", message, node, offset=at)
        else:
            _bind_keyword(node, call, argument, parameters, scope, filled)
    return tuple((item, filled[item]) for item in parameters if item in filled)


def _bind_keyword(
    node: ScalarNode,
    call: WrittenCall,
    argument: WrittenArgument,
    parameters: Sequence[str],
    scope: Scope,
    filled: dict[str, Origin],
) -> None:
    keyword = argument.keyword or ""
    at = call_offset(node, argument.offset)
    if keyword not in parameters:
        message = f"`{call.name}` has no parameter `{keyword}`"
        help = did_you_mean(keyword, parameters)
        scope.report.error("unknown-argument", message, node, help, offset=at)
    elif keyword in filled:
        message = f"`{keyword}` of `{call.name}` is given twice"
        scope.report.error("duplicate-argument", message, node, offset=at)
    else:
        filled[keyword] = _resolve(node, argument, scope)


def _resolve(node: ScalarNode, argument: WrittenArgument, scope: Scope) -> Origin:
    term, at = argument.term, call_offset(node, argument.offset)
    if isinstance(term, Path):
        if not scope.answers:
            message = f"`{term}` is a path into an answer, but {scope.what} has none"
            scope.report.error("path-outside-recipe", message, node, offset=at)
        return term
    if isinstance(term, Constant) or term.name in scope.names:
        return term
    if term.name in scope.constants:
        value = scope.constants[term.name]
        if isinstance(value, list | dict):
            message = f"`{term.name}` is a table, which only expressions can read"
            scope.report.error("table-argument", message, node, offset=at)
            return Constant(None)
        return Constant(value)
    if not scope.open:
        message = f"`{term.name}` is neither an input of {scope.what} nor a handbook parameter"
        help = did_you_mean(term.name, scope.names | scope.constants.keys())
        scope.report.error("unbound-name", message, node, help, offset=at)
    return Name(term.name)


def _report_count(
    report: DiagnosticCollector, node: ScalarNode, call: WrittenCall, parameters: Sequence[str]
) -> None:
    wanted, number = len(parameters), len(call.arguments)
    noun = "argument" if wanted == 1 else "arguments"
    message = f"`{call.name}` takes {wanted} {noun}, not {number}"
    help = f"`{call.name}({', '.join(parameters)})`"
    report.error("wrong-arity", message, node, help)
