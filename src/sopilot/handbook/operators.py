"""Operators and functions of expressions that never guess.

Standard CEL says that `null == 'frozen'` and `'123' in [123]` are false, so a missing answer or
another spelling would prove a negation. Here both are undecided. There is one kind of number:
`5 / 2` is 2.5, and 5 equals 5.0. Only a `null` that the author wrote may be compared with null.
Numbers are calculated with as they are written: 0.7 + 0.1 is 0.8. Texts that look the same and
are spelled differently are neither equal nor unequal; the same goes for two times in text whose
spelling disagrees with the clock. A time is ISO 8601 text; where one of two has no offset, it has
the other's.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from functools import partial
from typing import Any, Final, NamedTuple

from sopilot.values.json import CLASS, as_seen, look_the_same
from sopilot.values.patterns import UnreadablePattern, has_form

WRITTEN_NULL: Final = object()
"""A ``null`` that the author wrote; one in the data is ``None``."""

INT64 = 2**63
_DECIMALS = Context(prec=60)

_WRITTEN = 15
"""So many digits of a decimal survive as a double; one with more is the outcome of a division."""

_LOOKS = "two strings look the same but are spelled differently"
_SPELLED = "two times are spelled differently: compare `timestamp(…)`"


class Undecided(ValueError):
    """The values don't decide it; `&&` and `||` treat it as unknown."""


def settle(parts: Iterable[Callable[[], object]], settling: bool) -> bool:
    """``settling`` if a part says so, even if others are undecided; else the opposite."""
    doubt: Undecided | None = None
    for part in parts:
        try:
            if truth(part()) is settling:
                return settling
        except Undecided as problem:
            doubt = problem
    if doubt is not None:
        raise doubt
    return not settling


def truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise Undecided("true or false was expected")
    return value


