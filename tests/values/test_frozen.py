"""A frozen value is what a frozen dataclass is; only the way its fields are set differs."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from sopilot.program.model import Check, Function, Kind, ReturnStep
from sopilot.values.frozen import frozen


@frozen
class Made:
    name: str
    wanted: bool = True
    more: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plain:
    name: str
    wanted: bool = True
    more: Mapping[str, int] = field(default_factory=dict)


@frozen
class Doubled:
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("negative")


@frozen
class Folded:
    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Folded) and self.text.lower() == other.text.lower()

    def __hash__(self) -> int:
        return hash(self.text.lower())


def test_it_is_made_shown_and_compared_as_a_dataclass() -> None:
    made, plain = Made("a", more={"n": 1}), Plain("a", more={"n": 1})
    assert repr(made) == repr(plain).replace("Plain", "Made")
    assert made == Made("a", True, {"n": 1})
    assert made != Made("a", False, {"n": 1})
    assert [one.name for one in fields(made)] == ["name", "wanted", "more"]
    assert not hasattr(made, "__dict__")


def test_defaults_are_made_for_each() -> None:
    assert Made("a").more == {}
    assert Made("a").more is not Made("a").more


def test_nothing_can_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Made("a").name = "b"  # type: ignore[misc]  # what is tested


@pytest.mark.parametrize("arguments", [(), ("a", True, {}, "too many")])
def test_what_does_not_fit_is_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        Made(*arguments)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError):
        Made("a", other=1)  # type: ignore[call-arg]  # what is tested


def test_it_is_replaced_copied_and_pickled() -> None:
    made = Made("a", more={"n": 1})
    assert replace(made, name="b") == Made("b", more={"n": 1})
    assert copy.deepcopy(made) == made
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301  # our own bytes


def test_what_follows_making_is_done() -> None:
    with pytest.raises(ValueError, match="negative"):
        Doubled(-1)


def test_an_own_comparison_is_kept() -> None:
    assert Folded("A") == Folded("a")
    assert len({Folded("A"), Folded("a")}) == 1


def test_a_copy_has_what_its_original_derived() -> None:
    function = Function("f", Kind.RULE, (), (Check("a", "g", (), "g"), ReturnStep("end")))
    function.kept["seen"] = True
    for copied in (copy.deepcopy(function), pickle.loads(pickle.dumps(function))):  # noqa: S301
        assert copied == function
        assert copied.checks == function.checks
        assert copied.kept == {}
