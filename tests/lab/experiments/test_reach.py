from __future__ import annotations

from pathlib import Path

import pytest
from sopbench_checkout import NEEDS_SOPBENCH

from sopilot_lab.sopbench.defects import replay_goals
from sopilot_lab.sopbench.process import ToolList, shared_upstream
from sopilot_lab.sopbench.reach import find_reach, survey
from sopilot_lab.sopbench.recorded import SCREENED_GOALS
from sopilot_lab.sopbench.reference import TaskReference

pytestmark = NEEDS_SOPBENCH


@pytest.mark.parametrize(
    ("tools", "reachable", "obstacle"),
    [("official", False, "missing-value"), ("full-state", True, "")],
)
def test_a_login_that_the_user_cannot_give_needs_the_reader(
    tools: ToolList, reachable: bool, obstacle: str
) -> None:
    found = find_reach(TaskReference("bank", "pay_loan", 0), tools, shared_upstream())
    assert found.reachable is reachable
    if obstacle:
        assert obstacle in found.obstacles
        assert "`login_user` needs `identification`" in found.proof
        assert found.by_inventing
    else:
        assert found.calls[-1] == "pay_loan"


def test_a_value_that_only_evidence_shows_is_found() -> None:
    found = find_reach(
        TaskReference("university", "declare_minor", 0), "official", shared_upstream()
    )
    assert found.reachable


def test_two_screened_goals_are_defects_and_three_are_reachable() -> None:
    found = {(each.domain, each.goal): each for each in replay_goals(shared_upstream())}
    assert list(found) == list(SCREENED_GOALS)
    classes = [each.classification for each in found.values()]
    assert classes == ["confirmed defect"] * 2 + ["reachable"] * 3
    assert "returns failure" in found["bank", "cancel_credit_card"].what
    assert "changes nothing" in found["bank", "pay_bill_with_credit_card"].what
    assert not found["bank", "cancel_credit_card"].offered


def test_what_was_found_is_kept_and_a_torn_cache_is_searched_again(tmp_path: Path) -> None:
    upstream = shared_upstream()
    tasks = [TaskReference("bank", "get_loan", index) for index in range(2)]
    first = survey(tasks, "official", upstream, cache=tmp_path)
    (kept,) = tmp_path.iterdir()
    searched: list[int] = []
    again = survey(
        tasks, "official", upstream, cache=tmp_path, progress=lambda done, of: searched.append(done)
    )
    assert {key: value.as_json() for key, value in again.items()} == {
        key: {**value.as_json(), "calls": list(value.calls), "obstacles": list(value.obstacles)}
        for key, value in first.items()
    }
    assert searched == []
    kept.write_text(kept.read_text()[:50])
    survey(
        tasks, "official", upstream, cache=tmp_path, progress=lambda done, of: searched.append(done)
    )
    assert searched == [1, 2]
