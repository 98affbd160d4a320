"""Values of every type, the right ones and what an attacker makes of them."""

from __future__ import annotations

import random
from typing import Any

from sopilot.values.text import digest_of

JSON = Any
LONG = "customer-" + "x" * 90
"""Longer than a frame shows. Two customers differ only behind it."""
USERS = ("ann", "bob", "eve", LONG + "-1", LONG + "-2", "a?")
GHOSTS = ("ghost", "", "ANN", "ann ")
CASES = ("case-1", "case-2", "case-3")
BOOKINGS = ("book-1", "book-2", "book-3")
FLIGHTS = ("F1", "F2", "F3", "F4")
VOUCHERS = ("gift-1", "gift-2", "gift-3")
NOTES = ("ok-1", "ok-2", "bad", "ok-1\0evil", "ok-3", "b\u200bad", "evi\u200bl")
GROUPS = ("vip", "staff")
AMOUNTS = (0, 5, 5.0, 7.5, 50, 500, 501, 5000, 999_999)
LARGE = 2**53
"""The first whole number whose successor no double can hold."""
NUMBERS = (123, 124, 5, 5000)
ITEMS = (["a"], ["a", "b"], ["a", "b", "c"], [], [LONG, LONG + "-1"])
ADDRESSES = ({"country": "ch"}, {"country": "de"}, {}, {"country": None}, {"town": "x"})
JUNK = (
    None,
    True,
    False,
    0,
    "",
    "5000",
    5000,
    5000.0,
    "5",
    "ann\0",
    "ann\0evil",
    "ok-1\0evil",
    "a\ud800",
    ["ann"],
    {"user": "ann"},
    [],
    {},
    10**30,
    -1,
    LARGE + 1,
    LONG[:79] + "…",
    "@3f2a91c0…",
    *(f"@{digest_of(user)}" for user in ("ann", LONG + "-1", LONG + "-2")),
    f"@{digest_of(LONG + '-1')} {LONG[:60]}…",
    "true",
    "null",
    "[123]",
    {"$ref": "0" * 64, "bytes": 3},
    {"$dropped": "not JSON"},
)
KINDS = {
    "amount": "number",
    "most": "number",
    "largest": "number",
    "fee": "number",
    "line": "integer",
    "items": "array",
    "address": "object",
    "consent": "boolean",
}


def kind_of(name: str) -> str:
    """The type of everything that is called so."""
    return KINDS.get(name, "string")


def is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_OF_TYPE = {
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": lambda value: is_number(value) and value == int(value),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def is_of_type(value: JSON, kind: str) -> bool:
    return _OF_TYPE[kind](value)


def retyped(value: JSON, rng: random.Random) -> JSON:
    """What looks like the value and is another one, or the same in another spelling."""
    if isinstance(value, bool):
        return rng.choice((str(value).lower(), int(value), None))
    if isinstance(value, int | float):
        return rng.choice((str(value), float(value), -value, value + 1, bool(value), [value]))
    if isinstance(value, str):
        made = (
            value + "\0",
            value + "\0evil",
            value.upper(),
            value + " ",
            value[:1] + "\u200b" + value[1:],
            value[:79] + "…",
            [value],
            {"value": value},
            "\ud800" + value,
            None,
        )
        return rng.choice(made)
    if isinstance(value, list):
        return rng.choice((value + value, value[:1], str(value), None, [value]))
    if isinstance(value, dict):
        return rng.choice(({**value, "country": "ch"}, {}, [value], str(value), None))
    return rng.choice(JUNK)
