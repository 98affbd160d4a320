"""What a sweep is asked to take of handbooks of one's own, and with how much patience."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sopilot.agent.providers import Retries
from sopilot.agent.result import Ending
from sopilot.messages.errors import UserMistake
from sopilot.runner.sources import FolderSource, open_source
from sopilot.tasks.task import Task
from sopilot_lab.experiments.entrants import Patience
from sopilot_lab.experiments.selection import narrowed
from sopilot_lab.sopbench.own_tasks import OwnReference, own_references


def own_sweep_tasks(
    source: str, goal: str | None, language: str, *, kind: str | None, limit: int | None
) -> dict[OwnReference, Task]:
    opened = open_source(source)
    if isinstance(opened, FolderSource):
        raise UserMistake("the tools of a workflow folder are real: a sweep does not take them")
    found = own_references(opened.tasks(goal=goal, language=language))
    chosen = narrowed(
        tuple(found),
        lambda each: found[each].expected is Ending.EXECUTED,
        kind=kind,
        limit=limit,
    )
    return {each: found[each] for each in chosen}


def patience(given: Mapping[str, Any]) -> Patience:
    return Patience(
        replace(Retries(), attempts=given["attempts"]), given["redraws"], given["most_missing"]
    )
