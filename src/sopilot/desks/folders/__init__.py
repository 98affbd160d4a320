"""Workflow folders: a program written by hand, its tools in Python, its tasks.

Owns the reading of such a folder and what surrounds its tools: people who vote, and
runs that are cut off. A folder's Python runs where somebody trusts it, and only then.
"""

from sopilot.desks.folders._surroundings import InterruptedTools, RecordedVotes, opening
from sopilot.desks.folders._workflow_folder import (
    PROGRAM,
    FolderTask,
    WorkflowFolder,
    is_workflow_folder,
    load_folder,
)

__all__ = [
    "PROGRAM",
    "FolderTask",
    "InterruptedTools",
    "RecordedVotes",
    "WorkflowFolder",
    "is_workflow_folder",
    "load_folder",
    "opening",
]
