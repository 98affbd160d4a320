"""The durable session around the machine.

Owns the context slot, guards, approvals, leases, recovery, trace files and
signatures, and the protocols ``Store``, ``Tools``, ``Model``, ``User``,
``Clock``. May import every room below it; knows no adapter.
"""

from sopilot.runtime.session._approvals import HeldCall, HeldState, Ruling
from sopilot.runtime.session._clocks import SystemClock
from sopilot.runtime.session._leasing import when_free
from sopilot.runtime.session._opening import attach_session, open_session, resume_session
from sopilot.runtime.session._session import Session
from sopilot.runtime.session._settings import Settings
from sopilot.runtime.session._store import (
    LOCKED,
    Batch,
    Lease,
    NewSession,
    SessionRecord,
    Store,
    is_locked,
)
from sopilot.runtime.session._trace_file import (
    TraceFile,
    export_trace,
    read_trace,
    write_trace,
)
from sopilot.runtime.session._trace_replay import replay_trace
from sopilot.runtime.session.call_answer import CallAnswer, CallStatus
from sopilot.runtime.session.errors import (
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
from sopilot.runtime.session.guards import Hold, guarded_actions, hold_reason
from sopilot.runtime.session.ledger import CallLedger
from sopilot.runtime.session.program_set import ProgramSet
from sopilot.runtime.session.protocols import (
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
from sopilot.runtime.session.recovery import Recovered
from sopilot.runtime.session.trace_check import Problem, verify_trace

__all__ = [
    "LOCKED",
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
    "export_trace",
    "guarded_actions",
    "hold_reason",
    "is_locked",
    "open_session",
    "read_trace",
    "replay_trace",
    "resume_session",
    "verify_trace",
    "when_free",
    "write_trace",
]
