"""JSON → handbook. Stored data can be damaged, so every step is checked."""

from __future__ import annotations

from collections.abc import Iterable

from sopilot.language.diagnostics import Diagnostic, Place, UserMistake, did_you_mean
from sopilot.language.handbook.codec import FORMAT, OPERATORS
from sopilot.language.handbook.model import (
    Action,
    ActionCall,
    Approval,
    Handbook,
    Input,
    Predicate,
    Procedure,
)
from sopilot.language.handbook.tree import (
    NOTHING,
    Binding,
    Constant,
    Leaf,
    Name,
    Scalar,
    Term,
    Tree,
)

DEEPEST = 200
_TYPES = {name: kind for kind, name in OPERATORS.items()}


class _Value:
    """A JSON value that knows its path, so that a mistake can be named."""

    def __init__(self, data: object, path: str = "") -> None:
        self.data = data
        self.path = path

    def refuse(self, message: str, help: str = "") -> UserMistake:
        return UserMistake([Diagnostic("bad-json", message, Place(path=self.path), help)])

    def fields(self, *known: str) -> dict[str, _Value]:
        found = self.entries()
        for key in found:
            if key not in known:
                raise self.refuse(f"there is no field `{key}`", did_you_mean(key, known))
        return found

    def entries(self) -> dict[str, _Value]:
        if not isinstance(self.data, dict):
            raise self.refuse("expected an object")
        found: dict[str, _Value] = {}
        for key, value in self.data.items():
            if not isinstance(key, str):
                raise self.refuse("expected text as a key")
            found[key] = _Value(value, f"{self.path}.{key}" if self.path else key)
        return found

    def items(self) -> list[_Value]:
        if not isinstance(self.data, list):
            raise self.refuse("expected a list")
        return [_Value(item, f"{self.path}[{at}]") for at, item in enumerate(self.data)]

    def text(self) -> str:
        if not isinstance(self.data, str):
            raise self.refuse("expected text")
        return self.data

    def flag(self) -> bool:
        if not isinstance(self.data, bool):
            raise self.refuse("expected true or false")
        return self.data

    def whole(self) -> int:
        if not isinstance(self.data, int) or isinstance(self.data, bool):
            raise self.refuse("expected a whole number")
        return self.data

    def scalar(self) -> Scalar:
        if self.data is None or isinstance(self.data, str | int | float):
            return self.data
        raise self.refuse("expected text, a number, true, false or null")


class _Fields:
    """Optional fields with their defaults."""

    def __init__(self, value: _Value, known: Iterable[str]) -> None:
        self.value = value
        self.found = value.fields(*known)

    def need(self, key: str) -> _Value:
        if key not in self.found:
            raise self.value.refuse(f"the field `{key}` is missing")
        return self.found[key]

    def text(self, key: str, default: str = "") -> str:
        return self.found[key].text() if key in self.found else default

    def flag(self, key: str, default: bool = False) -> bool:
        return self.found[key].flag() if key in self.found else default

    def items(self, key: str) -> list[_Value]:
        return self.found[key].items() if key in self.found else []

    def entries(self, key: str) -> dict[str, _Value]:
        return self.found[key].entries() if key in self.found else {}

    def tree(self, key: str) -> Tree:
        return _tree(self.found[key], 0) if key in self.found else NOTHING


def handbook_from_json(data: object) -> Handbook:
    """The handbook that ``handbook_to_json`` wrote, or ``UserMistake``."""
    known = ("format", "handbook", "says", "parameters", "actions", "predicates", "procedures")
    root = _Fields(_Value(data), known)
    form = root.need("format").whole()
    if form != FORMAT:
        raise root.need("format").refuse(f"format {form} is not readable; this is format {FORMAT}")
    return Handbook(
        root.need("handbook").text(),
        root.text("says"),
        {name: one.scalar() for name, one in root.entries("parameters").items()},
        {name: _action(name, one) for name, one in root.entries("actions").items()},
        {name: _predicate(name, one) for name, one in root.entries("predicates").items()},
        {name: _procedure(name, one) for name, one in root.entries("procedures").items()},
    )


