"""sopilot: standard operating procedures as programs that language agents follow and prove.

Every public name stands here and is loaded when it is used; docs/how-to/embed.md describes them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    from sopilot.agent.budgets import Budgets
    from sopilot.agent.result import Ending
    from sopilot.audit.report import Report
    from sopilot.messages.diagnostic import Diagnostic
    from sopilot.messages.errors import RunEnded, UserMistake
    from sopilot.protocols import (
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
    from sopilot.records.entitlements import Vote
    from sopilot.runner.conversations import Conversation, conversation
    from sopilot.runner.functions import audit_trace, check
    from sopilot.runner.functions import compile_programs as compile
    from sopilot.runner.guard import (
        Guard,
        Missing,
        NotCarriedOut,
        OutcomeUnknown,
        Refused,
        Waiting,
        guard,
    )
    from sopilot.runner.hook import ToolFailed
    from sopilot.runner.runner import Runner, load
    from sopilot.tasks.run import RunnerSession
    from sopilot.tasks.task import Result, Task
    from sopilot.views.refusals import Refusal

_HOME = {
    "sopilot.tasks.task": ("Result", "Task"),
    "sopilot.tasks.run": ("RunnerSession",),
    "sopilot.runner.runner": ("Runner", "load"),
    "sopilot.runner.functions": ("audit_trace", "check", "compile"),
    "sopilot.records.entitlements": ("Vote",),
    "sopilot.runner.conversations": ("Conversation", "conversation"),
    "sopilot.runner.guard": (
        "Guard",
        "Missing",
        "NotCarriedOut",
        "OutcomeUnknown",
        "Refused",
        "Waiting",
        "guard",
    ),
    "sopilot.runner.hook": ("ToolFailed",),
    "sopilot.messages.diagnostic": ("Diagnostic",),
    "sopilot.messages.errors": ("RunEnded", "UserMistake"),
    "sopilot.agent.budgets": ("Budgets",),
    "sopilot.agent.result": ("Ending",),
    "sopilot.views.refusals": ("Refusal",),
    "sopilot.audit.report": ("Report",),
    "sopilot.protocols": (
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
    "Conversation",
    "Diagnostic",
    "Ending",
    "Guard",
    "Message",
    "Missing",
    "Model",
    "ModelReply",
    "ModelRequest",
    "NotCarriedOut",
    "OutcomeUnknown",
    "Refusal",
    "Refused",
    "Report",
    "Result",
    "RunEnded",
    "Runner",
    "RunnerSession",
    "Task",
    "ToolCall",
    "ToolFailed",
    "ToolResult",
    "ToolSchema",
    "Tools",
    "User",
    "UserMistake",
    "Vote",
    "Waiting",
    "audit_trace",
    "check",
    "compile",
    "conversation",
    "guard",
    "load",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module `sopilot` has no attribute `{name}`")
    module = importlib.import_module(_MODULES[name])
    # `compile` is a word of Python's own: only here does it mean ours.
    value: object = getattr(module, "compile_programs" if name == "compile" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted((*globals(), *__all__))
