"""What a compiled program is.

Owns functions, labelled steps, the printer, the YAML codec and the verifier
that runs on every compile and every load. Pure. May import ``diagnostics`` and
``handbook``.
"""

from sopilot.language.program.call_graph import callees
from sopilot.language.program.codec import program_from_yaml, program_hash, program_to_yaml
from sopilot.language.program.flow import continuations, slots_in
from sopilot.language.program.model import (
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
from sopilot.language.program.printer import (
    print_argument,
    print_call,
    print_condition,
    print_program,
)
from sopilot.language.program.verifier import require_valid, verify_program

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
    "print_argument",
    "print_call",
    "print_condition",
    "print_program",
    "program_from_yaml",
    "program_hash",
    "program_to_yaml",
    "require_valid",
    "slots_in",
    "verify_program",
]