def equal(left: object, right: object) -> bool:
    if left is WRITTEN_NULL or right is WRITTEN_NULL:
        return all(item is None or item is WRITTEN_NULL for item in (left, right))
    if left is None or right is None:
        raise Undecided("a value is null")
    if _is_number(left) and _is_number(right):
        return bool(left == right)
    if type(left) is not type(right):
        raise Undecided(f"{_kind(left)} is compared with {_kind(right)}")
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and _all_equal(zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        if left.get(CLASS) != right.get(CLASS):
            raise Undecided("objects of different classes are compared")
        if left.keys() == right.keys():
            return _all_equal((left[key], right[key]) for key in left)
        if set(map(as_seen, left)) == set(map(as_seen, right)):
            raise Undecided(_LOOKS)
        return False
    if isinstance(left, str) and isinstance(right, str) and left != right:
        _unlike(left, right)
    if not isinstance(left, bool | str | datetime | timedelta):
        raise Undecided(f"{_kind(left)} cannot be compared")
    return bool(left == right)


def _unlike(left: str, right: str) -> None:
    """A tool may well take `José` in two spellings, or with a space behind it, for one."""
    if look_the_same(left, right):
        raise Undecided(_LOOKS)
    if _compared(left, right) == 0:
        raise Undecided(_SPELLED)


def time_of(text: str) -> datetime | None:
    """ISO 8601."""
    try:
        if len(text) == 10:
            return datetime.combine(date.fromisoformat(text), datetime.min.time())
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def on_one_clock(first: datetime, second: datetime) -> tuple[datetime, datetime]:
    """A time without an offset is taken to be in the other's."""
    return first.replace(tzinfo=first.tzinfo or second.tzinfo), second.replace(
        tzinfo=second.tzinfo or first.tzinfo
    )


def _compared(left: str, right: str) -> int | None:
    """-1, 0 or 1 for two times, in the order of the clock; ``None`` of other texts."""
    if not all(
        len(entry) > 9 and entry[4] == "-" and entry[0].isdigit() for entry in (left, right)
    ):
        return None
    item, other = time_of(left), time_of(right)
    if item is None or other is None:
        return None
    return _order(*on_one_clock(item, other))


def _all_equal(pairs: Iterable[tuple[object, object]]) -> bool:
    return settle((partial(equal, *pair) for pair in pairs), False)


def unequal(left: object, right: object) -> bool:
    return not equal(left, right)


def contains(item: object, among: object) -> bool:
    if isinstance(among, dict):
        if not isinstance(item, str):
            raise Undecided("a key isn't a string")
        if item not in among:
            for key in among:
                _unlike(item, key)
        return item in among
    if not isinstance(among, list):
        raise Undecided("`in` needs a list or a map")
    return settle((partial(equal, item, entry) for entry in among), True)


def at(among: object, key: object) -> object:
    """The value under a key of a map, or the element of a list."""
    if isinstance(among, dict) and isinstance(key, str):
        if key not in among:
            contains(key, among)
            raise Undecided(f"there is no field `{key}`")
        if sum(look_the_same(key, other) for other in among) > 1:
            raise Undecided(_LOOKS)
        return among[key]
    if isinstance(among, list) and _is_number(key):
        place = numeric(key)
        if place != int(place) or not 0 <= place < len(among):
            raise Undecided(f"the list has no element {key}")
        return among[int(place)]
    raise Undecided("`[…]` needs a list and a number, or a map and a string")


def seen_alike(decide: Callable[[str, str], bool], name: str) -> Callable[[object, object], bool]:
    """Decided only where the texts as they are seen give the same answer."""

    def decided(text: object, part: object) -> bool:
        if not isinstance(text, str) or not isinstance(part, str):
            raise Undecided(f"`{name}` needs two strings")
        answer = decide(text, part)
        seen = as_seen(text), as_seen(part)
        if seen != (text, part) and decide(*seen) is not answer:
            raise Undecided("a string has invisible characters or spaces")
        return answer

    return decided


def size(value: object) -> int:
    if isinstance(value, str):
        if len(as_seen(value)) != len(value):
            raise Undecided("a string has invisible characters or spaces")
        return len(value)
    if isinstance(value, list | dict):
        return len(value)
    raise Undecided("`size` needs a string, a list or a map")


def add(left: object, right: object) -> object:
    if _is_number(left) and _is_number(right):
        return _calculated(_DECIMALS.add, operator.add, left, right)
    if type(left) is not type(right) or not isinstance(left, str | list):
        raise Undecided("`+` needs two numbers, two strings or two lists")
    joined = left + right  # type: ignore[operator]  # checked above
    if len(joined) > 1_000_000:
        raise Undecided("a value is too large")
    return joined


def divide(left: object, right: object) -> object:
    over, under = numeric(left), _divisor(right)
    if isinstance(over, int) and isinstance(under, int) and over % under == 0:
        return over // under
    return _calculated(_DECIMALS.divide, operator.truediv, over, under)


def remainder(left: object, right: object) -> object:
    """The sign is the dividend's."""
    over, under = numeric(left), _divisor(right)
    if isinstance(over, int) and isinstance(under, int):
        rest = abs(over) % abs(under)
        return rest if over >= 0 else -rest
    return _calculated(_DECIMALS.remainder, math.fmod, over, under)


def _divisor(value: object) -> int | float:
    number = numeric(value)
    if number == 0:
        raise Undecided("division by zero")
    return number


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[object, object], bool]:
    def decided(left: object, right: object) -> bool:
        _comparable(left, right)
        return compare(left, right)

    return decided


less = _ordered(operator.lt)
greater = _ordered(operator.gt)


def _comparable(left: object, right: object) -> None:
    """Raise ``Undecided`` unless the two have an order."""
    if _is_number(left) and _is_number(right):
        return
    if type(left) is not type(right) or not isinstance(left, str | datetime | timedelta):
        raise Undecided(f"{_kind(left)} and {_kind(right)} can't be ordered")
    if isinstance(left, str) and isinstance(right, str):
        order = _order(left, right)
        # By its characters, `02-01T00:30+14:00` is after `01-31T11:00Z`; by the clock, before.
        if _compared(left, right) not in (None, order):
            raise Undecided(_SPELLED)
        if _order(as_seen(left), as_seen(right)) != order:
            raise Undecided(_LOOKS)


