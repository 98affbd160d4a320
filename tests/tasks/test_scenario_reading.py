"""Scenario files: what they mean, and every mistake in one go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loan_desk import FACTS, GOOD_TOOLS, HANDBOOK, scenario, suite_text

from sopilot.agent.result import Ending
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import UserMistake
from sopilot.tasks.scenarios import load_scenarios, read_scenarios

HERE = Path(__file__).parent


def test_every_mistake_is_told_at_once_with_its_place() -> None:
    text = (HERE / "mistakes.scenarios.yaml").read_text(encoding="utf-8")
    suite, found = read_scenarios(text, HANDBOOK, "it.yaml")
    assert suite is None
    said = "\n".join(map(str, found)) + "\n"
    golden = HERE / "mistakes.txt"
    if os.environ.get("SOPILOT_REGOLD"):
        golden.write_text(said, encoding="utf-8")
    assert said == golden.read_text(encoding="utf-8")


def test_a_file_needs_its_two_keys() -> None:
    with pytest.raises(UserMistake) as caught:
        load_scenarios("tools: {}", HANDBOOK, "it.yaml")
    messages = [one.message for one in caught.value.diagnostics]
    assert messages == [
        "a scenario file needs `handbook`",
        "a scenario file needs `scenarios`",
    ]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ('"500"', "`amount` must be of type number for `lend`, found the text `500`"),
        ("lots", "`amount` must be of type number for `lend`, found the text `lots`"),
        ("null", None),
        ("500.5", None),
    ],
)
def test_what_the_user_knows_is_what_the_goal_takes(written: str, problem: str | None) -> None:
    body = f"goal: lend\ninputs: {{amount: {written}}}\nexpect: executed"
    _, found = read_scenarios(suite_text(body), HANDBOOK, "it.yaml")
    assert [one.message for one in found] == ([problem] if problem else [])


def test_what_only_a_login_asks_for_is_typed_too() -> None:
    body = "goal: lend\ninputs: {password: 4711}\nexpect: executed"
    _, found = read_scenarios(suite_text(body), HANDBOOK, "it.yaml")
    problem = "`password` must be of type string for `lend`, found the number `4711`"
    assert [one.message for one in found] == [problem]


def test_a_gate_cannot_be_decreed() -> None:
    body = f"goal: lend\n{FACTS}\nverdicts: {{logged_in: true}}\nexpect: executed"
    _, found = read_scenarios(suite_text(body), HANDBOOK, "it.yaml")
    assert [one.code for one in found] == ["needless-verdict"]


@pytest.mark.parametrize(
    ("written", "ok", "value"),
    [
        ("ok", True, True),
        ("failed", False, None),
        ("'ok'", True, "ok"),
        ("{balance: 3}", True, {"balance": 3}),
        ("{result: [1, 2]}", True, [1, 2]),
        ("{failed: {error: denied}}", False, {"error": "denied"}),
        ("{when: {user: Ada}}", True, True),
        ("7", True, 7),
    ],
)
def test_an_answer_can_be_written_short(written: str, ok: bool, value: object) -> None:
    body = f"goal: lend\n{FACTS}\ntools:\n  login: {written}\nexpect: executed"
    (answer,) = scenario(body).tools["login"]
    assert (answer.result.ok, answer.result.value) == (ok, value)


def test_a_scenarios_own_tools_go_before_the_shared_ones() -> None:
    body = "goal: lend\ntools: {read_flags: {flagged: true}}\nexpect: {refused: flagged}"
    found = scenario(body)
    assert found.tools["read_flags"][0].result.value == {"flagged": True}
    assert found.tools["read_file"][0].result.value == {"solvent": True, "guarantor": False}
    assert (found.expect.ending, found.expect.cause) == (Ending.REFUSED, "flagged")


PIECES = st.sampled_from(
    [*suite_text(f"goal: lend\n{FACTS}\nexpect: executed").split(" "), "\n", "{", "]", "*a", "!!x"]
)


@settings(deadline=None, max_examples=300)
@given(st.lists(PIECES | st.text(max_size=4), max_size=40))
def test_no_text_escapes_as_an_exception(pieces: list[str]) -> None:
    suite, found = read_scenarios(" ".join(pieces), HANDBOOK, "it.yaml")
    assert (suite is None) == any(one.severity is Severity.ERROR for one in found)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 400), st.sampled_from(["", " ", "\n", ":", "- ", "{", "'", "x"]))
def test_a_damaged_file_is_read_or_refused(position: int, damage: str) -> None:
    text = suite_text(f"goal: lend\n{FACTS}\nexpect: executed\ncalls: [login]", GOOD_TOOLS)
    suite, found = read_scenarios(text[:position] + damage + text[position + 1 :], HANDBOOK)
    assert suite is not None or found
