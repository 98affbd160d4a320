"""The stack machine and its trace.

Owns frames, processes, the seven operations, the observations beside them, the
events they leave and the chain of hashes that holds those together:
``step(configuration, operation) -> configuration, events``. Pure. May import
``diagnostics``, ``handbook`` and ``program``.
"""

from sopilot.vm.automation import Automation, Judge
from sopilot.vm.errors import TraceError
from sopilot.vm.events import REJECTED, RESUMED, REUSE, Actor, Event
from sopilot.vm.layout import Limits
from sopilot.vm.machine import Machine, Outcome
from sopilot.vm.operation_codec import decode_operation, encode_operation
from sopilot.vm.operations import (
    DECISIONS,
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
from sopilot.vm.position import Position
from sopilot.vm.redaction import is_reference, redact, reference, restore
from sopilot.vm.replaying import replay
from sopilot.vm.state import Bound, Configuration, Frame, Observed, Pending, Process, Status
from sopilot.vm.tool import TOOL_DESCRIPTION, TOOL_NAME, TOOL_SCHEMA, answer_text, parse_step
from sopilot.vm.trace import (
    FORMAT,
    Head,
    SealedEvent,
    decode_line,
    decode_lines,
    encode_line,
    encode_lines,
    genesis,
    head,
    seal,
    seal_all,
    seal_line,
    verify_chain,
)
from sopilot.vm.values import JSON, agree, canonical, plain

__all__ = [
    "DECISIONS",
    "FORMAT",
    "JSON",
    "REJECTED",
    "RESUMED",
    "REUSE",
    "TOOL_DESCRIPTION",
    "TOOL_NAME",
    "TOOL_SCHEMA",
    "Actor",
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
    "Head",
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
    "SealedEvent",
    "SelectBranch",
    "Start",
    "Status",
    "ToolOperation",
    "TraceError",
    "UserSaid",
    "agree",
    "answer_text",
    "canonical",
    "decode_line",
    "decode_lines",
    "decode_operation",
    "encode_line",
    "encode_lines",
    "encode_operation",
    "genesis",
    "head",
    "is_reference",
    "parse_step",
    "plain",
    "redact",
    "reference",
    "replay",
    "restore",
    "seal",
    "seal_all",
    "seal_line",
    "verify_chain",
]
