"""Expressions: verdicts, conditions and the values of computed arguments.

An expression reads JSON values and cannot reach anything else. Its result is a value or
undecided (``VerdictError``): an undecided part decides nothing, and ``&&``, ``||``, ``all`` and
``exists`` are decided by the parts that are. Fuel bounds the cost of an evaluation, so the same
expression on the same values gives the same answer on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from sopilot.handbook import expression_parser, fields
from sopilot.handbook.expression_parser import MACROS, Node
from sopilot.handbook.grammar import SyntaxProblem
from sopilot.handbook.nodes import Node as YamlNode
from sopilot.handbook.nodes import ScalarNode
from sopilot.handbook.operators import (
    FUNCTIONS,
    INT64,
    OPERATORS,
    WRITTEN_NULL,
    Function,
    Undecided,
    at,
    contains,
    settle,
    truth,
    whole,
)
from sopilot.messages.diagnostic import DiagnosticCollector, did_you_mean
from sopilot.messages.errors import SopilotError

FUEL = 1_000_000
"""Steps of an evaluation, the parts of the values that operators compare among them."""

DEEPEST = 64
"""Nesting of a value that an expression reads."""

_STAND_INS = frozenset({"$dropped", "$ref"})
"""Keys of values that a trace withholds or that JSON can't express."""


class VerdictError(SopilotError):
    """An expression is undecided: it doesn't parse, fails on these values, or isn't true or
    false where it must be."""


class VerdictProblem(NamedTuple):
    """``at`` is the offset in the expression."""

    message: str
    at: int = 0
    help: str = ""


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Node | VerdictProblem:
    try:
        return expression_parser.parse(text)
    except SyntaxProblem as problem:
        return VerdictProblem(problem.message, problem.at, problem.help)


@lru_cache(maxsize=4096)
def free_names(text: str) -> frozenset[str]:
    """The variables that an expression reads. Names that a macro binds and functions aren't
    among them; an expression that doesn't parse has none."""
    node = _parsed(text)
    return expression_parser.free_names(node) if isinstance(node, Node) else frozenset()


def read_answers(text: str) -> dict[str, int]:
    """The names of answers that an expression reads from ``results``, each with its offset."""
    node = _parsed(text)
    if not isinstance(node, Node) or "results" not in expression_parser.free_names(node):
        return {}
    answers: dict[str, int] = {}
    for part in expression_parser.walk(node):
        if part.kind in ("field", "has") and part.parts[0].value == "results":
            offset = part.at if part.kind == "field" else text.index(str(part.value), part.at)
            if part.parts[0].kind == "name":
                answers.setdefault(str(part.value), offset)
    return answers


def limits(text: str, name: str, *, true: bool = True) -> set[str]:
    """``upper`` and ``lower`` where a true (or false) verdict limits the variable to that side;
    ``other`` where it is used in another way."""
    node = _parsed(text)
    return _limits(node, name, true) if isinstance(node, Node) else set()


def _limits(node: Node, name: str, true: bool) -> set[str]:
    if name not in expression_parser.free_names(node):
        return set()
    if node.kind in ("!", "&&", "||"):
        side = not true if node.kind == "!" else true
        return set().union(*(_limits(part, name, side) for part in node.parts))
    if node.kind not in ("<", "<=", ">", ">="):
        return {"other"}
    is_less = node.kind.startswith("<") is true
    sides = [name in expression_parser.free_names(part) for part in node.parts]
    return {
        "upper" if is_left is is_less else "lower"
        for is_left, is_there in zip((True, False), sides, strict=True)
        if is_there
    }


# --- problems that don't depend on values -------------------------------------------------


_OF_OTHER_LANGUAGES = {"any": "exists", "count": "size", "len": "size", "length": "size"}


