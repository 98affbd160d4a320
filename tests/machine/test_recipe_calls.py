"""Places in answers that calls of a recipe look into."""

from __future__ import annotations

import pytest

from sopilot.handbook.requirements import Path
from sopilot.machine.recipes import Absent, at_path
from sopilot.values.json import JSON


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        (("rows", 0, "id"), 7),
        (("rows", 1), Absent),
        (("rows", "id"), Absent),
        (("none",), Absent),
        (("nothing",), Absent),
        ((0,), Absent),
    ],
)
def test_a_place_in_an_answer(steps: tuple[str | int, ...], value: JSON | type[Absent]) -> None:
    answers: dict[str, JSON] = {"read": {"rows": [{"id": 7}], "none": None}}
    result = at_path(Path("read", steps), answers)
    assert isinstance(result, Absent) if value is Absent else result == value
    assert isinstance(at_path(Path("other", steps), answers), Absent)
