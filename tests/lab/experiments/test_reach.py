from __future__ import annotations

from sopbench_checkout import NEEDS_SOPBENCH

from sopilot_lab.sopbench.defects import replay_goals
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.reach import find_reach
from sopilot_lab.sopbench.recorded import SCREENED_GOALS
from sopilot_lab.sopbench.reference import TaskReference

pytestmark = NEEDS_SOPBENCH


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