class _Checker:
    """Collects calls of unknown functions and operands that can never fit their operator."""

    def __init__(self) -> None:
        self.problems: list[VerdictProblem] = []

    def kind(self, node: Node) -> str | None:
        """``truth``, ``number`` or ``text``; ``None`` where the values decide."""
        kinds = [self.kind(part) for part in node.parts]
        match node.kind:
            case "literal":
                if isinstance(node.value, bool):
                    return "truth"
                return "text" if isinstance(node.value, str) else "number"
            case "call":
                return self._check_call(node)
            case "?":
                self._need(node, kinds[:1], "truth")
                return kinds[1] if kinds[1] == kinds[2] else None
            case "!" | "&&" | "||":
                self._need(node, kinds, "truth")
                return "truth"
            case "-" | "*" | "/" | "%":
                self._need(node, kinds, "number")
                return "number"
            case "<" | "<=" | ">" | ">=" | "==" | "!=" | "+":
                known = {kind for kind in kinds if kind}
                ordered = node.kind not in ("==", "!=")
                if len(known) > 1 or (ordered and "truth" in known):
                    self._report(node, f"`{node.kind}` needs two values of one kind")
                return min(known, default=None) if node.kind == "+" else "truth"
            case "all" | "exists" | "exists_one" | "filter":
                self._need(node, kinds[1:], "truth")
                return None if node.kind == "filter" else "truth"
            case "in" | "has":
                return "truth"
        return None

    def _need(self, node: Node, kinds: Iterable[str | None], wanted: str) -> None:
        if any(kind not in (None, wanted) for kind in kinds):
            words = "true or false" if wanted == "truth" else "numbers"
            self._report(node, f"`{node.kind}` needs {words}")

    def _check_call(self, node: Node) -> str | None:
        name = str(node.value)
        plain = name.removeprefix(".")
        function = FUNCTIONS.get(name)
        if function is None:
            known = {*MACROS, "has", *(item.removeprefix(".") for item in FUNCTIONS)}
            meant = _OF_OTHER_LANGUAGES.get(plain, plain)
            help = did_you_mean(meant, known) if meant == plain else f"did you mean `{meant}`?"
            self._report(node, f"unknown function `{plain}`", help)
            return None
        if function.arity != len(node.parts):
            count = function.arity - name.startswith(".")
            plural = "" if count == 1 else "s"
            self._report(node, f"`{plain}` takes {count} argument{plural}")
        return function.kind

    def _report(self, node: Node, message: str, help: str = "") -> None:
        self.problems.append(VerdictProblem(message, node.at, help))


_NO_TRUTH = frozenset({"list", "map_of", "null", "map", "filter"})


@lru_cache(maxsize=4096)
def parse_verdict(text: str, *, truth: bool = True) -> tuple[VerdictProblem, ...]:
    """The problems of an expression whatever its variables hold.

    With ``truth`` it must be true or false. Which variables exist is the caller's knowledge:
    compare with ``free_names``.
    """
    node = _parsed(text)
    if isinstance(node, VerdictProblem):
        return (node,)
    checker = _Checker()
    kind = checker.kind(node)
    if truth and not checker.problems and (kind not in (None, "truth") or node.kind in _NO_TRUTH):
        return (VerdictProblem("a verdict must be true or false, but this is neither"),)
    return tuple(checker.problems)


# --- evaluation ---------------------------------------------------------------------------


class _OutOfFuel(Exception):
    pass


class _Evaluation:
    def __init__(self) -> None:
        self._fuel = FUEL

    def spend(self, fuel: int) -> None:
        self._fuel -= fuel
        if self._fuel < 0:
            raise _OutOfFuel

    def _weigh(self, value: object) -> None:
        """Pay for reading all of a value."""
        if isinstance(value, str):
            self.spend(1 + (len(value) >> 4))
        elif isinstance(value, list):
            self.spend(1 + len(value))
            for item in value:
                self._weigh(item)
        elif isinstance(value, dict):
            self.spend(1 + len(value))
            for item in value.values():
                self._weigh(item)

    def value(self, node: Node, names: Mapping[str, object]) -> object:
        self.spend(1)
        kind, parts = node.kind, node.parts
        match kind:
            case "literal":
                return node.value
            case "null":
                return WRITTEN_NULL
            case "name":
                if node.value not in names:
                    raise Undecided(f"`{node.value}` has no value")
                return names[str(node.value)]
            case "field":
                return at(self._map(parts[0], names), node.value)
            case _ if kind in OPERATORS:
                values = [self.value(part, names) for part in parts]
                return self._run(OPERATORS[kind], values)
            case "has":
                return contains(node.value, self._map(parts[0], names))
            case "&&" | "||":
                return settle((partial(self.value, part, names) for part in parts), kind == "||")
            case "!":
                return not truth(self.value(parts[0], names))
            case "?":
                chosen = parts[1] if truth(self.value(parts[0], names)) else parts[2]
                return self.value(chosen, names)
        if kind in MACROS:
            return self._macro(node, names)
        values = [self.value(part, names) for part in parts]
        match kind:
            case "list":
                return values
            case "map_of":
                return _map_of(values)
            case "index":
                if isinstance(values[0], dict):
                    self.spend(len(values[0]))
                return at(*values)
        function = FUNCTIONS.get(str(node.value))
        if function is None or function.arity != len(values):
            raise Undecided(f"unknown function `{str(node.value).removeprefix('.')}`")
        return self._run(function, values)

    def _run(self, function: Function, values: list[object]) -> object:
        for value in values:
            self._weigh(value)
        return function.run(*values)

    def _map(self, node: Node, names: Mapping[str, object]) -> dict[str, object]:
        target = self.value(node, names)
        if not isinstance(target, dict):
            raise Undecided(
                "a field is read from a value that has no fields: a list, a string, a number"
            )
        self.spend(len(target))
        return target

    def _macro(self, node: Node, names: Mapping[str, object]) -> object:
        items = self.value(node.parts[0], names)
        if not isinstance(items, list | dict):
            raise Undecided(f"`{node.kind}` needs a list or a map")
        scopes = ({**names, str(node.value): item} for item in items)
        body, kind = node.parts[-1], node.kind
        if kind in ("all", "exists"):
            decisions = (partial(self.value, body, scope) for scope in scopes)
            return settle(decisions, kind == "exists")
        if kind == "exists_one":
            return sum([truth(self.value(body, scope)) for scope in scopes]) == 1
        if kind == "filter":
            name = str(node.value)
            return [scope[name] for scope in scopes if truth(self.value(body, scope))]
        if len(node.parts) == 3:
            scopes = (scope for scope in scopes if truth(self.value(node.parts[1], scope)))
        return [self.value(body, scope) for scope in scopes]


