"""Serve `sopbench:` references to `sopilot`, which loads this module by name."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from sopilot.handbook.model import Handbook
from sopilot.runner.sources import Unit
from sopilot.tasks.task import Task
from sopilot_lab.sopbench import process
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.source import (
    load_tasks,
    recorded_reference,
    task_actions,
    task_handbook,
    tool_list,
)
from sopilot_lab.sopbench.tasks import sopbench_task
from sopilot_lab.sopbench.wording import own_text


class SopbenchProvider:
    """Implements ``sopilot.runner.sources.SopbenchProvider``."""

    def units(self, source: str, tools: str) -> Iterator[Unit]:
        offered = tool_list(tools)
        upstream = process.shared_upstream()
        shelf = ProgramShelf(offered, upstream)
        for task in load_tasks(source):
            compiled = shelf.compiled(task)
            procedure = task.handbook.procedures[task.goal]
            handbook = task.handbook.offering(task_actions(task, offered))
            own = functools.partial(own_text, task, offered, upstream)
            yield Unit(str(task.reference), task.domain, handbook, procedure, compiled, own)

    def task(self, reference: str, *, tools: str, language: str) -> Task:
        return sopbench_task(reference, tools=tools, language=language)

    def recorded_task(self, domain: str, task: Mapping[str, Any]) -> tuple[Handbook, str] | None:
        reference = recorded_reference(domain, task, process.shared_upstream())
        return None if reference is None else (task_handbook(reference), reference.goal)
