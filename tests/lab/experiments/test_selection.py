"""Stratified parts of a selection, lists of tasks, classes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopilot.messages.errors import UserMistake
from sopilot_lab.experiments.selection import select_tasks, stratified
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.reference import TaskReference

SIZES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8)


@given(SIZES, st.integers(1, 60))
def test_a_part_has_the_size_and_every_stratum_it_has_room_for(
    sizes: list[tuple[int, int]], limit: int
) -> None:
    tasks = [
        TaskReference("bank", f"goal{number}", index)
        for number, (execute, refuse) in enumerate(sizes)
        for index in range(execute + refuse)
    ]

    def executes(each: TaskReference) -> bool:
        return each.index < sizes[int(each.goal.removeprefix("goal"))][0]

    chosen = stratified(tasks, executes, limit)
    assert len(chosen) == min(limit, len(tasks))
    assert list(chosen) == [each for each in tasks if each in set(chosen)]
    assert chosen == stratified(tasks, executes, limit)
    for should in (True, False):
        mine = [each for each in tasks if executes(each) is should]
        taken = Counter(each.goal for each in chosen if executes(each) is should)
        goals = {each.goal for each in mine}
        if sum(taken.values()) >= len(goals):
            assert taken.keys() == goals, "every goal, where there is room"
        if mine and limit >= 2:
            assert taken, "both classes"


def test_classes_and_lists(upstream: Upstream, tmp_path: Path) -> None:
    execute = select_tasks("all", upstream, kind="execute")
    refuse = select_tasks("all", upstream, kind="refuse")
    assert len(execute) + len(refuse) == 8
    assert not set(execute) & set(refuse)
    listed = tmp_path / "tasks.txt"
    listed.write_text("# some\nsopbench:bank/lend_tool#2\n\nsopbench:bank/take_back  # all of it\n")
    chosen = select_tasks("all", upstream, listed=listed)
    assert [str(each) for each in chosen] == [
        "sopbench:bank/lend_tool#2",
        "sopbench:bank/take_back#0",
        "sopbench:bank/take_back#1",
    ]
    listed.write_text("# nothing\n")
    with pytest.raises(UserMistake, match="no task is named"):
        select_tasks("all", upstream, listed=listed)
    with pytest.raises(UserMistake, match="at least 1"):
        select_tasks("all", upstream, limit=0)
