"""sopilot: standard operating procedures as programs that language agents follow and prove.

Every public name stands here and is loaded when it is used; docs/embedding.md describes them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sopilot.desks.tasks import Result, Task
    from sopilot.doors.embedding.desk import Desk, DeskSession, load
    from sopilot.doors.embedding.functions import audit, check
    from sopilot.doors.embedding.functions import compile_programs as compile
    from sopilot.doors.embedding.plain_tools import ToolFailed
    from sopilot.language.diagnostics import Diagnostic, RunEnded, UserMistake
    from sopilot.runtime.agent import Budgets, Ending, Refusal, Vote
    from sopilot.runtime.audit import Report
    from sopilot.runtime.session.protocols import (
        Message,
        Model,
        ModelReply,
        ModelRequest,
        ToolCall,
        ToolResult,
        Tools,
        ToolSchema,
        User,
    )

_HOME = {
    "sopilot.desks.tasks": ("Result", "Task"),
    "sopilot.doors.embedding.desk": ("Desk", "DeskSession", "load"),
    "sopilot.doors.embedding.functions": ("audit", "check", "compile"),
    "sopilot.doors.embedding.plain_tools": ("ToolFailed",),
    "sopilot.language.diagnostics": ("Diagnostic", "RunEnded", "UserMistake"),
    "sopilot.runtime.agent": ("Budgets", "Ending", "Refusal", "Vote"),
    "sopilot.runtime.audit": ("Report",),
    "sopilot.runtime.session.protocols": (
        "Message",
        "Model",
        "ModelReply",
        "ModelRequest",
        "ToolCall",
        "ToolResult",
        "ToolSchema",
        "Tools",
        "User",
    ),
}
_MODULES = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Budgets",
    "Desk",
    "DeskSession",
    "Diagnostic",
    "Ending",
    "Message",
    "Model",
    "ModelReply",
    "ModelRequest",
    "Refusal",
    "Report",
    "Result",
    "RunEnded",
    "Task",
    "ToolCall",
    "ToolFailed",
    "ToolResult",
    "ToolSchema",
    "Tools",
    "User",
    "UserMistake",
    "Vote",
    "audit",
    "check",
    "compile",
    "load",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module `sopilot` has no attribute `{name}`")
    module = importlib.import_module(_MODULES[name])
    # `compile` is a word of Python's own: only here does it mean ours.
    found: object = getattr(module, "compile_programs" if name == "compile" else name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted((*globals(), *__all__))
