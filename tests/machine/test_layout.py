"""Programs laid out for running: jumps, names, dangling ones with their place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from vm_programs import LOGGED_IN, TRANSFER, program

from sopilot.machine.layout import lay_out
from sopilot.messages.errors import UserMistake
from sopilot.program.model import (
    Act,
    Ask,
    Branch,
    Check,
    Choose,
    CompleteStep,
    Function,
    Holds,
    Kind,
    Literal,
    Option,
    ReturnStep,
    Step,
)

LAID = lay_out(TRANSFER)


@pytest.mark.parametrize(
    ("label", "names", "depends"),
    [
        ("login", {"username"}, True),
        ("login", {"password"}, True),
        ("login", {"amount", "to"}, False),
        ("money", {"amount"}, True),
        ("money", {"to", "password"}, False),
    ],
)
def test_a_check_depends_on_names(label: str, names: set[str], depends: bool) -> None:
    step = LAID.entry.steps[label]
    assert isinstance(step, Check)
    assert LAID.depends_on(step, frozenset(names)) is depends


def test_a_check_depends_on_what_is_learned_below_it() -> None:
    inner = Check("inner", "logged_in", (("username", Literal("bob")),), "inner")
    group = Function("group", Kind.GROUP, (), (inner, ReturnStep("end", Holds("inner"))))
    outer = Check("outer", "group", (), "outer")
    root = Function("go", Kind.PROCESS, (), (outer, CompleteStep("done")))
    laid = lay_out(program("go", root, group, LOGGED_IN))
    assert laid.depends_on(outer, frozenset({"password"}))
    assert not laid.depends_on(outer, frozenset({"username"}))


@pytest.mark.parametrize(
    ("steps", "path", "message"),
    [
        ((Check("a", "logged", (), "s"), CompleteStep("z")), "go@a", "`logged` is not there"),
        ((Check("a", "logged_in", (), "s", met="y"), CompleteStep("z")), "go@a",
         "`y` is not there"),
        ((Check("a", "logged_in", (), "s", unmet="y"), CompleteStep("z")), "go@a",
         "`y` is not there"),
        ((Act("a", "x", (), next="y"), CompleteStep("z")), "go@a", "`y` is not there"),
        ((Branch("a", Holds("s"), "z", "y"), CompleteStep("z")), "go@a", "`y` is not there"),
        ((Choose("a", "?", (Option("o", "y"),)), CompleteStep("z")), "go@a",
         "`y` is not there"),
        ((CompleteStep("z"), Ask("a", ("x",))), "go@a", "the steps end without an end"),
        ((), "go", "the steps end without an end"),
    ],
)  # fmt: skip
def test_a_name_that_dangles_is_told_with_its_place(
    steps: tuple[Step, ...], path: str, message: str
) -> None:
    broken = program("go", Function("go", Kind.PROCESS, (), steps), LOGGED_IN)
    with pytest.raises(UserMistake) as raised:
        lay_out(broken)
    (found,) = raised.value.diagnostics
    assert (found.code, found.message) == ("dangling-name", message)
    assert found.place is not None
    assert (found.place.source, found.place.path) == ("bank", path)


def test_an_entry_that_is_not_there() -> None:
    with pytest.raises(UserMistake) as raised:
        lay_out(replace(TRANSFER, entry="transfr"))
    (found,) = raised.value.diagnostics
    assert found.message == "`transfr` is not there"
    assert "transfer" in (found.help or "")


def test_a_round_of_asking_ends() -> None:
    steps = (Ask("a", ("x",), next="b"), Ask("b", ("y",), next="a"), ReturnStep("end"))
    root = Function("go", Kind.RULE, (), steps)
    laid = lay_out(program("go", root)).entry
    assert (laid.past_asking("a"), laid.past_acting("b")) == ("a", "b")
