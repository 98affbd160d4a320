"""What goes wrong, and who must act.

Owns the diagnostic (a code, a message, a place, optional help), the four roots
of every error the project raises, and how text of others is shown in messages.
Imports nothing from the project.
"""

from sopilot.language.diagnostics._diagnostic import (
    Diagnostic,
    Place,
    Severity,
    did_you_mean,
    render_diagnostics,
)
from sopilot.language.diagnostics._errors import (
    InternalBug,
    RunEnded,
    SopilotError,
    UserMistake,
    mistake,
)
from sopilot.language.diagnostics._visible import LINES, SPACES, visible

__all__ = [
    "LINES",
    "SPACES",
    "Diagnostic",
    "InternalBug",
    "Place",
    "RunEnded",
    "Severity",
    "SopilotError",
    "UserMistake",
    "did_you_mean",
    "mistake",
    "render_diagnostics",
    "visible",
]
