"""Tasks: what is asked, in which world, what must come of it.

Owns the one shape of a task, the worlds that stand around it, and the run of one: open
or resume, audit, verdict. Tasks come from the desks that ship, from the scenarios of one's
own handbook, from workflow folders, and (in the lab) from SOPBench. May import every
room below it; stores and models come in from outside.
"""

from sopilot.desks.tasks._result import Result
from sopilot.desks.tasks._running import (
    Conditions,
    finish_task,
    open_task,
    play_task,
    resume_task,
    run_task,
)
from sopilot.desks.tasks._scenario_tasks import results_task, scenario_task
from sopilot.desks.tasks._task import Surroundings, Task
from sopilot.desks.tasks.desk_tasks import desk_tasks, idle_world
from sopilot.desks.tasks.folder_tasks import folder_task
from sopilot.desks.tasks.world import FinishedRun, ReplayedTools, World

__all__ = [
    "Conditions",
    "FinishedRun",
    "ReplayedTools",
    "Result",
    "Surroundings",
    "Task",
    "World",
    "desk_tasks",
    "finish_task",
    "folder_task",
    "idle_world",
    "open_task",
    "play_task",
    "results_task",
    "resume_task",
    "run_task",
    "scenario_task",
]
