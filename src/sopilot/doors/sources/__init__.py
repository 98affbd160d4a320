"""What people name at a door: sources, tasks, things to audit.

Owns SOURCE and TASK as they are written, the values given beside them, and what
`sopilot audit` and `sopilot check` can be handed. Everything is read once. May import
every wing; the commands, the MCP server and the Python door import this room.
"""

from sopilot.doors.sources._references import is_task, lasting, named_task
from sopilot.doors.sources._source import (
    SCENARIOS,
    SOURCE_HELP,
    TOOL_LISTS,
    DeskSource,
    FolderSource,
    TaskSource,
    Unit,
    compile_source,
    load_source,
    open_source,
)

__all__ = [
    "SCENARIOS",
    "SOURCE_HELP",
    "TOOL_LISTS",
    "DeskSource",
    "FolderSource",
    "TaskSource",
    "Unit",
    "compile_source",
    "is_task",
    "lasting",
    "load_source",
    "named_task",
    "open_source",
]
