"""Predicates: declarations first, for every leaf needs them; then wording, recipe, verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from sopilot.handbook import fields
from sopilot.handbook.expressions import VerdictError, judge, read_answers, read_expression
from sopilot.handbook.field_tables import PREDICATE, keys, read_plain
from sopilot.handbook.fields import Field, Fields
from sopilot.handbook.grammar import ARGUMENTS, NOW, USER, VERDICT_NAMES, is_identifier
from sopilot.handbook.model import ActionCall, Predicate, Recipe, asking
from sopilot.handbook.nodes import ListNode, MapNode, Node, ScalarNode, Spot
from sopilot.handbook.read_calls import Scope, Signature, Signatures, read_signature
from sopilot.handbook.read_recipes import read_action_call, read_recipes, resolved_recipe
from sopilot.handbook.requirements import Path
from sopilot.handbook.yaml import flow, scalars
from sopilot.messages.diagnostic import DiagnosticCollector, did_you_mean

_POSITION = re.compile(r"\b((?:result|results)\b[\w.]*)\[\s*[0-9]+\s*\]")

_NOT_BOUND = (
    "neither a parameter of the predicate nor of the handbook",
    "not a parameter of the handbook: a `customer_message` can't contain values of the case",
)


def declare(
    report: DiagnosticCollector, key: ScalarNode, known: Mapping[str, Field]
) -> Signature | None:
    signature = read_signature(report, key, "a predicate")
    if signature is None:
        return None
    if signature.name in known:
        first = known[signature.name].key
        message = f"the predicate `{signature.name}` is already declared on line {first.line}"
        help = "predicates need different names, even with different parameters: rename one"
        report.error("duplicate-predicate", message, key, help)
        return None
    for name, at in signature.parameters.items():
        if name in VERDICT_NAMES:
            fields.reserved(report, at, name, "no parameter can have this name")
    return signature


def read_predicate(name: str, entry: Field, signatures: Signatures) -> Predicate:
    report, constants = signatures.report, signatures.constants
    key, value = entry
    what = f"the predicate `{name}`"
    result = fields.fields(report, value, keys(PREDICATE), what)
    names = signatures.predicates[name]
    scope = Scope(signatures, what, frozenset(names), open=True, answers=True)
    known = scope.names | constants.keys()
    asks = _asks(result, name, signatures)
    is_map = isinstance(value, MapNode)
    if is_map and "says" not in result:
        fields.missing(report, key, "says", what)
    if "says" in result and _is_blank(says := result["says"].value):
        fields.missing(report, says, "says", what)
    if is_map:
        _one_way(report, key, result, what)
    verify = result["verify"].value if "verify" in result else None
    tool_free = isinstance(verify, ScalarNode) and verify.text == ARGUMENTS
    by_user = isinstance(verify, ScalarNode) and verify.text == USER
    seen = known | {NOW} | (set() if tool_free else VERDICT_NAMES | set(asks))
    wording = ("says", "says_not", "remedy", "question")
    _told_apart(report, result, what)
    special: dict[str, Callable[[], object]] = {
        "verify": lambda: (
            () if tool_free or by_user else verified_by(scope, result["verify"], what, names, asks)
        ),
        "ask": lambda: asks,
        "established_by": lambda: _gate_call(result["established_by"], scope),
        "closed_by": lambda: _gate_call(result["closed_by"], scope),
        "done": lambda: _gate_call(result["done"], scope),
        "verdict": lambda: read_expression(report, result["verdict"].value, seen, "verdict"),
        **{item: partial(_wording, report, result, item, known) for item in wording},
        "customer_message": partial(_wording, report, result, "customer_message", constants.keys()),
    }
    read = read_plain(report, result, PREDICATE, special)
    if "judged_by" in result and "verdict" in result:
        message = "sopilot judges a predicate that has a `verdict`"
        report.error("two-judges", message, result["judged_by"].key, "drop one of the two")
    elif "judged_by" in result and "established_by" in result:
        message = "a gate is judged by the success of its action"
        report.error("two-judges", message, result["judged_by"].key, "drop `judged_by`")
    if "closed_by" in result and "established_by" not in result:
        message = f"{what} isn't a gate, so nothing closes it"
        report.error("closed-without-gate", message, result["closed_by"].key)
    if "principal" in result and "established_by" not in result:
        message = f"{what} isn't a gate, so it can't identify the principal"
        report.error("principal-without-gate", message, result["principal"].key)
    predicate = Predicate(name, names, tool_free=tool_free, **read)
    if by_user != bool(predicate.question):
        message = f"{what} needs both `verify: user` and a `question`"
        report.error("question-without-user", message, key)
    elif by_user:
        predicate = asking(predicate)
    if "reusable" in result and not by_user:
        message = f"{what} doesn't ask the user, so `reusable` has no effect"
        report.error("reusable-without-user", message, result["reusable"].key)
    _examples(report, result, predicate, constants)
    answers = {call.answer for recipe in predicate.recipes for call in recipe}
    if "verdict" in result and predicate.recipes and _one_of_many(predicate.verdict or ""):
        message = "the verdict reads one element of a list and ignores the others"
        help = "`result.items.all(one, …)` or `exists` checks every element"
        report.warning("one-element", message, result["verdict"].value, help)
    if "verdict" in result and predicate.verdict and answers:
        _answers_there(report, result["verdict"].value, predicate.verdict, answers)
    return predicate


def _one_of_many(verdict: str) -> bool:
    """Whether it looks at one element of a list of which it does not say that it has only one."""
    plain = re.sub(r"\s", "", verdict)
    return any(f"size({item[1]})==1&&" not in plain for item in _POSITION.finditer(plain))


def _examples(
    report: DiagnosticCollector, result: Fields, predicate: Predicate, constants: Mapping[str, Any]
) -> None:
    """``holds_for`` and ``fails_for``: the verdict must say the same."""
    for key, wanted in (("holds_for", True), ("fails_for", False)):
        for example in getattr(predicate, key):
            at = result[key].key
            shown = ", ".join(f"{name}={flow(value)}" for name, value in example.items())
            if predicate.verdict is None:
                message = f"`{key}` needs a `verdict` that sopilot can evaluate"
                report.error("example-without-verdict", message, at)
                return
            argument = dict(example)
            if "result" not in argument and isinstance(argument.get("results"), dict):
                argument["result"] = next(reversed(argument["results"].values()), None)
            try:
                holds: bool | None = judge(predicate.verdict, {**constants, **argument})
                why = ""
            except VerdictError as problem:
                holds, why = None, f": {problem}"
            if holds is not wanted:
                reply = "undecided" if holds is None else str(holds).lower()
                message = f"`{predicate.name}` is {reply} for the example {shown}{why}"
                help = f"`{key}` says {str(wanted).lower()}: correct the verdict or the example"
                report.error("example-disagrees", message, at, help)


def _gate_call(field: Field, scope: Scope) -> ActionCall | None:
    report = scope.report
    if isinstance(field.value, MapNode | ListNode):
        message = f"`{field.key.text}` is one call, like `login(user, password)`"
        help = "write one predicate per way: `first: [found_by_email(user), found_by_name(user)]`"
        report.error("wrong-type", message, field.value, help)
        return None
    call = read_action_call(field.value, f"`{field.key.text}`", scope)
    for _, term in call.arguments if call is not None else ():
        if isinstance(term, Path):
            message = f"`{term}` is a path into an answer, but a gate's call has none before it"
            report.error("path-outside-recipe", message, field.value)
    return call


def _answers_there(
    report: DiagnosticCollector, node: Node, verdict: str, answers: set[str]
) -> None:
    for name, offset in read_answers(verdict).items():
        if name not in answers:
            message = f"the verdict reads `results.{name}`, and the recipe has no such answer"
            at = node.spot(offset) if isinstance(node, ScalarNode) else node
            report.error("unknown-verdict-name", message, at, did_you_mean(name, answers))


def verified_by(
    scope: Scope, verify: Field, what: str, parameters: Collection[str], asks: tuple[str, ...]
) -> tuple[Recipe, ...]:
    """The recipes of a ``verify``, in which every name has an origin."""
    report, what = scope.report, what.replace("the predicate", "the recipe of", 1)
    recipes: list[Recipe] = []
    for recipe in read_recipes(verify.value, scope):
        resolved, problems = resolved_recipe(recipe, parameters, asks, what, scope.constants)
        recipes.append(resolved)
        for problem in problems:
            _, at = _mention(verify, problem.about)
            report.error(problem.code, problem.message, at, problem.help)
        if not problems:
            _doubtful_calls(report, verify, resolved)
    return tuple(recipes)


def _doubtful_calls(report: DiagnosticCollector, verify: Field, recipe: Recipe) -> None:
    """Warn of calls that look at one element of many, or at none."""
    for call in recipe:
        for term in (*(term for _, term in call.arguments), call.each):
            positions = [*map(type, term.steps)] if isinstance(term, Path) else []
            if isinstance(term, Path) and int in positions:
                message = f"`{term}` reads one element of a list and ignores the others"
                listed = Path(term.root, term.steps[: positions.index(int)])
                help = f"`for_each: {listed} as one` makes the call for every element"
                report.warning("one-element", message, _mention(verify, term.root)[0], help)
        roots = {term.root for _, term in call.arguments if isinstance(term, Path)}
        if call.each is not None and call.element not in roots:
            message = f"`{call.action}` is called for each `{call.element}`, but doesn't use it"
            help = f"pass it, or a place in it: `{call.action}({call.element}.…)`"
            report.warning("unused-element", message, _mention(verify, call.element)[0], help)


def _mention(verify: Field, name: str) -> tuple[ScalarNode, Spot | ScalarNode]:
    """The last scalar of a recipe that has the name in it, and the name's place; else the key."""
    for node in reversed([*scalars(verify.value)]) if name else ():
        match = re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", node.text)
        if match:
            return node, node.spot(match.start())
    return verify.key, verify.key


