"""The subset of JSON Schema that artifacts and arguments are checked against."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeGuard

from sopilot.values.json import JSON, same
from sopilot.values.patterns import UnreadablePattern, has_form
from sopilot.values.text import CodedText

TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}

_LISTS = (list, tuple)

READ = frozenset(
    (
        *("type", "const", "enum", "pattern", "items"),
        *("properties", "required", "additionalProperties"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minLength", "maxLength", "minItems", "maxItems"),
    )
)
"""The supported keywords."""

SCHEMA_SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "wrong-type": ("{where} must be of type {types}", "{where} 的类型必须是 {types}"),
    "nul-character": ("{where} has a NUL character in it", "{where} 含有 NUL 字符"),
    "wrong-value": ("{where} has the wrong value", "{where} 的值不对"),
    "not-in-enum": ("{where} isn't one of the allowed values", "{where} 不在可用的取值之中"),
    "minimum": ("{where} must be at least {limit}", "{where} 不得小于 {limit}"),
    "maximum": ("{where} must be at most {limit}", "{where} 不得大于 {limit}"),
    "exclusiveMinimum": ("{where} must be greater than {limit}", "{where} 必须大于 {limit}"),
    "exclusiveMaximum": ("{where} must be less than {limit}", "{where} 必须小于 {limit}"),
    "minLength": (
        "{where} must have at least {limit} characters",
        "{where} 至少要有 {limit} 个字符",
    ),
    "maxLength": ("{where} must have at most {limit} characters", "{where} 最多 {limit} 个字符"),
    "minItems": ("{where} must have at least {limit} items", "{where} 至少要有 {limit} 项"),
    "maxItems": ("{where} must have at most {limit} items", "{where} 最多 {limit} 项"),
    "wrong-form": ("{where} has the wrong form", "{where} 的格式不对"),
    "missing-key": ("`{name}` is missing", "缺少 `{name}`"),
    "missing-key-in": ("`{name}` is missing in {where}", "{where} 中缺少 `{name}`"),
    "unexpected-key": ("`{name}` is not expected", "`{name}` 是多余的"),
    "unexpected-key-in": ("`{name}` is not expected in {where}", "{where} 中的 `{name}` 是多余的"),
}
"""Why a value does not fit, in English and Chinese; a bound has the name of its keyword."""


def violation(value: JSON, schema: Mapping[str, object], path: str = "") -> str | None:
    """The first problem with its place, or ``None``. Unknown keywords are ignored."""
    where = path or "the content"
    wanted = schema.get("type")
    names = (wanted,) if isinstance(wanted, str) else wanted
    if isinstance(names, _LISTS) and not _is_one_of(value, names):
        types = " or ".join(str(name) for name in names)
        return _coded("wrong-type", where=where, types=types)
    if isinstance(value, str) and "\0" in value:
        return _coded("nul-character", where=where)
    if len(schema) == (wanted is not None):
        return None  # most say a type and nothing else
    if "const" in schema and not same(value, schema["const"]):
        return _coded("wrong-value", where=where)
    options = schema.get("enum")
    if isinstance(options, list | tuple) and not any(same(value, option) for option in options):
        return _coded("not-in-enum", where=where)
    bound = _bound_violation(value, schema, where)
    if bound is not None:
        return bound
    if isinstance(value, dict):
        return _object_violation(value, schema, path)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, Mapping):
        for index, item in enumerate(value):
            problem = violation(item, items, f"{path}[{index}]")
            if problem is not None:
                return problem
    return None


def _bound_violation(value: JSON, schema: Mapping[str, object], where: str) -> str | None:
    """The keywords that bound a number, a text or a list."""
    if isinstance(value, bool) or value is None or isinstance(value, dict):
        return None
    is_number = isinstance(value, int | float)
    size = value if isinstance(value, int | float) else len(value)
    for key, fits in _BOUNDS[float if is_number else type(value)].items():
        limit = schema.get(key)
        if _is_number(limit) and (is_number or not limit % 1) and not fits(size, limit):
            return _coded(key, where=where, limit=limit)
    pattern = schema.get("pattern")
    if isinstance(value, str) and isinstance(pattern, str):
        try:
            if not has_form(value, pattern):
                return _coded("wrong-form", where=where)
        except UnreadablePattern as problem:
            return f"{where} {problem}"
    return None


_BOUNDS: Mapping[type, Mapping[str, Callable[[float, float], bool]]] = {
    float: {
        "minimum": operator.ge,
        "maximum": operator.le,
        "exclusiveMinimum": operator.gt,
        "exclusiveMaximum": operator.lt,
    },
    str: {"minLength": operator.ge, "maxLength": operator.le},
    list: {"minItems": operator.ge, "maxItems": operator.le},
}


def _object_violation(
    value: dict[str, JSON], schema: Mapping[str, object], path: str
) -> str | None:
    required = schema.get("required")
    for name in required if isinstance(required, list | tuple) else ():
        if name not in value:
            return _key_problem("missing-key", name, path)
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    for name, item in value.items():
        inner = known.get(name)
        if isinstance(inner, Mapping):
            problem = violation(item, inner, f"{path}.{name}" if path else name)
            if problem is not None:
                return problem
        elif name not in known and schema.get("additionalProperties") is False:
            return _key_problem("unexpected-key", name, path)
    return None


def _key_problem(code: str, name: str, path: str) -> CodedText:
    return _coded(f"{code}-in", name=name, where=path) if path else _coded(code, name=name)


def _coded(code: str, **fields: object) -> CodedText:
    return CodedText(SCHEMA_SENTENCES[code][0].format(**fields), code, fields)


def _is_one_of(value: object, names: Iterable[object]) -> bool:
    for name in names:  # noqa: SIM110  # a generator costs more than what it asks
        if is_of_type(value, name):
            return True
    return False


def is_of_type(value: object, name: object) -> bool:
    """JSON has one kind of number: `5.0` is an integer. An unknown type takes everything."""
    types = TYPES.get(name) if isinstance(name, str) else None
    if types is None:
        return True
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types) or (
        name == "integer" and isinstance(value, float) and value.is_integer()
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


_DEEPEST = 20


def filled_in(
    value: JSON,
    schema: Mapping[str, object],
    *,
    root: Mapping[str, object] | None = None,
    depth: int = 0,
) -> JSON:
    """``value`` with the schema's defaults for missing fields, at every depth."""
    root = schema if root is None else root
    schema = _own_schema(schema, root)
    if depth > _DEEPEST:
        return value

    def inner(item: JSON, its: object) -> JSON:
        return (
            filled_in(item, its, root=root, depth=depth + 1) if isinstance(its, Mapping) else item
        )

    if isinstance(value, list):
        return [inner(item, schema.get("items")) for item in value]
    properties = schema.get("properties")
    if not isinstance(value, Mapping) or not isinstance(properties, Mapping):
        return value
    filled = {name: inner(item, properties.get(name)) for name, item in value.items()}
    for name, its in properties.items():
        default = its.get("default") if isinstance(its, Mapping) else None
        if name not in filled and default is not None:
            filled[name] = inner(default, its)
    return filled


