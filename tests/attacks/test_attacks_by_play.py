"""Every attack through `play`: the session is taken up anew from its store for every move."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from attack_table import EVERY_CASE, assert_done, assert_held
from scripted_moves import Case, RecordingTools, Script
from silent_user import SilentUser

from sopilot.agent.budgets import Budgets
from sopilot.runner import play as playing
from sopilot.runner.play import PlayableTask, resume_play, start_play
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.task import ReplayedTools, Simulation
from sopilot.views.catalogue import VIEWS

VIEWS_PLAYED = pytest.mark.parametrize("view", ["pg", "fused"])


async def played(
    case: Case, script: Script, view: str, monkeypatch: pytest.MonkeyPatch
) -> RecordingTools:
    """The bundled tasks are the only ones that can be named, so this one stands in for one. Its
    tools outlive every process of the player, as real ones do."""
    tools = RecordingTools(case)
    simulation = Simulation(
        ReplayedTools(tools),
        user=SilentUser(),
        budgets=replace(Budgets(), wall_seconds=float("inf")),
        simulated=True,
        score=lambda messages: {"success": True},
        task=case.name,
    )
    task = PlayableTask(case.briefing(), simulation)
    monkeypatch.setattr(playing, "playable_task", lambda reference, **options: task)
    store = MemoryStore()
    play = await start_play(store, case.name, view=view)
    await play.close()
    while True:
        play = await resume_play(store, play.id)
        move = script.next(play.player.driver.request().slot)
        if move is None:
            break
        turn = await play.player.call(move.tool, move.arguments)
        script.answered(turn.answer)
        await play.close()
    await play.close()
    return tools


@VIEWS_PLAYED
@EVERY_CASE
def test_an_attack_is_held(case: Case, view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(case.attack)
    tools = asyncio.run(played(case, script, view, monkeypatch))
    assert_held(case, VIEWS[view], script, tools)


@VIEWS_PLAYED
@EVERY_CASE
def test_its_honest_twin_goes_through(
    case: Case, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(case.twin)
    tools = asyncio.run(played(case, script, view, monkeypatch))
    assert_done(case, script, tools)