def _asks(result: Fields, predicate: str, signatures: Signatures) -> tuple[str, ...]:
    """Values that only the user has."""
    report = signatures.report
    if "ask" not in result:
        return ()
    parameters = {
        **dict.fromkeys(signatures.constants, "the handbook"),
        **dict.fromkeys(signatures.predicates[predicate], f"`{predicate}`"),
    }
    names: list[str] = []
    for item in fields.one_or_more(result["ask"].value):
        name = fields.text(report, item, "`ask`")
        if name and not is_identifier(name):
            fields.bad_identifier(report, item, name, "a value to ask for")
        elif name in parameters:
            message = (
                f"`{name}` is a parameter of {parameters[name]}, so sopilot doesn't ask for it"
            )
            report.error("asked-parameter", message, item)
        elif name in VERDICT_NAMES:
            fields.reserved(report, item, name, "sopilot doesn't ask for it")
        elif name:
            names.append(name)
    return tuple(dict.fromkeys(names))


def _is_blank(node: Node) -> bool:
    """Text without a word in it; anything but text is reported as such."""
    return isinstance(node, ScalarNode) and isinstance(node.value, str) and not node.text.strip()


def _one_way(report: DiagnosticCollector, key: ScalarNode, result: Fields, what: str) -> None:
    ways = [item for item in ("verify", "established_by", "done") if item in result]
    if len(ways) > 1:
        message = f"{what} has both `{ways[0]}` and `{ways[1]}`"
        help = "a gate is established by an action; everything else is verified"
        report.error("two-recipes", message, result[ways[1]].key, help)
    elif not ways:
        message = f"{what} has no recipe: sopilot can't find out whether it is true"
        help = "give `verify` (a call, or `arguments`) or `established_by`"
        report.error("missing-recipe", message, key, help)


def _told_apart(report: DiagnosticCollector, result: Fields, what: str) -> None:
    """``customer_message`` is all that the customer hears."""
    for key in ("remedy", "question"):
        if "customer_message" in result and key in result:
            message = f"{what} has `customer_message`, and `{key}` would tell the customer more"
            report.error("told-twice", message, result[key].key, "drop one of the two")


def _wording(report: DiagnosticCollector, result: Fields, key: str, known: Collection[str]) -> str:
    node = result[key].value
    read = fields.text if key == "question" else fields.worded
    template = read(report, node, f"`{key}`")
    problem = _NOT_BOUND[key == "customer_message"]
    fields.unbound_placeholders(report, node, template, known, problem)
    return template
