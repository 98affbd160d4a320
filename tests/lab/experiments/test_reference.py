from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopbench_checkout import MISSING
from sopilot.messages.errors import UserMistake
from sopilot_lab.sopbench.reference import TaskReference, is_sopbench, task_references

needs_checkout = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def mistake(text: str) -> tuple[str, str]:
    with pytest.raises(UserMistake) as caught:
        task_references(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "sopbench-reference"
    assert diagnostic.place.source == text
    return diagnostic.message, diagnostic.help


@pytest.mark.parametrize(
    "text", ["bank", "sopbench:", "sopbench:bank#3", "sopbench:bank/a/b", "sopbench:bank/a#x"]
)
def test_a_wrong_shape_shows_the_right_ones(text: str) -> None:
    message, help_text = mistake(text)
    assert message == f"`{text}` is not a reference to SOPBench tasks"
    assert "`sopbench:bank/get_loan#3`" in help_text


def test_an_unknown_domain_gets_the_nearest_name() -> None:
    assert mistake("sopbench:bnak") == (
        "unknown SOPBench domain `bnak`",
        "did you mean `bank`?",
    )


@given(st.text(max_size=20))
@settings(deadline=None, max_examples=50)
def test_any_other_text_is_a_users_mistake(text: str) -> None:
    with pytest.raises(UserMistake):
        task_references("sopbench:~" + text)


@pytest.mark.sopbench
@needs_checkout
def test_goals_and_indices_are_checked() -> None:
    assert mistake("sopbench:bank/get_lone") == (
        "unknown goal `get_lone` in `bank`",
        "did you mean `get_loan`?",
    )
    message, help_text = mistake("sopbench:bank/get_loan#99")
    assert message == "`bank/get_loan` has no task 99"
    assert help_text.startswith("its tasks are #0 to #")


@pytest.mark.sopbench
@needs_checkout
def test_references_widen_from_a_task_to_everything() -> None:
    (one,) = task_references("sopbench:bank/get_loan#3")
    assert one == TaskReference("bank", "get_loan", 3)
    assert task_references(str(one)) == (one,)
    assert is_sopbench(str(one))
    goal, domain, every = (
        task_references(text)
        for text in ("sopbench:bank/get_loan", "sopbench:bank", "sopbench:all")
    )
    assert {one} < set(goal) < set(domain) < set(every)
    assert len(every) == len(set(every)) == 830