def defaults_of(schema: Mapping[str, object]) -> dict[str, JSON]:
    """The defaults of an object's fields."""
    properties = schema.get("properties")
    named = properties.items() if isinstance(properties, Mapping) else ()
    return {
        name: its["default"] for name, its in named if isinstance(its, Mapping) and "default" in its
    }


def without_defaults(
    values: Mapping[str, JSON],
    written: Collection[str],
    defaults: Mapping[str, JSON],
    counted: Collection[str],
) -> dict[str, JSON]:
    """The arguments of a call as they are judged: those that were ``written`` with another value
    than the tool's default, and those that are ``counted`` and aren't null."""
    return {
        name: value
        for name, value in values.items()
        if (name in written and not (name in defaults and same(value, defaults[name])))
        or (name in counted and value is not None)
    }


def _own_schema(schema: Mapping[str, object], root: Mapping[str, object]) -> Mapping[str, object]:
    """The schema behind references; of alternatives, the only one that describes an object or a
    list."""
    for _ in range(_DEEPEST):
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            value: object = root
            for name in reference[2:].split("/"):
                value = value.get(name) if isinstance(value, Mapping) else None
            if not isinstance(value, Mapping):
                return schema
            schema = value
            continue
        if "properties" in schema or "items" in schema:
            return schema
        branches = [
            _own_schema(item, root)
            for key in ("anyOf", "oneOf", "allOf")
            if isinstance(some := schema.get(key), list | tuple)
            for item in some
            if isinstance(item, Mapping)
        ]
        inner = [branch for branch in branches if "properties" in branch or "items" in branch]
        return inner[0] if len(inner) == 1 else schema
    return schema
