"""Calls in their context: which name an argument may be, and which parameter it fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sopilot.handbook.call_syntax import ExpressionError, WrittenArgument, WrittenCall, parse_call
from sopilot.handbook.fields import wrong
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


@dataclass(frozen=True, slots=True)
class Scope:
    """``names`` have a value where the call stands; ``constants`` are the handbook's parameters.
    In an ``open`` scope any other name is a value that somebody still has to supply; in a
    recipe (``answers``) a name may lead into an earlier answer."""

    what: str
    names: frozenset[str]
    constants: Mapping[str, Any]
    open: bool = False
    answers: bool = False


class NamedRequirement(NamedTuple):
    """A tree under a name, put in wherever it is required."""

    parameters: tuple[str, ...]
    tree: Tree


@dataclass(slots=True)
class Signatures:
    """What can be called, with its parameters; filled before any call is read."""

    requirements: dict[str, NamedRequirement] = field(default_factory=dict)

    actions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    predicates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Predicates whose declaration was refused; using one is no further mistake."""


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
    report: DiagnosticCollector,
    node: Node,
    call: WrittenCall,
    parameters: Sequence[str],
    scope: Scope,
    *,
    complete: bool,
) -> Binding:
    """Arguments → parameters, in declared order. ``complete`` demands every parameter."""
    return plain_binding(bind_call(report, node, call, parameters, scope, complete=complete))


def bind_call(
    report: DiagnosticCollector,
    node: Node,
    call: WrittenCall,
    parameters: Sequence[str],
    scope: Scope,
    *,
    complete: bool,
) -> CallBinding:
    """The same in a recipe, where arguments may lead into earlier answers."""
    assert isinstance(node, ScalarNode)  # read_call made the call from it
    filled: dict[str, Origin] = {}
    named = next((at for at, item in enumerate(call.arguments) if item.keyword is not None), None)
    positional = call.arguments[:named]
    if len(positional) > len(parameters) or (complete and len(call.arguments) < len(parameters)):
        _report_count(report, node, call, parameters, len(call.arguments))
    for parameter, argument in zip(parameters, positional, strict=False):
        filled[parameter] = _resolve(report, node, argument, scope)
    for argument in call.arguments[len(positional) :]:
        if argument.keyword is None:
            at = call_offset(node, argument.offset)
            message = "a positional argument stands after a named one"
            report.error("argument-order", message, node, offset=at)
        else:
            _bind_keyword(report, node, call, argument, parameters, scope, filled)
    return tuple((item, filled[item]) for item in parameters if item in filled)


def _bind_keyword(
    report: DiagnosticCollector,
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
        report.error(
            "unknown-argument", message, node, did_you_mean(keyword, parameters), offset=at
        )
    elif keyword in filled:
        message = f"`{keyword}` of `{call.name}` is given twice"
        report.error("duplicate-argument", message, node, offset=at)
    else:
        filled[keyword] = _resolve(report, node, argument, scope)


def _resolve(
    report: DiagnosticCollector, node: ScalarNode, argument: WrittenArgument, scope: Scope
) -> Origin:
    term = argument.term
    if isinstance(term, Path):
        if not scope.answers:
            message = f"`{term}` leads into an answer, and {scope.what} has none"
            at = call_offset(node, argument.offset)
            report.error("path-outside-recipe", message, node, offset=at)
        return term
    if isinstance(term, Constant) or term.name in scope.names:
        return term
    if term.name in scope.constants:
        value = scope.constants[term.name]
        if isinstance(value, list | dict):
            message = f"`{term.name}` is a table, which only expressions can read"
            at = call_offset(node, argument.offset)
            report.error("table-argument", message, node, offset=at)
            return Constant(None)
        return Constant(value)
    if not scope.open:
        at = call_offset(node, argument.offset)
        message = f"`{term.name}` is neither an input of {scope.what} nor a handbook parameter"
        help = did_you_mean(term.name, scope.names | scope.constants.keys())
        report.error("unbound-name", message, node, help, offset=at)
    return Name(term.name)


def _report_count(
    report: DiagnosticCollector,
    node: ScalarNode,
    call: WrittenCall,
    parameters: Sequence[str],
    number: int,
) -> None:
    wanted = len(parameters)
    noun = "argument" if wanted == 1 else "arguments"
    message = f"`{call.name}` takes {wanted} {noun}, not {number}"
    help = f"`{call.name}({', '.join(parameters)})`"
    report.error("wrong-arity", message, node, help)
