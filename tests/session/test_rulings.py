"""Who may decide about a held call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import pytest

from sopilot.machine.call_ledger import HeldCall
from sopilot.machine.program_set import guarded_actions
from sopilot.machine.state import Configuration
from sopilot.messages.errors import UserMistake
from sopilot.program.model import ActionFacts, Guarded, Program, Source
from sopilot.records.entitlements import Entitlements, Vote
from sopilot.records.people import THE_MACHINE, People, Person, Principal
from sopilot.values.json import JSON

HELD = HeldCall(
    "w", "wire", {"to": "una", "amount": 9}, "p1", ("boss", "audit"), 2, 100.0, 200.0, 7
)

# --- who may decide -------------------------------------------------------------------

PEOPLE = People(persons={"ann": Person("Ann", ("boss",), aliases=("A-7",))})
TOKEN = Principal("Ann", "token", "t1")
FACTS = ActionFacts({"to": {"type": "string"}, "amount": {"type": "number"}}, ("to",))


def program(entry: str, **parts: Any) -> Program:
    return Program(entry, {}, Source("h", entry, ""), "", **parts)


def refused(
    decision: str = "approve",
    by: str = "ann",
    arguments: Mapping[str, JSON] | None = None,
    *,
    people: People | None = None,
    metadata: Mapping[str, Any] | None = None,
    **options: Any,
) -> str | None:
    """The code of what forbids the decision."""
    rules = Entitlements(people or People(), metadata or {}, Configuration(), **options)
    try:
        rules.require(Vote(decision, by, "boss", arguments), HELD, 150.0)
    except UserMistake as problem:
        return problem.diagnostics[0].code
    return None


@pytest.mark.parametrize(
    ("decision", "code"),
    [
        # Parties to the call: more in `tests/records/test_four_eyes.py`.
        ({"by": "operator"}, None),
        ({"decision": "expire", "by": ""}, None),
        ({"by": "9"}, "party"),
        ({"metadata": {"requester": ""}}, None),
        ({"authors": {"ann"}}, "party"),
        ({"authors": {"bo"}}, None),
        ({"people": PEOPLE, "authors": {"a-7"}}, "party"),
        ({"people": PEOPLE, "metadata": {"requester": "a-7"}}, "party"),
        # Only an amendment has arguments, and those that the action takes.
        ({"arguments": {"to": "bea"}}, "amendment"),
        ({"decision": "reject", "arguments": {"to": "bea"}}, "amendment"),
        ({"decision": "amend", "arguments": {"to": "bea", "sum": 1}}, "unknown-argument"),
        ({"decision": "amend", "arguments": {"to": 5}}, "wrong-type"),
        ({"decision": "amend", "arguments": {"amount": 5}}, "missing-argument"),
        ({"decision": "amend", "arguments": {"to": "bea", "amount": 5}}, None),
    ],
)
def test_a_decision_is_refused_with_a_code(decision: dict[str, Any], code: str | None) -> None:
    programs = {"wire": program("wire", actions={"wire": FACTS})}
    assert refused(**decision, programs=programs) == code


def test_an_action_without_declared_inputs_takes_any_arguments() -> None:
    nothing = {"wire": program("wire", actions={"wire": ActionFacts({}, ("to",))})}
    for programs in ({}, {"wire": program("wire")}, nothing):
        assert refused("amend", arguments={"x": 1}, programs=programs) is None


@pytest.mark.parametrize(
    ("by", "who", "name"),
    [
        ("", TOKEN, "Ann"),
        ("a-7", TOKEN, "Ann"),
        ("bo", TOKEN, None),
        ("a-7", None, "Ann"),
        ("cy", None, "cy"),
        ("cy", THE_MACHINE, "cy"),
    ],
)
def test_an_alias_is_no_second_person(by: str, who: Principal | None, name: str | None) -> None:
    with nullcontext() if name else pytest.raises(UserMistake, match="this is Ann's token"):
        assert PEOPLE.name_of(by, who) == name


# --- guards of several programs -------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "stricter"),
    [
        (Guarded("a"), Guarded("a"), Guarded("a")),
        (Guarded("a"), Guarded("a", ("r",), 1), Guarded("a", ("r",), 1)),
        (Guarded("a", ("r",), 1), Guarded("a", ("s",), 1), Guarded("a", ("r",), 1)),
        (Guarded("a", ("r",), 2), Guarded("a", ("s",), 1), Guarded("a", ("r",), 2)),
        (Guarded("a", recheck=True), Guarded("a"), Guarded("a", recheck=True)),
        (Guarded("a"), Guarded("a", recheck=True), Guarded("a", recheck=True)),
        (Guarded("a", when="x"), Guarded("a"), Guarded("a")),
        (Guarded("a", ("r",), 1, when="x"), Guarded("a", ("r",), 1, when="y"),
         Guarded("a", ("r",), 1)),
        (Guarded("a", ("r",), 1, when="x"), Guarded("a", ("r",), 2, when="x"),
         Guarded("a", ("r",), 2, when="x")),
    ],
)  # fmt: skip
def test_the_stricter_of_two_guards_of_an_action_holds(
    first: Guarded, second: Guarded, stricter: Guarded
) -> None:
    programs = {
        name: program(name, guarded=(guard,)) for name, guard in (("p", first), ("q", second))
    }
    assert guarded_actions(programs) == {"a": stricter}
