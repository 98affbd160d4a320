"""Tasks that can be played."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sopilot.desks.tasks import World
from sopilot.doors.sources import lasting, named_task
from sopilot.runtime.agent import Briefing


@dataclass(frozen=True, slots=True)
class PlayableTask:
    """One task with a fresh world, and what the arms may show of its handbook."""

    briefing: Briefing
    world: World


def playable_task(reference: str, *, tools: str = "official", language: str = "en") -> PlayableTask:
    """The wall clock is the player's own, so that budget is lifted. The session keeps the
    reference, by which the task is found again."""
    task = named_task(reference, tools=tools, language=language)
    world = task.open()
    budgets = replace(world.budgets, wall_seconds=float("inf"))
    return PlayableTask(task.briefing, replace(world, budgets=budgets, task=lasting(reference)))
