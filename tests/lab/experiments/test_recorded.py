from __future__ import annotations

import pytest

from sopbench_checkout import NEEDS_SOPBENCH
from sopilot_lab.sopbench.checkout import find_checkout
from sopilot_lab.sopbench.defects import replay_goals
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.reach import find_reach
from sopilot_lab.sopbench.recorded import (
    SCREENED_GOALS,
    Baseline,
    configurations,
    paper_screen,
    recompute,
    zero_pass,
)
from sopilot_lab.sopbench.reference import TaskReference

pytestmark = NEEDS_SOPBENCH


@pytest.fixture(scope="module")
def rows() -> list[Baseline]:
    return recompute(shared_upstream(), "bank", paper_screen)


@pytest.mark.parametrize(
    ("model", "mode", "tools", "passed", "refused"),
    [
        ("o4-mini-high", "fc", "full", "82.4", "90.7"),
        ("gpt-4o", "fc", "oracle", "82.4", "84.9"),
        ("qwen2.5-32b-instruct", "react", "oracle", "82.4", "90.7"),
    ],
)
def test_the_tied_top_rows_come_out_to_the_digit(
    rows: list[Baseline], model: str, mode: str, tools: str, passed: str, refused: str
) -> None:
    (row,) = [each for each in rows if (each.model, each.mode, each.tools) == (model, mode, tools)]
    assert (row.complete, row.tally.n) == (True, 125)
    assert row.pass_rate is not None
    assert row.refusal_rate is not None
    assert f"{100 * row.pass_rate:.1f}" == passed
    assert f"{100 * row.refusal_rate:.1f}" == refused
    assert rows.index(row) < 3


def test_recordings_that_are_incomplete_say_so_and_come_last(rows: list[Baseline]) -> None:
    incomplete = [each for each in rows if not each.complete]
    assert incomplete
    assert rows[-len(incomplete) :] == incomplete
    assert all(each.why for each in incomplete)


def test_every_recording_names_its_mode_tools_and_user() -> None:
    for each in configurations(find_checkout()):
        assert each.tools in ("full", "oracle")
        assert each.mode in ("fc", "react", "act-only")
        assert each.user in ("default", "adv", "human")


def test_the_zero_pass_rule_screens_goals_that_replay_finds_reachable() -> None:
    found = {
        (each.domain, each.goal)
        for each in zero_pass(find_checkout(), ["library", "dmv"])
        if each.screened
    }
    assert found == {
        ("library", "add_book"),
        ("dmv", "update_test_status"),
    }


def test_the_studys_screen_keeps_refusals() -> None:
    task = TaskReference("bank", "open_account", 0)
    assert not paper_screen(task, True)
    assert paper_screen(task, False)


def test_a_value_that_only_evidence_shows_is_found() -> None:
    found = find_reach(
        TaskReference("university", "declare_minor", 0), "official", shared_upstream()
    )
    assert found.reachable


def test_two_screened_goals_are_defects_and_three_are_reachable() -> None:
    found = {(each["domain"], each["goal"]): each for each in replay_goals(shared_upstream())}
    assert list(found) == list(SCREENED_GOALS)
    classes = [each["classification"] for each in found.values()]
    assert classes == ["confirmed defect"] * 2 + ["reachable"] * 3
    assert "returns failure" in found["bank", "cancel_credit_card"]["what"]
    assert "changes nothing" in found["bank", "pay_bill_with_credit_card"]["what"]
    assert not found["bank", "cancel_credit_card"]["offered"]
