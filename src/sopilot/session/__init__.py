"""The durable session around the machine.

Owns the context slot, guards, approvals, leases, recovery, trace files and
signatures, and the protocols ``Store``, ``Tools``, ``Model``, ``User``,
``Clock``. May import every room above it; knows no adapter.
"""

from sopilot.session.approvals import HeldCall, HeldState, Ruling
from sopilot.session.call_answer import CallAnswer, CallStatus
from sopilot.session.clocks import SystemClock
from sopilot.session.context_slot import context_slot
from sopilot.session.errors import (
    Conflict,
    LeaseHeld,
    LeaseLost,
    ProgramChanged,
    SessionExists,
    StoreCorrupt,
    StoreTooNew,
    StoreUnavailable,
    TraceBroken,
    UnknownSession,
)
from sopilot.session.guards import Hold, guarded_actions, hold_reason
from sopilot.session.ledger import CallLedger
from sopilot.session.opening import attach_session, default_owner, open_session, resume_session
from sopilot.session.program_set import ProgramSet
from sopilot.session.protocols import (
    Clock,
    Message,
    Model,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolResult,
    Tools,
    ToolSchema,
    Usage,
    User,
)
from sopilot.session.recovery import Recovered
from sopilot.session.session import Session
from sopilot.session.settings import Settings
from sopilot.session.signed_head import SignedHead, signed_head_from_json
from sopilot.session.signing import (
    generate_key,
    load_key,
    sign_head,
    verify_head,
    write_key,
)
from sopilot.session.store import Batch, Lease, NewSession, SessionRecord, Store
from sopilot.session.trace_check import Problem, verify_trace
from sopilot.session.trace_file import (
    TraceFile,
    export_trace,
    read_trace,
    salvage_trace,
    write_trace,
)
from sopilot.session.trace_replay import replay_trace

__all__ = [
    "Batch",
    "CallAnswer",
    "CallLedger",
    "CallStatus",
    "Clock",
    "Conflict",
    "HeldCall",
    "HeldState",
    "Hold",
    "Lease",
    "LeaseHeld",
    "LeaseLost",
    "Message",
    "Model",
    "ModelReply",
    "ModelRequest",
    "NewSession",
    "Problem",
    "ProgramChanged",
    "ProgramSet",
    "Recovered",
    "Ruling",
    "Session",
    "SessionExists",
    "SessionRecord",
    "Settings",
    "SignedHead",
    "Store",
    "StoreCorrupt",
    "StoreTooNew",
    "StoreUnavailable",
    "SystemClock",
    "ToolCall",
    "ToolResult",
    "ToolSchema",
    "Tools",
    "TraceBroken",
    "TraceFile",
    "UnknownSession",
    "Usage",
    "User",
    "attach_session",
    "context_slot",
    "default_owner",
    "export_trace",
    "generate_key",
    "guarded_actions",
    "hold_reason",
    "load_key",
    "open_session",
    "read_trace",
    "replay_trace",
    "resume_session",
    "salvage_trace",
    "sign_head",
    "signed_head_from_json",
    "verify_head",
    "verify_trace",
    "write_key",
    "write_trace",
]
