"""The three roots: whose move it is when something failed.

What a model can put right by trying again is an answer to it, never an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from sopilot.language.diagnostics._diagnostic import Diagnostic, Place, render_diagnostics

_NOWHERE = Place()


class SopilotError(Exception):
    """Everything the project raises on purpose."""


class UserMistake(SopilotError):
    """A person must change an input. Carries every diagnostic found, not the first."""

    def __init__(self, diagnostics: Sequence[Diagnostic] | str) -> None:
        if isinstance(diagnostics, str):
            diagnostics = [Diagnostic("misuse", diagnostics)]
        self.diagnostics = tuple(diagnostics)
        super().__init__(render_diagnostics(self.diagnostics))


def mistake(code: str, message: str, place: Place = _NOWHERE, help: str = "") -> UserMistake:
    """Of one diagnostic."""
    return UserMistake([Diagnostic(code, message, place, help)])


class RunEnded(SopilotError):
    """A run cannot go on: a budget, a lost store, an unreachable provider."""


class InternalBug(SopilotError):
    """A promise of this code base was broken. Never the user's fault."""
