"""What the room raises: only for traces that cannot be read, never while stepping."""

from __future__ import annotations

from sopilot.language.diagnostics import SopilotError


class TraceError(SopilotError):
    """A trace that is not one, or not one of these programs. ``index`` is the event's place."""

    def __init__(self, message: str, index: int | None = None) -> None:
        self.index = index
        super().__init__(message if index is None else f"event {index}: {message}")
