"""What a compiled program is.

Owns functions, labelled steps, the printer, the YAML codec and the verifier
that runs on every compile and every load. Pure. May import ``diagnostics`` and
``handbook``.
"""

from sopilot.program.call_graph import callees
from sopilot.program.flow import continuations, slots_in
from sopilot.program.model import (
    FORMAT,
    Act,
    Always,
    Argument,
    Arguments,
    Ask,
    Branch,
    Check,
    Choose,
    Complete,
    Condition,
    Do,
    Emit,
    Every,
    Fail,
    Function,
    Guarded,
    Holds,
    Kind,
    Literal,
    Local,
    Option,
    Program,
    Return,
    Some,
    Source,
    Step,
    Unknown,
)
from sopilot.program.verifier import require_valid, verify_program

__all__ = [
    "FORMAT",
    "Act",
    "Always",
    "Argument",
    "Arguments",
    "Ask",
    "Branch",
    "Check",
    "Choose",
    "Complete",
    "Condition",
    "Do",
    "Emit",
    "Every",
    "Fail",
    "Function",
    "Guarded",
    "Holds",
    "Kind",
    "Literal",
    "Local",
    "Option",
    "Program",
    "Return",
    "Some",
    "Source",
    "Step",
    "Unknown",
    "callees",
    "continuations",
    "require_valid",
    "slots_in",
    "verify_program",
]
