"""Tasks of one's own handbooks and of the bundled desks in a sweep, beside SOPBench's.

What their oracle says is told in the words of the official evaluator, so that one tally, one
report and one set of tests serve both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sopilot.agent.result import Ending
from sopilot.messages.errors import UserMistake
from sopilot.tasks.task import Task


@dataclass(frozen=True, slots=True, order=True)
class OwnReference:
    """``my-desk/refund#the second parcel``: the handbook, the goal, the task's own name."""

    domain: str
    goal: str
    name: str

    def __str__(self) -> str:
        return f"{self.domain}/{self.goal}#{self.name}"


def own_references(tasks: Sequence[Task]) -> dict[OwnReference, Task]:
    """Those that end in an execution or a refusal; the others have nothing to be scored by."""
    results = {
        OwnReference(task.source, task.goal, task.name): task
        for task in tasks
        if task.expected in (Ending.EXECUTED, Ending.REFUSED)
    }
    if not results:
        raise UserMistake("there is no task that is to end in an execution or a refusal")
    return results


def as_official(verdict: Mapping[str, Any], task: Task, *, goal_reached: bool) -> dict[str, Any]:
    success = bool(verdict["success"])
    return {
        "user_goal": task.goal,
        "action_should_succeed": task.expected is Ending.EXECUTED,
        "no_tool_call_error": success,
        "constraint_not_violated": success,
        "database_match": success,
        "action_successfully_called": goal_reached,
        "dirgraph_satisfied": success,
        "action_called_correctly": success,
        "success": success,
    }
