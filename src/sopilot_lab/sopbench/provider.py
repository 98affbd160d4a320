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
        for task in load_tasks(source, upstream=upstream):
            compiled = shelf.compiled(task)
            procedure = task.handbook.procedures[task.goal]
            handbook = task.handbook.offering(task_actions(task, offered))
            own = functools.partial(own_text, task, offered, upstream)
            yield Unit(str(task.reference), task.domain, handbook, procedure, compiled, own)

    def task(self, reference: str, *, tools: str, language: str) -> Task:
        return sopbench_task(reference, tools=tools, language=language)

    def recorded_task(self, domain: str, task: Mapping[str, Any]) -> tuple[Handbook, str] | None:
        upstream = process.shared_upstream()
        reference = recorded_reference(domain, task, upstream)
        if reference is None:
            return None
        return task_handbook(reference, upstream), reference.goal
