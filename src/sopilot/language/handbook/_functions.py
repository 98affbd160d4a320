"""The functions of expressions beyond CEL's own: a closed list.

Like the operators they never guess: a null, a value of another kind or a list with nothing in
it where something is needed makes the expression undecided. A time is ISO 8601 text; where one
of two has no offset, it is taken to be in the other's.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import NamedTuple

from sopilot.language.handbook._strict_operators import (
    NULL_SIGN,
    Undecided,
    add,
    at_most,
    contains,
    numeric,
    on_one_clock,
    time_of,
    within_range,
)


class Function(NamedTuple):
    """``arity`` is how many arguments it takes."""

    run: Callable[..., object]
    arity: int
    says: str


def _items(values: object) -> list[object]:
    if not isinstance(values, list):
        raise Undecided("a list was expected")
    return values


def _sum(values: object) -> object:
    total: object = 0
    for one in _items(values):
        total = add(total, numeric(one))
    return total


def _least(values: object) -> object:
    found = _items(values)
    if not found:
        raise Undecided("the list is empty")
    least = found[0]
    for one in found:
        least = least if at_most(least, one) else one
    return least


def _most(values: object) -> object:
    found = _items(values)
    if not found:
        raise Undecided("the list is empty")
    most = found[0]
    for one in found:
        most = one if at_most(most, one) else most
    return most


def _round(value: object, digits: object) -> object:
    """Half away from zero, as money is rounded."""
    number, places = numeric(value), numeric(digits)
    if not isinstance(places, int) or not 0 <= places <= 12:
        raise Undecided("digits are a whole number from 0 to 12")
    # 1.005 * 100 is 100.49999999999999: what a person wrote decides, not its nearest double.
    with localcontext() as context:
        context.prec = 400
        exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
        return within_range(int(exact) if exact == int(exact) else float(exact))


def _time(value: object) -> datetime:
    if not isinstance(value, str) or value == NULL_SIGN:
        raise Undecided("a time was expected, as text")
    found = time_of(value)
    if found is None:
        raise Undecided("a text is no time: write 2026-01-31T09:30:00")
    return found


def _between(earlier: object, later: object) -> timedelta:
    first, second = on_one_clock(_time(earlier), _time(later))
    return second - first


def _seconds(earlier: object, later: object) -> object:
    return _whole(_between(earlier, later).total_seconds())


def _hours(earlier: object, later: object) -> object:
    return _whole(_between(earlier, later).total_seconds() / 3600)


def _days(earlier: object, later: object) -> object:
    return _whole(_between(earlier, later).total_seconds() / 86_400)


def _whole(value: float) -> object:
    return int(value) if value == int(value) else value


def _day(time: object) -> str:
    return _time(time).date().isoformat()


def _year(time: object) -> object:
    """Text, as a key of a table is."""
    return _day(time)[:4]


def _years(earlier: object, later: object) -> object:
    """Birthdays passed: who was born on the 29th of February has theirs on the 1st of March."""
    if _between(earlier, later) < timedelta(0):
        return -_whole_years(_time(later), _time(earlier))
    return _whole_years(_time(earlier), _time(later))


def _whole_years(first: datetime, second: datetime) -> int:
    if first.tzinfo and second.tzinfo:
        second = second.astimezone(first.tzinfo)
    before = (second.month, second.day) < (first.month, first.day)
    return second.year - first.year - before


def _pairs(first: object, second: object) -> object:
    """Lists that belong together have one length; of others nobody knows what belongs to what."""
    ones, others = _items(first), _items(second)
    if len(ones) != len(others):
        raise Undecided("the lists have different lengths")
    return [[one, other] for one, other in zip(ones, others, strict=True)]


def _lookup(table: object, key: object, otherwise: object) -> object:
    if not isinstance(table, dict) or not isinstance(key, str) or key == NULL_SIGN:
        raise Undecided("`lookup` needs a table and a text")
    contains(key, table)  # undecided where a key looks the same
    found = table.get(key, otherwise)
    if found is None or found == NULL_SIGN:
        raise Undecided("the table has no value there")
    return found


FUNCTIONS: dict[str, Function] = {
    "sum": Function(_sum, 1, "the sum of a list of numbers; 0 of an empty one"),
    "min": Function(_least, 1, "the least of a list of numbers, texts or times"),
    "max": Function(_most, 1, "the greatest of a list"),
    "round": Function(_round, 2, "a number to so many digits, half away from zero"),
    "seconds_between": Function(_seconds, 2, "from the first time to the second, in seconds"),
    "hours_between": Function(_hours, 2, "the same in hours"),
    "days_between": Function(_days, 2, "the same in days of 24 hours"),
    "years_between": Function(_years, 2, "whole years from the first day to the second, as an age"),
    "day": Function(_day, 1, "the date of a time, as text"),
    "year": Function(_year, 1, "the year of a time, as text: a key of a table"),
    "zip": Function(_pairs, 2, "two lists of one length as a list of pairs"),
    "lookup": Function(_lookup, 3, "the value under a key of a table, or else the third"),
}
