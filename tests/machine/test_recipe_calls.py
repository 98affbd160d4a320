"""Which calls a step stands for, from values and earlier answers."""

from __future__ import annotations

from typing import Any

import pytest

from sopilot.handbook.requirements import Path
from sopilot.machine.recipes import (
    MOST_ELEMENTS,
    Absent,
    _looks_into_answers,
    at_path,
    elements,
    linked,
    wanted_calls,
)
from sopilot.program.model import Act, Literal, Local

ANSWERS: dict[str, Any] = {"order": {"items": [{"id": 7}, {"id": 8}], "none": None, "n": 5}}
EACH = Path("order", ("items",))


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (("n",), 5),
        (("items", 0, "id"), 7),
        (("items", 1, "id"), 8),
        (("items", 2), "nothing at"),
        (("items", "id"), "nothing at"),
        (("n", 0), "nothing at"),
        (("gone",), "nothing at"),
        (("none",), "is null at"),
    ],
)
def test_a_place_in_an_answer(steps: tuple[str | int, ...], found: Any) -> None:
    value = at_path(Path("order", steps), ANSWERS)
    assert found in value.why if isinstance(value, Absent) else value == found
    absent = at_path(Path("other", steps), ANSWERS)
    assert isinstance(absent, Absent)
    assert absent.why == "`other` was not answered"


def test_a_call_for_each_element() -> None:
    act = Act("a", "look", (("id", Path("it", ("id",))),), each=EACH, element="it")
    found = wanted_calls(act, lambda name: Absent("none"), ANSWERS)
    assert isinstance(found, list)
    assert [call.arguments for call in found] == [{"id": 7}, {"id": 8}]
    assert linked([[act]])
    assert elements(Act("a", "look", ()), ANSWERS) == [ANSWERS]
    assert _looks_into_answers(act) is True
    assert _looks_into_answers(Act("a", "look", (("id", Literal(1)),))) is False


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"items": 5}, "is no list"),
        ({}, "nothing at"),
        ({"items": [1] * (MOST_ELEMENTS + 1)}, "has more than"),
        ({"items": [1] * MOST_ELEMENTS}, ""),
    ],
)
def test_what_is_no_list_of_elements(answer: dict[str, Any], why: str) -> None:
    act = Act("a", "look", (("id", Literal(1)),), each=EACH, element="it")
    found = wanted_calls(act, lambda name: Absent("none"), {"order": answer})
    assert isinstance(found, Absent) is bool(why)
    assert why in (found.why if isinstance(found, Absent) else "")


@pytest.mark.parametrize(
    ("options", "arguments", "free"),
    [
        ({}, None, ()),
        ({"open_values": True}, {"x": 1}, ("y",)),
        ({"optional": ("b",)}, {"x": 1}, ()),
        ({"optional": ("b",), "open_values": True}, {"x": 1}, ()),
    ],
)
def test_a_name_without_a_value(
    options: dict[str, Any], arguments: dict[str, Any] | None, free: tuple[str, ...]
) -> None:
    act = Act("a", "look", (("x", Local("a")), ("y", Local("b"))))
    assert not linked([[act]])
    found = wanted_calls(act, lambda name: 1 if name == "a" else Absent("none"), {}, **options)
    if arguments is None:
        assert isinstance(found, Absent)
    else:
        assert isinstance(found, list)
        assert [(call.arguments, call.open) for call in found] == [(arguments, free)]
