"""JSON values: plain, comparable, canonical.

Texts that look the same (two encodings of `é`, a trailing space, a zero-width character) are
neither equal nor different: a tool may treat them alike.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from sopilot.values.text import visible

_UNSEEN = frozenset(
    map(
        chr,
        (
            0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2065, 0x2800, 0x3164,
            *range(0xFE00, 0xFE10), 0xFFA0, *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000),
        ),
    )
)  # fmt: skip
"""Invisible characters outside of the categories below, and the empty braille cell."""

_UNSEEN_CATEGORIES = ("Cf", "Cc")


def without_unseen(text: str) -> str:
    """Remove invisible characters except spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign
        for sign in text
        if sign not in _UNSEEN
        and (sign.isspace() or unicodedata.category(sign) not in _UNSEEN_CATEGORIES)
    )


def as_seen(text: str) -> str:
    """A form that is equal for texts that look the same; letters keep their case."""
    if text.isascii() and text.isprintable():
        return text.strip()
    seen = without_unseen(unicodedata.normalize("NFKC", text))
    # Characters that an invisible one kept apart may combine now.
    return unicodedata.normalize("NFKC", seen).strip()


def look_the_same(left: object, right: object) -> bool:
    """Also of lists and objects, whose texts look the same and whose other values are equal."""
    if isinstance(left, str) and isinstance(right, str):
        return as_seen(left) == as_seen(right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(look_the_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        shown, other = _as_seen_fields(left), _as_seen_fields(right)
        return shown.keys() == other.keys() and all(
            look_the_same(shown[name], other[name]) for name in shown
        )
    return same(left, right)


def _as_seen_fields(value: dict[str, JSON]) -> dict[str, JSON]:
    """A value that is null is one that was left out."""
    return {as_seen(name): item for name, item in value.items() if item is not None}


def same_name(name: str) -> str:
    """A form of a person's name that is equal for another case, width, spacing, digits or invisible
    characters. Letters of another alphabet differ, even if they look alike."""
    if name.isascii() and name.isprintable():
        return " ".join(name.casefold().split())
    folded = unicodedata.normalize("NFKC", name).casefold()
    # Case folding may decompose capitals, and leaves the dot of `İ`.
    folded = unicodedata.normalize("NFKC", folded).replace("i\u0307", "i").replace("ı", "i")
    digits = (str(unicodedata.decimal(sign, sign)) for sign in without_unseen(folded))
    return " ".join("".join(digits).split())


if TYPE_CHECKING:
    JSON: TypeAlias = "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"
    """A JSON value: null, boolean, number, string, list, object."""
else:
    # Libraries that read annotations at run time can't resolve a recursive alias.
    JSON = Any


Value = TypeVar("Value", bound="JSON")

Fields: TypeAlias = Mapping[str, Any]
"""A JSON object of known shape: an operation's checked fields, an event's payload, own output."""

Judge: TypeAlias = Callable[[str, Mapping[str, JSON]], bool | None]
"""Evaluates a verdict expression over variables; ``None`` or an error if it is undecided."""


class Missing(Enum):
    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""Stands for a missing value; ``None`` is a value."""

DEEPEST = 64
"""Deeper nesting is dropped: no honest tool needs it, and encoders recurse."""

_MOST = 1 << 4096
_LEAST = -_MOST
_REF = "$ref"
_DROPPED = "$dropped"
CLASS = "$class"
"""The key under which an object that a function receives names its class."""
_NUMBER = (int, float)
_LISTS = (list, tuple)


def _encoder() -> Callable[[JSON], str]:
    whole = json.JSONEncoder(
        sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    # `encode` sets up the C encoder for every value, which takes as long as encoding a small one,
    # and looks for cycles, which plain values don't have. Use it if there is no such C encoder.
    make = getattr(json.encoder, "c_make_encoder", None)
    try:
        chunks = make(  # type: ignore[misc]  # None raises the TypeError below
            None, whole.default, json.encoder.encode_basestring, None, ":", ",", True, False, False
        )
    except TypeError:
        return whole.encode
    join = "".join
    return lambda value: join(chunks(value, 0))


made = tuple.__new__
"""Makes a named tuple from its values in order, twice as fast as its class."""

spell = _encoder()
"""The text of ``canonical``."""


def canonical(value: JSON) -> bytes:
    """The unique encoding of a plain value: sorted keys, no spaces, UTF-8."""
    return spell(value).encode("utf-8", "surrogatepass")


def dropped(why: str) -> JSON:
    """Stands for a value that can't be judged."""
    return {_DROPPED: why}


def unique(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    """For ``json.loads``: refuse repeated keys, of which readers could take different ones."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return result


def plain(value: object, depth: int = 0) -> JSON:
    """A private JSON copy of anything; a value that isn't JSON is ``dropped``.

    The caller's later changes don't reach the copy. Limits keep a hostile value from breaking an
    encoder. Keys are in canonical order, so that a run and its replay iterate alike.
    """
    if isinstance(value, str):
        if type(value) is str and value.isascii():
            return value
        return str.encode(value, "utf-8", "replace").decode("utf-8")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if _LEAST < value < _MOST else dropped("integer too large")
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else dropped(f"not finite: {value}")
    if depth >= DEEPEST:
        return dropped("nested too deeply")
    if isinstance(value, dict):
        return plain_mapping(value, depth + 1)
    if isinstance(value, _LISTS):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return plain_mapping(value, depth + 1)
    return dropped("not JSON")


def plain_mapping(value: Mapping[Any, object], depth: int = 1) -> dict[str, JSON]:
    if not value:
        return {}
    copy = {}
    in_order = True
    last = ""
    for key, item in value.items():
        # Hot path: most keys and values are short ASCII and need no call.
        if type(key) is not str or not key.isascii():
            key = plain(key) if isinstance(key, str) else _key(key)
        in_order = in_order and last <= key
        last = key
        copy[key] = item if type(item) is str and item.isascii() else plain(item, depth)
    return copy if in_order else {key: copy[key] for key in sorted(copy)}


def _key(key: object) -> str:
    """The key as a JSON encoder writes it; other keys are dropped."""
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int) and _LEAST < key < _MOST:
        return str(int(key))
    return _DROPPED


def without_references(value: Value) -> Value:
    """A plain value without objects in the form of a withheld value, with which a sender could
    blind the audit."""
    copy: Any = value
    if isinstance(value, dict):
        copy = {key: without_references(item) for key, item in value.items()}
        if _REF in value:
            copy = dropped("has the form of a reference")
    elif isinstance(value, list):
        copy = [without_references(item) for item in value]
    return cast("Value", copy)


def escape_references(value: Value) -> Value:
    """A tool's answer without objects in the form of a withheld value: its own key `$ref` becomes
    `$$ref`, `$$ref` becomes `$$$ref`."""
    copy: Any = value
    if isinstance(value, dict):
        escaped = {key: f"${key}" for key in value if key.lstrip("$") == "ref" and key[0] == "$"}
        copy = {escaped.get(key, key): escape_references(item) for key, item in value.items()}
    elif isinstance(value, list):
        copy = [escape_references(item) for item in value]
    return cast("Value", copy)


def parts_of(value: JSON) -> Iterator[JSON]:
    """The value and all values inside of it."""
    yield value
    if isinstance(value, Mapping):
        for item in value.values():
            yield from parts_of(item)
    elif isinstance(value, _LISTS):
        for item in value:
            yield from parts_of(item)


def holds_stand_in(value: JSON) -> bool:
    """Whether it contains a stand-in for a value that wasn't stored as it was sent."""
    return any(
        isinstance(part, Mapping) and (_DROPPED in part or part.keys() == {_REF, "bytes"})
        for part in parts_of(value)
    )


def shown(value: JSON, width: int = 80) -> str:
    """One quoted line of JSON, so that a value can't pass for a message of the machine."""
    spelled = spell(value if not isinstance(value, str) else value[:width])
    text = visible(spelled[: width + 1], keep="")
    return text if len(text) <= width else text[: width - 1] + "…"


def agree(left: JSON, right: JSON) -> bool:
    """Whether two plain values mean the same.

    A boolean is never a number. A number and its text agree, because models write ``"100"`` where
    the user said 100.
    """
    if type(left) is str and type(right) is str:
        return left == right
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, _NUMBER):
        return left == right if not isinstance(right, str) else _spells(right, left)
    if isinstance(right, _NUMBER):
        return isinstance(left, str) and _spells(left, right)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(agree(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(agree, left, right))
    return bool(left == right)


def same(left: object, right: object) -> bool:
    """Whether two values are equal: 5 is 5.0, and values of other types differ."""
    kind = type(left)
    if kind is str or type(right) is str:
        return kind is type(right) and bool(left == right)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def is_same_act(left: Mapping[str, JSON], right: Mapping[str, JSON]) -> bool:
    """Whether two calls of an action do the same. A missing value is null, and texts that look the
    same count as equal."""
    return look_the_same(dict(left), dict(right))


ArgumentsKey = frozenset[Hashable]
_PLAINLY_EQUAL = frozenset((str, int, float, type(None)))


def key_of(arguments: Mapping[str, JSON]) -> ArgumentsKey:
    """A key that is equal for the same arguments in any order. Python takes a boolean for a number,
    so booleans are marked."""
    for value in arguments.values():
        if type(value) not in _PLAINLY_EQUAL:
            return frozenset(_part(name, item) for name, item in arguments.items())
    return frozenset(arguments.items())


def _part(name: str, value: JSON) -> Hashable:
    if type(value) in _PLAINLY_EQUAL:
        return name, value
    if type(value) is bool:
        return name, value, bool
    return name, spell(_normal(value)), dict


def _normal(value: JSON) -> JSON:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _normal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_normal(item) for item in value]
    return value


def _spells(text: str, number: float) -> bool:
    if len(text) > 64:
        return False
    try:
        spelled = json.loads(text)
    except ValueError:
        return False
    if isinstance(spelled, bool) or not isinstance(spelled, _NUMBER):
        return False
    return spelled == number


def spoken_at(answer: JSON) -> int:
    """The event of the message that answers a question of the machine; -1 if there is none."""
    message = answer.get("message") if isinstance(answer, Mapping) else None
    return message if isinstance(message, int) else -1
