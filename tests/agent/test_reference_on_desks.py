"""The reference executor does every bundled task right under every view it can read."""

from __future__ import annotations

import asyncio

import pytest
from desk_runs import Played, play
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.agent.reference.misbehaviour import SWITCHES, Misbehaviour
from sopilot.tasks.examples.example import bundled_names, load_example
from sopilot.views.catalogue import VIEWS

MACHINE_VIEWS = [name for name, view in VIEWS.items() if view.machine]
ALL_TASKS = [
    (example, task.id) for example in bundled_names() for task in load_example(example).tasks
]


def run_all(view: str, example: str, *, step: int = 1, language: str = "en") -> list[Played]:
    found = load_example(example)

    async def run() -> list[Played]:
        return [
            await play(found, task, VIEWS[view], language=language) for task in found.tasks[::step]
        ]

    return asyncio.run(run())


@pytest.mark.parametrize("example", bundled_names())
@pytest.mark.parametrize("view", ["pg", "flat"])
def test_every_task_is_done_right(view: str, example: str) -> None:
    _all_right(view, example)


@pytest.mark.parametrize("example", bundled_names())
@pytest.mark.parametrize(
    "view", ["full-cursor", "state-only", "flat-protocol", "flat-state", "chunk"]
)
def test_every_fifth_task_is_done_right(view: str, example: str) -> None:
    _all_right(view, example, step=5)


@pytest.mark.slow
@pytest.mark.parametrize("example", bundled_names())
@pytest.mark.parametrize("view", MACHINE_VIEWS)
def test_every_task_is_done_right_under_every_machine(view: str, example: str) -> None:
    _all_right(view, example)


def _all_right(view: str, example: str, *, step: int = 1) -> None:
    tasks = load_example(example).tasks[::step]
    for task, played in zip(tasks, run_all(view, example, step=step), strict=True):
        assert str(played.result.ending) == str(task.expected), task.id
        assert played.judgement.passed, (task.id, played.judgement.reasons)


@pytest.mark.parametrize("view", ["pg", "flat"])
def test_chinese_scaffold(view: str) -> None:
    for played in run_all(view, "clinic", step=5, language="zh"):
        assert played.judgement.passed, played.judgement.reasons


def test_a_refusal_names_rule_evidence_and_remedy() -> None:
    example = load_example("bank")
    for task in example.tasks:
        if task.expected != "refused":
            continue
        played = asyncio.run(play(example, task, VIEWS["pg"]))
        first = played.result.refusals[0]
        assert first.rule in example.causes(task), task.id
        assert first.remedy == str(example.handbook.predicates[first.rule].remedy)
        if not example.handbook.predicates[first.rule].tool_free and first.rule not in (
            "second_factor",
            "logged_in",
        ):
            assert first.evidence, task.id


def test_conditional_misbehaviour() -> None:
    example = load_example("bank")
    task = example.task("transfer-rent-share")
    paged = Misbehaviour(refuse_wrongly=1.0, only_when_paged=True)
    assert str(asyncio.run(play(example, task, VIEWS["pg"], misbehaviour=paged)).result.ending) == (
        "refused"
    )
    for view in ("full-cursor", "flat-protocol", "flat"):
        whole = asyncio.run(play(example, task, VIEWS[view], misbehaviour=paged))
        assert whole.judgement.passed, view
    long = Misbehaviour(refuse_wrongly=1.0, only_when_long=10**7)
    assert asyncio.run(play(example, task, VIEWS["pg"], misbehaviour=long)).judgement.passed


@settings(deadline=None, max_examples=12)
@given(
    which=st.sampled_from(ALL_TASKS),
    seed=st.integers(0, 99),
    switch=st.sampled_from(SWITCHES),
    rate=st.floats(0, 1),
)
def test_misbehaviour_is_reproducible(
    which: tuple[str, str], seed: int, switch: str, rate: float
) -> None:
    example = load_example(which[0])
    wrong = Misbehaviour(**{switch: rate}, seed=seed)  # type: ignore[arg-type]
    task = example.task(which[1])
    first, second = (
        asyncio.run(play(example, task, VIEWS["pg"], misbehaviour=wrong)) for _ in range(2)
    )
    assert first.kinds() == second.kinds()
    assert first.world.calls == second.world.calls
