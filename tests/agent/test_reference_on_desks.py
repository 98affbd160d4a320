"""The reference executor does every bundled task right under every view it can read."""

from __future__ import annotations

import pytest
from desk_runs import play, some_tasks
from hypothesis import given, settings
from hypothesis import strategies as st

from refusal_causes import causes
from sopilot.tasks.examples.example import bundled_names, load_example
from sopilot.views.catalogue import VIEWS
from sopilot_lab.experiments.misbehaviour import SWITCHES, Misbehaviour

EVERYDAY = {"pg": 1, "flat": 1, "state-only": 5, "flat-state": 5, "chunk": 5}
"""View → every n-th task is played; the views of the paper are played in `test_paper_view.py`."""


@pytest.mark.parametrize("example", bundled_names())
@pytest.mark.parametrize(
    ("view", "every"),
    [
        *EVERYDAY.items(),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in VIEWS if VIEWS[name].machine),
    ],
)
async def test_tasks_are_done_right(view: str, every: int, example: str) -> None:
    for _, task in some_tasks(every, example):
        played = await play(example, task, view)
        assert str(played.result.ending) == str(load_example(example).task(task).expected), task
        assert played.judgement.passed, (task, played.judgement.reasons)


@pytest.mark.parametrize("view", ["pg", "flat"])
async def test_chinese_scaffold(view: str) -> None:
    for example, task in some_tasks(5, "clinic"):
        played = await play(example, task, view, language="zh")
        assert played.judgement.passed, played.judgement.reasons


async def test_a_refusal_names_rule_evidence_and_remedy() -> None:
    example = load_example("bank")
    for task in example.tasks:
        if task.expected != "refused":
            continue
        first = (await play("bank", task.id)).result.refusals[0]
        rule = example.handbook.predicates[first.rule]
        assert first.rule in causes(example, task), task.id
        assert first.remedy == str(rule.remedy)
        if not rule.tool_free and first.rule not in ("second_factor", "logged_in"):
            assert first.evidence, task.id


async def test_conditional_misbehaviour() -> None:
    paged = Misbehaviour(refuse_wrongly=1.0, only_when_paged=True)
    long = Misbehaviour(refuse_wrongly=1.0, only_when_long=10**7)
    for view, wrong, passed in (
        ("pg", paged, False),
        ("full-cursor", paged, True),
        ("flat-protocol", paged, True),
        ("flat", paged, True),
        ("pg", long, True),
    ):
        done = await play("bank", "transfer-rent-share", view, misbehaviour=wrong)
        assert done.judgement.passed is passed, view


@settings(deadline=None, max_examples=12)
@given(
    which=st.sampled_from(some_tasks(1)),
    seed=st.integers(0, 99),
    switch=st.sampled_from(SWITCHES),
    rate=st.floats(0, 1),
)
async def test_misbehaviour_is_reproducible(
    which: tuple[str, str], seed: int, switch: str, rate: float
) -> None:
    wrong = Misbehaviour(**{switch: rate}, seed=seed)  # type: ignore[arg-type]
    first, second = [await play(*which, misbehaviour=wrong) for _ in range(2)]
    assert first.kinds() == second.kinds()
    assert first.world.calls == second.world.calls