def _order(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _kind(value: object) -> str:
    if _is_number(value):
        return "a number"
    if value is None or value is WRITTEN_NULL:
        return "null"
    kinds = {bool: "true or false", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a value of another kind")


def _is_number(value: object) -> bool:
    """Raise for values such as ``double('nan')``, which can't be ordered."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Undecided("a number is not finite")
    return isinstance(value, int | float) and not isinstance(value, bool)


def numeric(value: object) -> int | float:
    if not _is_number(value):
        raise Undecided("a number was expected")
    return value  # type: ignore[return-value]  # checked above


def _calculated(
    exactly: Callable[[Decimal, Decimal], Decimal],
    nearly: Callable[[float, float], float],
    left: object,
    right: object,
) -> int | float:
    """In decimals, where both are decimals that somebody wrote, and whole numbers are."""
    first, second = numeric(left), numeric(right)
    if isinstance(first, int) and isinstance(second, int):
        return within_range(nearly(first, second))
    item, other = _written(first), _written(second)
    if item is None or other is None:
        return within_range(nearly(first, second))
    try:
        result = exactly(item, other)
    except ArithmeticError as problem:
        raise Undecided("a number is too large") from problem
    whole = result.to_integral_value()
    return within_range(int(whole) if whole == result and abs(whole) < INT64 else float(result))


def _written(value: float) -> Decimal | None:
    if isinstance(value, int) or value.is_integer():
        return Decimal(int(value))
    decimal = Decimal(repr(value))
    return decimal if len(decimal.as_tuple().digits) <= _WRITTEN else None


def within_range(value: int | float) -> int | float:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Undecided("a number is too large")
    elif not -INT64 <= value < INT64:
        raise Undecided("a number is too large")
    return value


class Function(NamedTuple):
    """``arity`` counts the value before a method's point; ``kind`` is the result's, if fixed."""

    run: Callable[..., object]
    arity: int
    kind: str | None = None


OPERATORS: dict[str, Function] = {
    "==": Function(equal, 2),
    "!=": Function(unequal, 2),
    "in": Function(contains, 2),
    "+": Function(add, 2),
    "-": Function(partial(_calculated, _DECIMALS.subtract, operator.sub), 2),
    "*": Function(partial(_calculated, _DECIMALS.multiply, operator.mul), 2),
    "/": Function(divide, 2),
    "%": Function(remainder, 2),
    "<": Function(less, 2),
    "<=": Function(_ordered(operator.le), 2),
    ">": Function(greater, 2),
    ">=": Function(_ordered(operator.ge), 2),
}


def _items(values: object) -> list[object]:
    if not isinstance(values, list):
        raise Undecided("a list was expected")
    return values


def _sum(values: object) -> object:
    total: object = 0
    for item in _items(values):
        total = add(total, numeric(item))
    return total


def _best(values: object, is_better: Callable[[object, object], bool]) -> object:
    items = _items(values)
    if not items:
        raise Undecided("the list is empty")
    best = items[0]
    for item in items:
        best = item if is_better(item, best) else best
    return best


def _round(value: object, digits: object) -> object:
    """Half away from zero, as money is rounded."""
    number, places = numeric(value), numeric(digits)
    if not isinstance(places, int) or not 0 <= places <= 12:
        raise Undecided("`digits` must be a whole number from 0 to 12")
    # 1.005 * 100 is 100.49999999999999: what a person wrote decides, not its nearest double.
    with localcontext() as context:
        context.prec = 400
        exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
        return within_range(int(exact) if exact == int(exact) else float(exact))


def _time(value: object) -> datetime:
    if not isinstance(value, str):
        raise Undecided("a time was expected, as a string")
    result = time_of(value)
    if result is None:
        raise Undecided("the string isn't a time: write 2026-01-31T09:30:00")
    return result


def _between(earlier: object, later: object) -> timedelta:
    first, second = on_one_clock(_time(earlier), _time(later))
    return second - first


def _length(unit: int, earlier: object, later: object) -> object:
    return whole(_between(earlier, later).total_seconds() / unit)


def whole(value: int | float) -> int | float:
    """A whole number of 64 bits as such: 5.0 is 5."""
    return int(value) if value == int(value) and abs(value) < INT64 else value


def _day(time: object) -> str:
    return _time(time).date().isoformat()


def _years(earlier: object, later: object) -> int:
    """Birthdays passed: people born on the 29th of February have theirs on the 1st of March."""
    if _between(earlier, later) < timedelta(0):
        return -_years(later, earlier)
    first, second = _time(earlier), _time(later)
    if first.tzinfo and second.tzinfo:
        second = second.astimezone(first.tzinfo)
    return second.year - first.year - ((second.month, second.day) < (first.month, first.day))


def _pairs(first: object, second: object) -> object:
    """Lists that belong together have the same length; others can't be paired."""
    left, right = _items(first), _items(second)
    if len(left) != len(right):
        raise Undecided("the lists have different lengths")
    return [list(pair) for pair in zip(left, right, strict=True)]


def _lookup(table: object, key: object, otherwise: object) -> object:
    if not isinstance(table, dict) or not isinstance(key, str):
        raise Undecided("`lookup` needs a table and a string")
    result = at(table, key) if contains(key, table) else otherwise
    if result is None or result is WRITTEN_NULL:
        raise Undecided("the table has no value for this key")
    return result


def _matches(text: str, pattern: str) -> bool:
    try:
        return has_form(text, pattern)
    except UnreadablePattern as problem:
        raise Undecided("the pattern is not valid") from problem


def _timestamp(value: object) -> datetime:
    time = _time(value)
    if time.tzinfo is None:
        raise Undecided("a time has no offset: write 2026-01-31T09:30:00Z")
    return time


_DURATION = re.compile(r"(-?)((?:\d+(?:\.\d+)?(?:h|ms|m|s|us|ns))+)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def _duration(value: object) -> timedelta:
    match = _DURATION.fullmatch(value) if isinstance(value, str) and len(value) < 64 else None
    if match is None:
        raise Undecided("the string isn't a duration: write 1h30m")
    parts = re.findall(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|ns)", match[2])
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds > 10**10:
        raise Undecided("a number is too large")
    return timedelta(seconds=-seconds if match[1] else seconds)


_WHOLE_TEXT = re.compile(r"-?[0-9]{1,19}")
_NUMBER_TEXT = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?([eE][-+]?[0-9]{1,3})?")


def _int(value: object) -> object:
    if isinstance(value, str):
        if _WHOLE_TEXT.fullmatch(value) is None:
            raise Undecided("the string isn't a whole number")
        return within_range(int(value))
    return within_range(int(numeric(value)))


def _double(value: object) -> object:
    if isinstance(value, str):
        if _NUMBER_TEXT.fullmatch(value) is None:
            raise Undecided("the string isn't a number")
        return within_range(float(value))
    return numeric(value)


def _string(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return repr(whole(numeric(value)))


_MATCHES = Function(seen_alike(_matches, "matches"), 2, "truth")
_SIZE = Function(size, 1, "number")

FUNCTIONS: dict[str, Function] = {
    "sum": Function(_sum, 1),
    "min": Function(partial(_best, is_better=less), 1),
    "max": Function(partial(_best, is_better=greater), 1),
    "round": Function(_round, 2),
    "seconds_between": Function(partial(_length, 1), 2),
    "hours_between": Function(partial(_length, 3600), 2),
    "days_between": Function(partial(_length, 86_400), 2),
    "years_between": Function(_years, 2),
    "day": Function(_day, 1),
    "year": Function(lambda time: _day(time)[:4], 1),
    "zip": Function(_pairs, 2),
    "lookup": Function(_lookup, 3),
    "size": _SIZE,
    "matches": _MATCHES,
    "int": Function(_int, 1, "number"),
    "double": Function(_double, 1, "number"),
    "string": Function(_string, 1, "text"),
    "timestamp": Function(_timestamp, 1),
    "duration": Function(_duration, 1),
    ".contains": Function(seen_alike(lambda text, part: part in text, "contains"), 2, "truth"),
    ".startsWith": Function(seen_alike(str.startswith, "startsWith"), 2, "truth"),
    ".endsWith": Function(seen_alike(str.endswith, "endsWith"), 2, "truth"),
    ".matches": _MATCHES,
    ".size": _SIZE,
}
"""A name that starts with a point is a method, written behind a value: `text.contains(part)`."""
