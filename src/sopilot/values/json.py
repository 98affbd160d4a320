"""JSON values: plain, comparable, canonical.

Texts that look the same (two spellings of `é`, a space at the end, a sign without width) are
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
"""Marks, letters and unassigned signs that Unicode has screens leave out, and the empty braille
cell; those of the categories below are told by their category."""

_UNSEEN_CATEGORIES = ("Cf", "Cc")


def without_unseen(text: str) -> str:
    """Without signs that leave no trace on a screen; spaces stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign
        for sign in text
        if sign not in _UNSEEN
        and (sign.isspace() or unicodedata.category(sign) not in _UNSEEN_CATEGORIES)
    )


def as_seen(text: str) -> str:
    """Equal for texts that look the same; letters keep their case."""
    if text.isascii() and text.isprintable():
        return text.strip()
    seen = without_unseen(unicodedata.normalize("NFKC", text))
    # Signs that an unseen one kept apart may be one sign now.
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
    """A person's name in a form that is equal for spellings with another case, width, spacing,
    digits or invisible signs. Letters of another alphabet stay other letters, even if they look
    alike."""
    if name.isascii() and name.isprintable():
        return " ".join(name.casefold().split())
    folded = unicodedata.normalize("NFKC", name).casefold()
    # Capitals may come apart in folding, and `İ` leaves its dot behind.
    folded = unicodedata.normalize("NFKC", folded).replace("i\u0307", "i").replace("ı", "i")
    digits = (str(unicodedata.decimal(sign, sign)) for sign in without_unseen(folded))
    return " ".join("".join(digits).split())


if TYPE_CHECKING:
    JSON: TypeAlias = "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"
    """A JSON value: null, boolean, number, string, list, object."""
else:
    # Libraries that read annotations as they run cannot follow an alias that names itself.
    JSON = Any


Value = TypeVar("Value", bound="JSON")

Fields: TypeAlias = Mapping[str, Any]
"""A JSON object whose shape its reader knows by its kind: an operation's fields that were
checked, the payload of an event, what this program wrote itself."""

Judge: TypeAlias = Callable[[str, Mapping[str, JSON]], bool | None]
"""A verdict expression over its variables; ``None``, or an error, where it cannot say."""


