"""Predicates: declarations first, for every leaf needs them; then wording, recipe, verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sopilot.language.diagnostics import did_you_mean
from sopilot.language.handbook import fields
from sopilot.language.handbook._expressions import ExpressionError, parse_signature
from sopilot.language.handbook._model import ActionCall, Predicate, Recipe
from sopilot.language.handbook._read_calls import Scope, Signatures, call_offset
from sopilot.language.handbook._read_recipes import read_action_call, read_recipes
from sopilot.language.handbook._tree import Name, Path, Scalar
from sopilot.language.handbook.cel import free_names, parse_verdict, read_answers
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.fields import Field, Fields
from sopilot.language.handbook.grammar import (
    ARGUMENTS,
    JUDGES,
    PREDICATE_KEYS,
    VERDICT_NAMES,
    is_identifier,
)
from sopilot.language.handbook.nodes import ListNode, MapNode, Node, ScalarNode, Spot
from sopilot.language.handbook.origins import resolved_recipe
from sopilot.language.handbook.wording import placeholders

_FOREIGN = re.compile(r"\b(and|or|not)\b|(?<![=!<>])=(?!=)")


@dataclass(frozen=True, slots=True)
class Declaration:
    name: str
    parameters: tuple[str, ...]
    entry: Field


def declare(
    report: DiagnosticCollector, entry: Field, known: Mapping[str, Declaration]
) -> Declaration | None:
    key = entry.key
    try:
        call = parse_signature(key.text)
    except ExpressionError as error:
        at = call_offset(key, error.offset)
        message = f"`{key.text}` does not declare a predicate: {error.message}"
        report.error("bad-declaration", message, key, error.help, offset=at)
        return None
    if not is_identifier(call.name):
        fields.bad_identifier(report, key, call.name, "a predicate")
        return None
    if call.name in known:
        first = known[call.name].entry.key
        message = f"the predicate `{call.name}` is already declared on line {first.line}"
        help = "the parameters do not tell predicates apart; give one of them another name"
        report.error("duplicate-predicate", message, key, help)
        return None
    parameters: list[str] = []
    for argument in call.arguments:
        assert isinstance(argument.term, Name)  # parse_signature refuses anything else
        name = argument.term.name
        at = call_offset(key, argument.offset)
        if name in parameters:
            message = f"`{call.name}` has the parameter `{name}` twice"
            report.error("duplicate-parameter", message, key, offset=at)
        elif name in VERDICT_NAMES:
            message = f"`{name}` is what a verdict calls the evidence, so it names no parameter"
            report.error("reserved-name", message, key, offset=at)
            parameters.append(name)
        else:
            parameters.append(name)
    return Declaration(call.name, tuple(parameters), entry)


def read_predicate(
    report: DiagnosticCollector,
    declaration: Declaration,
    signatures: Signatures,
    constants: dict[str, Scalar],
) -> Predicate:
    key, value = declaration.entry
    what = f"the predicate `{declaration.name}`"
    found = fields.fields(report, value, PREDICATE_KEYS, what)
    scope = Scope(what, frozenset(declaration.parameters), constants, open=True, answers=True)
    known = scope.names | constants.keys()
    asks = _asks(report, found, declaration, constants)
    is_map = isinstance(value, MapNode)
    if is_map and "says" not in found:
        fields.missing(report, key, "says", what)
    wording = {one: _wording(report, found, one, known) for one in ("says", "says_not", "remedy")}
    if "says" in found and _is_blank(says := found["says"].value):
        fields.missing(report, says, "says", what)
    if is_map:
        _one_way(report, key, found, what)
    tool_free = False
    recipes: tuple[tuple[ActionCall, ...], ...] = ()
    if "verify" in found:
        verify = found["verify"].value
        tool_free = isinstance(verify, ScalarNode) and verify.text == ARGUMENTS
        if not tool_free:
            recipes = tuple(
                _with_origins(report, found["verify"], recipe, declaration, asks, constants)
                for recipe in read_recipes(report, verify, scope, signatures)
            )
    established_by = None
    if "established_by" in found:
        established_by = read_action_call(
            report, found["established_by"].value, "`established_by`", scope, signatures
        )
    closed_by = None
    if "closed_by" in found:
        closed_by = read_action_call(
            report, found["closed_by"].value, "`closed_by`", scope, signatures
        )
        if "established_by" not in found:
            message = f"{what} is no gate, so nothing closes it"
            report.error("closed-without-gate", message, found["closed_by"].key)
    for one, gate in (("established_by", established_by), ("closed_by", closed_by)):
        for _, term in gate.arguments if gate is not None else ():
            if isinstance(term, Path):
                message = f"`{term}` leads into an answer, and a gate's call has none before it"
                report.error("path-outside-recipe", message, found[one].value)
    seen = known if tool_free else known | VERDICT_NAMES | set(asks)
    verdict = None
    if "verdict" in found:
        verdict = _verdict(report, found["verdict"].value, seen)
        answers = {call.answer for recipe in recipes for call in recipe}
        if verdict and answers:
            _answers_there(report, found["verdict"].value, verdict, answers)
    return Predicate(
        declaration.name,
        declaration.parameters,
        wording["says"],
        wording["says_not"],
        recipes,
        established_by,
        tool_free,
        verdict,
        wording["remedy"],
        asks,
        _judged_by_model(report, found),
        closed_by,
    )


def _answers_there(
    report: DiagnosticCollector, node: Node, verdict: str, answers: set[str]
) -> None:
    for name, offset in read_answers(verdict).items():
        if name not in answers:
            message = f"the verdict reads `results.{name}`, and the recipe has no such answer"
            at = call_offset(node, offset) if isinstance(node, ScalarNode) else 0
            help = did_you_mean(name, answers)
            report.error("unknown-verdict-name", message, node, help, offset=at)


def _with_origins(
    report: DiagnosticCollector,
    verify: Field,
    recipe: Recipe,
    declaration: Declaration,
    asks: tuple[str, ...],
    constants: dict[str, Scalar],
) -> Recipe:
    what = f"the recipe of `{declaration.name}`"
    resolved, problems = resolved_recipe(recipe, declaration.parameters, asks, what, constants)
    for problem in problems:
        at, offset = _mention(verify.value, problem.about) or (verify.key, 0)
        report.error(problem.code, problem.message, at, problem.help, offset=offset)
    for call in resolved if not problems else ():
        roots = {term.root for _, term in call.arguments if isinstance(term, Path)}
        if call.each is not None and call.element not in roots:
            message = f"`{call.action}` is called for each `{call.element}`, but not with it"
            place = _mention(verify.value, call.element)
            help = f"pass it, or a place in it: `{call.action}({call.element}.…)`"
            report.warning("unused-element", message, place[0] if place else verify.key, help)
    return resolved


def _mention(node: Node, name: str) -> tuple[ScalarNode, int] | None:
    """The last place of a recipe that has the name in it."""
    if isinstance(node, ScalarNode):
        found = re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", node.text)
        return (node, call_offset(node, found.start())) if found and name else None
    parts = node.items if isinstance(node, ListNode) else [value for _, value in node.pairs]
    places = (_mention(part, name) for part in reversed(parts))
    return next((place for place in places if place is not None), None)


def _asks(
    report: DiagnosticCollector,
    found: Fields,
    declaration: Declaration,
    constants: dict[str, Scalar],
) -> tuple[str, ...]:
    """What only the user has."""
    if "ask" not in found:
        return ()
    node = found["ask"].value
    names: list[str] = []
    for item in node.items if isinstance(node, ListNode) else (node,):
        name = fields.text(report, item, "`ask`")
        if name and not is_identifier(name):
            fields.bad_identifier(report, item, name, "a value to ask for")
        elif name in declaration.parameters:
            message = f"`{name}` is a parameter of `{declaration.name}`, so nobody is asked for it"
            report.error("asked-parameter", message, item)
        elif name in constants:
            message = f"`{name}` is a parameter of the handbook, so nobody is asked for it"
            report.error("asked-parameter", message, item)
        elif name in VERDICT_NAMES:
            message = f"`{name}` is what a verdict calls the evidence, so nobody is asked for it"
            report.error("reserved-name", message, item)
        elif name:
            names.append(name)
    return tuple(dict.fromkeys(names))


def _judged_by_model(report: DiagnosticCollector, found: Fields) -> bool:
    if "judged_by" not in found:
        return False
    node = found["judged_by"].value
    if fields.text(report, node, "`judged_by`") not in JUDGES:
        fields.wrong(report, node, "`judged_by`", "`model`", "a machine judges by a `verdict`")
    if "verdict" in found:
        message = "a predicate with a `verdict` is judged by the machine"
        report.error("two-judges", message, found["judged_by"].key, "drop one of the two")
    elif "established_by" in found:
        message = "a gate is judged by the success of its action"
        report.error("two-judges", message, found["judged_by"].key, "drop `judged_by`")
    return True


def _is_blank(node: Node) -> bool:
    """Text without a word in it; anything but text is reported as such."""
    return isinstance(node, ScalarNode) and isinstance(node.value, str) and not node.text.strip()


def _one_way(report: DiagnosticCollector, key: ScalarNode, found: Fields, what: str) -> None:
    if "verify" in found and "established_by" in found:
        message = f"{what} has both `verify` and `established_by`"
        help = "a gate is established by an action; everything else is verified"
        report.error("two-recipes", message, found["established_by"].key, help)
    elif "verify" not in found and "established_by" not in found:
        message = f"{what} has no recipe: nothing says how to find out whether it holds"
        help = "give `verify` (a call, or `arguments`) or `established_by`"
        report.error("missing-recipe", message, key, help)


def _wording(report: DiagnosticCollector, found: Fields, key: str, known: frozenset[str]) -> str:
    if key not in found:
        return ""
    node = found[key].value
    template = fields.wording(report, found, key)
    for name in placeholders(template):
        if name not in known:
            message = f"`{{{name}}}` is neither a parameter of the predicate nor of the handbook"
            report.error("unbound-placeholder", message, node, did_you_mean(name, known))
    return template


def _verdict(report: DiagnosticCollector, node: Node, known: frozenset[str]) -> str | None:
    text = fields.text(report, node, "`verdict`")
    if not text or not isinstance(node, ScalarNode):
        return None
    problems = parse_verdict(text)
    for problem in problems:
        help = "CEL writes `&&`, `||`, `!` and `==`" if _FOREIGN.search(text) else ""
        at = Spot(node.line, node.column)
        if node.one_line and problem.line == 1:
            at = Spot(node.line, node.column + call_offset(node, problem.column - 1))
        report.error("bad-verdict", f"the verdict does not work: {problem.message}", at, help)
    for name in sorted(free_names(text) - known):
        message = f"the verdict reads `{name}`, which is not known there"
        report.error("unknown-verdict-name", message, node, did_you_mean(name, known))
    return text
