"""The stack machine.

Owns frames, processes, the eight operations, the observations beside them and
the events they leave:
``step(configuration, operation) -> configuration, events``. Pure. May import
``diagnostics``, ``handbook`` and ``program``.
"""

from sopilot.runtime.vm._automation import Automation
from sopilot.runtime.vm._tool import (
    IN_PASSING,
    SHORT_NAME,
    STEP_NAMES,
    TOOL_NAME,
    StepMove,
    answer_text,
    parse_step,
    parse_steps,
    step_description,
    step_schema,
)
from sopilot.runtime.vm.errors import TraceError
from sopilot.runtime.vm.events import REJECTED, RESUMED, REUSE, Actor, Event
from sopilot.runtime.vm.layout import Limits
from sopilot.runtime.vm.machine import Grader, Machine, Outcome
from sopilot.runtime.vm.operation_codec import decode_operation
from sopilot.runtime.vm.operations import (
    DECISIONS,
    Amend,
    AssistantSaid,
    BindEvidence,
    Call,
    Complete,
    Decision,
    DomainCall,
    DomainResult,
    EmitArtifact,
    Fail,
    Note,
    Observation,
    Operation,
    Return,
    SelectBranch,
    Start,
    ToolOperation,
    UserSaid,
)
from sopilot.runtime.vm.position import Position
from sopilot.runtime.vm.state import Bound, Configuration, Frame, Observed, Pending, Process, Status
from sopilot.runtime.vm.values import JSON, Judge, agree, canonical, plain

__all__ = [
    "DECISIONS",
    "IN_PASSING",
    "JSON",
    "REJECTED",
    "RESUMED",
    "REUSE",
    "SHORT_NAME",
    "STEP_NAMES",
    "TOOL_NAME",
    "Actor",
    "Amend",
    "AssistantSaid",
    "Automation",
    "BindEvidence",
    "Bound",
    "Call",
    "Complete",
    "Configuration",
    "Decision",
    "DomainCall",
    "DomainResult",
    "EmitArtifact",
    "Event",
    "Fail",
    "Frame",
    "Grader",
    "Judge",
    "Limits",
    "Machine",
    "Note",
    "Observation",
    "Observed",
    "Operation",
    "Outcome",
    "Pending",
    "Position",
    "Process",
    "Return",
    "SelectBranch",
    "Start",
    "Status",
    "StepMove",
    "ToolOperation",
    "TraceError",
    "UserSaid",
    "agree",
    "answer_text",
    "canonical",
    "decode_operation",
    "parse_step",
    "parse_steps",
    "plain",
    "step_description",
    "step_schema",
]
