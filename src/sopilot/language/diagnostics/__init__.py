"""What goes wrong, and who must act.

Owns the diagnostic (a code, a message, a place, optional help) and the four
roots of every error the project raises. Imports nothing from the project.
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
)

__all__ = [
    "Diagnostic",
    "InternalBug",
    "Place",
    "RunEnded",
    "Severity",
    "SopilotError",
    "UserMistake",
    "did_you_mean",
    "render_diagnostics",
]
