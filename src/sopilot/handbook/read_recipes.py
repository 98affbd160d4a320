"""Recipes: calls, ``all`` of them, ``any`` of them, as a list of alternatives.

Every name in a recipe has an origin, or the recipe is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import product

from sopilot.handbook.call_syntax import parse_each
from sopilot.handbook.field_tables import CALL_IN_RECIPE, keys
from sopilot.handbook.fields import (
    bad_identifier,
    fields,
    missing,
    optional_text,
    text,
    unknown,
    wrong,
)
from sopilot.handbook.grammar import RECIPE_OPERATORS, SyntaxProblem, is_identifier
from sopilot.handbook.model import Action, ActionCall, Predicate, Recipe
from sopilot.handbook.nodes import ListNode, MapNode, Node
from sopilot.handbook.read_calls import Scope, bind_call, read_call
from sopilot.handbook.requirements import Constant, Origin, Path
from sopilot.messages.diagnostic import did_you_mean

MOST_ALTERNATIVES = 64
"""Alternatives multiply under ``all``; more than this are a mistake."""


def read_action_call(node: Node, what: str, scope: Scope) -> ActionCall | None:
    report, signatures = scope.report, scope.signatures
    call = read_call(report, node, what, "read_balance(username)")
    if call is None:
        return None
    inputs = signatures.actions.get(call.name)
    if inputs is None:
        unknown(report, node, "action", call.name, signatures.actions)
        return None
    return ActionCall(call.name, bind_call(node, call, inputs, scope, complete=False))


def read_recipes(node: Node, scope: Scope) -> tuple[Recipe, ...]:
    """The alternatives in source order; empty when a diagnostic was reported."""
    if isinstance(node, ListNode):
        help = "name the operator: `all: [...]` (every call) or `any: [...]` (alternatives)"
        wrong(scope.report, node, "a recipe", "a call or one operator", help)
        return ()
    if not isinstance(node, MapNode):
        call = read_action_call(node, "a recipe", scope)
        return ((call,),) if call else ()
    if any(key.text in keys(CALL_IN_RECIPE) for key, _ in node.pairs):
        call = _described_call(node, scope)
        return ((call,),) if call else ()
    return _operator(node, scope)


def _described_call(node: MapNode, scope: Scope) -> ActionCall | None:
    """``{call: …, name: …, for_each: … as …}``."""
    report = scope.report
    result = fields(report, node, keys(CALL_IN_RECIPE), "a call of a recipe")
    if "call" not in result:
        missing(report, node, "call", "a call of a recipe")
        return None
    call = read_action_call(result["call"].value, "`call`", scope)
    if call is None:
        return None
    name = optional_text(report, result, "name")
    if name and not is_identifier(name):
        bad_identifier(report, result["name"].value, name, "an answer")
        name = ""
    each, element = None, ""
    if "for_each" in result:
        where = result["for_each"].value
        written = text(report, where, "`for_each`")
        if not written:
            return None
        try:
            each, element = parse_each(written)
        except SyntaxProblem as error:
            report.error("bad-expression", error.message, where, error.help)
            return None
    return ActionCall(call.action, call.arguments, name, each, element)


def _operator(node: MapNode, scope: Scope) -> tuple[Recipe, ...]:
    report = scope.report
    for key, _ in node.pairs:
        if key.text not in RECIPE_OPERATORS:
            help = did_you_mean(key.text, RECIPE_OPERATORS)
            report.error("unknown-operator", f"a recipe has no operator `{key.text}`", key, help)
            return ()
    if len(node.pairs) != 1:
        message = "a recipe is a call or has exactly one operator, `all` or `any`"
        report.error("two-operators" if node.pairs else "empty-operator", message, node)
        return ()
    ((key, value),) = node.pairs
    if not isinstance(value, ListNode):
        wrong(report, value, f"`{key.text}`", "a list of calls")
        return ()
    if not value.items:
        report.error("empty-operator", f"`{key.text}` has no call", value)
        return ()
    parts = [read_recipes(item, scope) for item in value.items]
    if key.text == "any":
        alternatives = tuple(recipe for part in parts for recipe in part)
        count = len(alternatives)
    else:
        count = 1
        for part in parts:
            count *= len(part)
        alternatives = ()
        if count <= MOST_ALTERNATIVES:
            alternatives = tuple(sum(combined, ()) for combined in product(*parts))
    if count > MOST_ALTERNATIVES:
        message = f"the recipe has {count} alternatives; at most {MOST_ALTERNATIVES} are ranked"
        report.error("too-many-recipes", message, key)
        return ()
    return alternatives


@dataclass(frozen=True, slots=True)
class HandbookProblem:
    """``about`` is the name to blame."""

    code: str
    message: str
    help: str = ""
    about: str = ""


def resolved_recipe(
    recipe: Recipe,
    parameters: Collection[str],
    asks: Collection[str],
    what: str,
    constants: Collection[str] = (),
) -> tuple[Recipe, list[HandbookProblem]]:
    """The recipe with every bare name that means an answer written as a path.

    ``constants`` are the handbook's parameters, which the reader has put in already.
    """
    taken = {*parameters, *asks, *constants}
    problems: list[HandbookProblem] = []
    answers: dict[str, None] = {}
    calls: list[ActionCall] = []
    for call in recipe:
        known = {**answers, call.element: None} if call.each is not None else dict(answers)
        if call.each is not None and call.each.root not in {*answers, *parameters}:
            problems.append(_no_answer(call.each.root, answers))
        if call.element and (call.element in taken or call.element in answers):
            message = f"`{call.element}` already names something else in {what}"
            help = "give the element another name"
            problems.append(HandbookProblem("two-meanings", message, help, call.element))
        if call.name in taken:
            message = f"`{call.name}` already names something else in {what}"
            problems.append(
                HandbookProblem("two-meanings", message, "give the answer another name", call.name)
            )
        elif call.answer in constants:
            message = (
                f"`{call.answer}` is a parameter of the handbook and names an answer in {what}"
            )
            help = f"name the answer otherwise: `{{call: {call.action}(…), name: …}}`"
            problems.append(HandbookProblem("shadowed-parameter", message, help, call.answer))
        arguments: list[tuple[str, Origin]] = []
        for name, term in call.arguments:
            origin, problem = _origin(term, parameters, asks, known, what)
            arguments.append((name, origin))
            if problem is not None:
                problems.append(problem)
        if call.answer in answers:
            message = f"two answers of the recipe are called `{call.answer}`"
            help = f"give each a name: `{{call: {call.action}(…), name: first}}`"
            problems.append(HandbookProblem("two-answers", message, help, call.answer))
        answers[call.answer] = None
        resolved = tuple(arguments)
        calls.append(call if resolved == call.arguments else replace(call, arguments=resolved))
    return tuple(calls), problems


def _origin(
    term: Origin,
    parameters: Collection[str],
    asks: Collection[str],
    known: Mapping[str, None],
    what: str,
) -> tuple[Origin, HandbookProblem | None]:
    if isinstance(term, Constant):
        return term, None
    if isinstance(term, Path):
        rooted = term.root in known or term.root in parameters
        return term, None if rooted else _no_answer(term.root, known)
    if term.name in parameters or term.name in asks:
        return term, None
    if term.name in known:
        return Path(term.name), None
    return term, no_origin(term.name, what, known)


def no_origin(name: str, what: str, answers: Collection[str]) -> HandbookProblem:
    message = f"`{name}` has no origin: {what} doesn't say where its value comes from"
    last = next(reversed(list(answers)), None)
    path = f"write `{last}.{name}` if `{last}` answers it, " if last else ""
    return HandbookProblem(
        "no-origin",
        message,
        f"make it a parameter of the predicate, {path}or list it under `ask` if the user says it",
        name,
    )


def _no_answer(root: str, answers: Collection[str]) -> HandbookProblem:
    known = ", ".join(f"`{answer}`" for answer in answers)
    return HandbookProblem(
        "no-origin",
        f"`{root}` is neither an earlier answer of this recipe nor a parameter",
        f"known here: {known}" if known else "a path leads into an earlier call's answer",
        root,
    )


def missing_inputs(
    predicate: Predicate, actions: Mapping[str, Action]
) -> list[tuple[ActionCall, str]]:
    """Required inputs that no argument of a verifier's call gives."""
    return [
        (call, item.name)
        for recipe in predicate.recipes
        for call in recipe
        for item in (actions[call.action].inputs if call.action in actions else ())
        if item.required and item.name not in dict(call.arguments)
    ]