def _tree(value: _Value, depth: int) -> Tree:
    if depth > DEEPEST:
        raise value.refuse(f"nested deeper than {DEEPEST} levels")
    found = value.entries()
    if "predicate" in found:
        leaf = _Fields(value, ("predicate", "arguments", "wanted"))
        return Leaf(
            leaf.need("predicate").text(),
            _binding(leaf.items("arguments")),
            leaf.flag("wanted", True),
        )
    if len(found) != 1 or next(iter(found)) not in _TYPES:
        raise value.refuse("expected a predicate or one operator", did_you_mean("", _TYPES))
    ((operator, children),) = found.items()
    tree: Tree = _TYPES[operator](tuple(_tree(one, depth + 1) for one in children.items()))
    return tree


def _binding(items: list[_Value]) -> Binding:
    binding: list[tuple[str, Term]] = []
    for item in items:
        pair = item.items()
        if len(pair) != 2:
            raise item.refuse("expected a parameter and its term")
        binding.append((pair[0].text(), _term(pair[1])))
    return tuple(binding)


def _term(value: _Value) -> Term:
    found = value.fields("name", "value")
    if len(found) != 1:
        raise value.refuse("expected either a name or a value")
    return Name(found["name"].text()) if "name" in found else Constant(found["value"].scalar())


def _call(value: _Value) -> ActionCall:
    call = _Fields(value, ("action", "arguments"))
    return ActionCall(call.need("action").text(), _binding(call.items("arguments")))


def _input(value: _Value) -> Input:
    item = _Fields(value, ("name", "type", "says", "required", "schema"))
    schema = None
    if "schema" in item.found:
        schema = {key: one.data for key, one in item.entries("schema").items()}
    name, kind = item.need("name").text(), item.text("type", "string")
    return Input(name, kind, item.text("says"), item.flag("required", True), schema)


def _approval(value: _Value) -> Approval:
    item = _Fields(value, ("roles", "needed", "expires_seconds"))
    roles = tuple(one.text() for one in item.items("roles"))
    expires = item.found.get("expires_seconds")
    return Approval(roles, item.need("needed").whole(), expires.whole() if expires else None)


def _action(name: str, value: _Value) -> Action:
    known = ("inputs", "says", "requires", "irreversible", "approval", "full_state", "offered")
    item = _Fields(value, known)
    approval = item.found.get("approval")
    return Action(
        name,
        tuple(_input(one) for one in item.items("inputs")),
        item.text("says"),
        item.tree("requires"),
        item.flag("irreversible"),
        _approval(approval) if approval else None,
        item.flag("full_state"),
        item.flag("offered", True),
    )


def _predicate(name: str, value: _Value) -> Predicate:
    known = (
        "parameters",
        "says",
        "says_not",
        "recipes",
        "established_by",
        "tool_free",
        "verdict",
        "remedy",
    )
    item = _Fields(value, known)
    gate = item.found.get("established_by")
    verdict = item.found.get("verdict")
    return Predicate(
        name,
        tuple(one.text() for one in item.items("parameters")),
        item.text("says"),
        item.text("says_not"),
        tuple(tuple(_call(call) for call in recipe.items()) for recipe in item.items("recipes")),
        _call(gate) if gate else None,
        item.flag("tool_free"),
        verdict.text() if verdict else None,
        item.text("remedy"),
    )


def _procedure(name: str, value: _Value) -> Procedure:
    item = _Fields(value, ("action", "says", "arguments", "requires", "worded"))
    return Procedure(
        name,
        item.need("action").text(),
        item.tree("requires"),
        item.text("says"),
        _binding(item.items("arguments")),
        item.tree("worded") if "worded" in item.found else None,
    )
