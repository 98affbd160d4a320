"""Hooks for agent frameworks, one file each.

What they share is ``ProcedureHook``: the text to show before a model call, the
bookkeeping tool, and domain calls on record. A framework's library is imported
by its own file alone.
"""

from sopilot.doors.hooks.conversations import Conversations
from sopilot.doors.hooks.hook import ProcedureHook, ToolBroke

__all__ = ["Conversations", "ProcedureHook", "ToolBroke"]