def _map_of(values: list[object]) -> dict[str, object]:
    """``values`` are keys and values in turn."""
    made: dict[str, object] = {}
    for key, value in zip(values[::2], values[1::2], strict=True):
        if not isinstance(key, str) or key in made:
            raise Undecided("a key of a map isn't a string, or occurs twice")
        made[key] = value
    return made


def judge(text: str, variables: Mapping[str, object]) -> bool:
    """The verdict under these JSON values, or ``VerdictError``: undecided, never false.

    There is one kind of number, and nothing is equal across types: see ``operators``.
    """
    result = _evaluate(text, variables)
    if not isinstance(result, bool):
        raise VerdictError(f"`{text}` is neither true nor false")
    return result


def compute(text: str, variables: Mapping[str, object]) -> Any:
    """The value of an expression under these JSON values, or ``VerdictError``."""
    result = _evaluate(text, variables)
    if result is None:
        raise VerdictError(f"`{text}` has no value")
    return result


def _evaluate(text: str, variables: Mapping[str, object]) -> object:
    names = {name: _value(value, 0) for name, value in variables.items()}
    node = _parsed(text)
    if isinstance(node, VerdictProblem):
        raise VerdictError(f"`{text}` failed: {node.message}")
    try:
        return _json(_Evaluation().value(node, names), 0)
    except Undecided as problem:
        raise VerdictError(f"`{text}` failed: {problem}") from None
    except _OutOfFuel:
        raise VerdictError(f"`{text}` failed: it takes too much time or memory") from None
    except RecursionError:
        raise VerdictError(f"`{text}` failed: a value is nested too deeply") from None


def _value(value: object, depth: int) -> object:
    """A copy with lists and dictionaries alone. Refuse values that decide nothing: withheld
    ones, texts with NUL, large numbers and deep nesting."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if "\0" in value:
            raise VerdictError("a string has a NUL character in it")
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, int):
        if not -INT64 <= value < INT64:
            raise VerdictError("a number is too large")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise VerdictError("a number is infinite or not a number")
        return value
    if depth >= DEEPEST:
        raise VerdictError(f"a value is nested deeper than {DEEPEST} levels")
    if isinstance(value, Mapping):
        if not _STAND_INS.isdisjoint(value):
            raise VerdictError("a value isn't JSON, or is stored elsewhere")
        return {
            str(_value(str(key), depth + 1)): _value(item, depth + 1) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_value(item, depth + 1) for item in value]
    raise VerdictError("a value is not JSON")


def _json(value: object, depth: int) -> object:
    if value is None or value is WRITTEN_NULL:
        return None
    if isinstance(value, bool | str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return whole(value)
    if isinstance(value, list) and depth < DEEPEST:
        return [_json(item, depth + 1) for item in value]
    if isinstance(value, dict) and depth < DEEPEST:
        return {key: _json(item, depth + 1) for key, item in value.items()}
    raise VerdictError("a value is not JSON")


def read_expression(
    report: DiagnosticCollector, node: YamlNode, known: frozenset[str] | set[str], what: str
) -> str | None:
    """A verdict, or the value of a computed argument."""
    text = fields.text(report, node, f"`{what}`")
    if not text or not isinstance(node, ScalarNode):
        return None
    for problem in parse_verdict(text, truth=what != "value"):
        report.error(
            "bad-verdict" if what == "verdict" else "bad-formula",
            f"the {what} isn't valid: {problem.message}",
            node.spot(problem.at),
            problem.help,
        )
    for name in sorted(free_names(text) - known):
        message = f"the {what} reads `{name}`, which isn't available there"
        report.error(
            "unknown-verdict-name" if what == "verdict" else "unknown-name",
            message,
            node,
            did_you_mean(name, known),
        )
    return text