class Missing(Enum):
    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""Stands for a missing value; ``None`` is a value."""

DEEPEST = 64
"""Nesting beyond this is dropped: no honest tool needs it, and encoders recurse."""

_MOST = 1 << 4096
_LEAST = -_MOST
_REF = "$ref"
_DROPPED = "$dropped"
_NUMBER = (int, float)
_LISTS = (list, tuple)


def _encoder() -> Callable[[JSON], str]:
    whole = json.JSONEncoder(
        sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    # `encode` sets the C encoder up anew for every value, which takes as long as spelling a
    # small one, and looks for cycles, of which plain values have none. Where there is no such
    # encoder, or it is made in another way, `encode` it is.
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
"""A named tuple from its values in order: half the price of calling its class."""

spell = _encoder()
"""The text of ``canonical``."""


def canonical(value: JSON) -> bytes:
    """The one spelling of a plain value: sorted keys, no spaces, UTF-8."""
    return spell(value).encode("utf-8", "surrogatepass")


def plain(value: object, depth: int = 0) -> JSON:
    """A private JSON copy of anything; a value that isn't JSON becomes ``{"$dropped": why}``.

    The copy keeps a caller's later changes out of the configuration, and the
    limits keep a hostile value from breaking an encoder. Keys are in canonical
    order, so that a run and its replay iterate alike.
    """
    if isinstance(value, str):
        if type(value) is str and value.isascii():
            return value
        return str.encode(value, "utf-8", "replace").decode("utf-8")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if _LEAST < value < _MOST else {_DROPPED: "integer too large"}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {_DROPPED: f"not finite: {value}"}
    if depth >= DEEPEST:
        return {_DROPPED: "nested too deeply"}
    if isinstance(value, dict):
        return plain_mapping(value, depth + 1)
    if isinstance(value, _LISTS):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return plain_mapping(value, depth + 1)
    return {_DROPPED: "not JSON"}


def plain_mapping(value: Mapping[Any, object], depth: int = 1) -> dict[str, JSON]:
    if not value:
        return {}
    copy = {}
    in_order = True
    last = ""
    for key, item in value.items():
        # Most keys and values are short ASCII: no call for them.
        if type(key) is not str or not key.isascii():
            key = plain(key) if isinstance(key, str) else _key(key)
        in_order = in_order and last <= key
        last = key
        copy[key] = item if type(item) is str and item.isascii() else plain(item, depth)
    return copy if in_order else {key: copy[key] for key in sorted(copy)}


def _key(key: object) -> str:
    """Spelled as a JSON encoder would; other keys have no safe spelling."""
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int) and _LEAST < key < _MOST:
        return str(int(key))
    return _DROPPED


def without_references(value: Value) -> Value:
    """A plain value in which nothing has the form that stands in a trace for a withheld one:
    a sender could blind the audit with it."""
    copy: Any = value
    if isinstance(value, dict):
        copy = {key: without_references(item) for key, item in value.items()}
        if _REF in value:
            copy = {_DROPPED: "has the form of a reference"}
    elif isinstance(value, list):
        copy = [without_references(item) for item in value]
    return cast("Value", copy)


def escape_references(value: Value) -> Value:
    """A tool's answer in which nothing has the form of a withheld value: its own key `$ref`
    becomes `$$ref`, `$$ref` becomes `$$$ref`."""
    copy: Any = value
    if isinstance(value, dict):
        escaped = {key: f"${key}" for key in value if key.lstrip("$") == "ref" and key[0] == "$"}
        copy = {escaped.get(key, key): escape_references(item) for key, item in value.items()}
    elif isinstance(value, list):
        copy = [escape_references(item) for item in value]
    return cast("Value", copy)


def parts_of(value: JSON) -> Iterator[JSON]:
    """The value and everything inside of it, keys left out."""
    yield value
    if isinstance(value, Mapping):
        for item in value.values():
            yield from parts_of(item)
    elif isinstance(value, _LISTS):
        for item in value:
            yield from parts_of(item)


def holds_stand_in(value: JSON) -> bool:
    """Whether something in it stands for a value that was not kept as it was sent."""
    return any(
        isinstance(part, Mapping) and (_DROPPED in part or part.keys() == {_REF, "bytes"})
        for part in parts_of(value)
    )


def shown(value: JSON, width: int = 80) -> str:
    """Quoted as one line of JSON, so that a value cannot pass for the machine's own words."""
    spelled = spell(value if not isinstance(value, str) else value[:width])
    text = visible(spelled[: width + 1], keep="")
    return text if len(text) <= width else text[: width - 1] + "…"


def agree(left: JSON, right: JSON) -> bool:
    """Whether two plain values say the same.

    A boolean is never a number. A number and a string that spells it agree,
    because models write ``"100"`` where the user said 100.
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
    """Equal, with one kind of number: 5 is 5.0, and nothing is equal across types."""
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
    """Whether two calls of an action do the same: a value left out is one that is null, and texts
    that look the same may be one."""
    return look_the_same(dict(left), dict(right))


ArgumentsKey = frozenset[Hashable]
_PLAINLY_EQUAL = frozenset((str, int, float, type(None)))


def key_of(arguments: Mapping[str, JSON]) -> ArgumentsKey:
    """Equal for arguments that are the same, whatever their order. Python's own equality has
    one kind of number; it takes a boolean for one, so that is marked."""
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
    """The number of the message that answers one of the machine's questions, -1 without one."""
    message = answer.get("message") if isinstance(answer, Mapping) else None
    return message if isinstance(message, int) else -1
