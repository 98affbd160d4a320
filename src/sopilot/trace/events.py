"""Events and operations of a trace, and the notes that only the runtime writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, NamedTuple, get_args

from sopilot.values.json import JSON, Fields

MACHINE = "machine"
UNAUTHENTICATED = "unauthenticated"


def identity_of(principal: JSON) -> str:
    """How the person who decided was authenticated, in words."""
    if not isinstance(principal, Mapping) or not principal.get("method"):
        return UNAUTHENTICATED
    word = str(principal["method"])
    word = {MACHINE: "the machine itself"}.get(word, word)
    return f"{word}, {principal['through']}" if principal.get("through") else word


class Actor(StrEnum):
    MODEL = "model"
    MACHINE = "machine"
    TOOL = "tool"
    USER = "user"
    OPERATOR = "operator"
    RUNTIME = "runtime"


EXECUTORS = (Actor.MODEL, Actor.MACHINE)
"""The actors that carry a procedure out."""

REUSE = "reuse"
RESUMED = "resumed"
REJECTED = "rejected"


class Event(NamedTuple):
    """``kind`` is an operation's name, or ``reuse``, ``resumed``, ``rejected``.

    ``frame`` is the path of functions and the cursor where it happened:
    ``transfer/any_of_funds@check_2``.
    """

    seq: int
    at: float
    actor: str
    kind: str
    process: str | None
    frame: str
    payload: Fields

    @property
    def note(self) -> str:
        """The name of a note; empty for any other event."""
        return str(self.payload.get("name") or "") if self.kind == "note" else ""

    @property
    def details(self) -> Fields:
        """The details of a note; empty for any other event, and if they aren't an object."""
        details = self.payload.get("details") if self.kind == "note" else None
        return details if isinstance(details, Mapping) else {}


ABOUT = ("handbook", "view", "model", "goals")
"""Fields of the first event that the session's metadata and the trace's header repeat."""

Text = str | Mapping[str, JSON]
"""Free text; a mapping is a reference to text that is stored elsewhere."""


@dataclass(frozen=True, slots=True)
class Start:
    """``act`` is the label of a goal action that an agent called by itself: the process starts at
    that step, and only the guard decides."""

    kind: ClassVar[str] = "start"
    goal: str
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    act: str = ""


@dataclass(frozen=True, slots=True)
class Amend:
    """Change values of the running process; checks that depended on them are open again."""

    kind: ClassVar[str] = "amend"
    arguments: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """``function`` may be omitted: the cursor knows it."""

    kind: ClassVar[str] = "call"
    function: str | None = None
    arguments: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Return:
    """``evidence`` cites results as ``"#12"`` or by action name; empty means all of the frame's.

    ``arguments`` are learned values under names that later steps use. ``undecided``: the answers
    show neither true nor false.
    """

    kind: ClassVar[str] = "return"
    holds: bool | None = None
    evidence: tuple[str, ...] = ()
    value: JSON = None
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    undecided: bool = False


@dataclass(frozen=True, slots=True)
class SelectBranch:
    kind: ClassVar[str] = "select_branch"
    option: str | None = None


@dataclass(frozen=True, slots=True)
class EmitArtifact:
    kind: ClassVar[str] = "emit_artifact"
    name: str
    content: JSON = None


@dataclass(frozen=True, slots=True)
class Complete:
    kind: ClassVar[str] = "complete"
    summary: Text = ""


@dataclass(frozen=True, slots=True)
class Fail:
    kind: ClassVar[str] = "fail"
    reason: Text = ""


@dataclass(frozen=True, slots=True)
class DomainCall:
    """``licence`` is the proof of a guarded call. ``amended``: people chose the arguments, which
    are the process's values from now on."""

    kind: ClassVar[str] = "domain_call"
    call_id: str
    action: str
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    licence: Mapping[str, JSON] | None = None
    amended: bool = False


@dataclass(frozen=True, slots=True)
class DomainResult:
    """``unknown``: the call broke off, and may have been carried out."""

    kind: ClassVar[str] = "domain_result"
    call_id: str
    ok: bool
    value: JSON = None
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class UserSaid:
    kind: ClassVar[str] = "user_said"
    text: Text


@dataclass(frozen=True, slots=True)
class AssistantSaid:
    kind: ClassVar[str] = "assistant_said"
    text: Text


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision on a held call: ``approve``, ``reject``, ``amend`` or ``expire``. ``principal`` is
    the operator's proof of identity; empty if unauthenticated."""

    kind: ClassVar[str] = "decision"
    decision: str
    call_id: str
    by: str = ""
    role: str = ""
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    reason: Text = ""
    principal: Mapping[str, JSON] = field(default_factory=dict)


CLOCK = "clock"
"""The note of a time, which is ``now`` in expressions until the next such note."""

CONNECTED = "connected"
"""The note that the tools of an upstream server have a new connection."""

PROGRAM_CHANGED = "program_changed"
"""The note that a session continues with other programs."""


@dataclass(frozen=True, slots=True)
class Note:
    """An event of the runtime: a budget, a refresh, a lost tool, a held call."""

    kind: ClassVar[str] = "note"
    name: str
    details: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BindEvidence:
    """Use an earlier result of the process as evidence for the step at the cursor."""

    kind: ClassVar[str] = "bind_evidence"
    result: int


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """A model's judgement on a rule outside of its frame, for agents without a protocol.
    ``evidence`` are the events of the answers that it judged."""

    kind: ClassVar[str] = "judge_check"
    function: str
    arguments: Mapping[str, JSON]
    holds: bool
    evidence: tuple[int, ...] = ()


ToolOperation = Start | Amend | Call | Return | SelectBranch | EmitArtifact | Complete | Fail
Observation = DomainCall | DomainResult | UserSaid | AssistantSaid | Decision | Note
Operation = ToolOperation | Observation | BindEvidence | JudgeCheck

TOOL_OPERATIONS: tuple[type[ToolOperation], ...] = get_args(ToolOperation)

DECISIONS = ("approve", "reject", "amend", "expire")
OPENED = "opened"

TAKEN_UP = "taken_up"
"""The note that another person than its requester continues the session."""

HELD_CALL = "held_call"
OUTCOME_UNKNOWN = "outcome_unknown"

ANSWERED_LATE = "answered_late"
"""The note that a tool contradicted a person about the outcome of a call."""

UNLICENSED_CALL = "unlicensed_call"
"""The note that an agent reported a call that the guard had denied."""

DECISION_REFUSED = "decision_refused"
"""The note of a decision by a person without the right to it."""

AWAITS_ROOT = "root"

AWAITS_PROOF = "proof"
"""A guarded call of an agent without a protocol is unproven or ruled out."""

AWAITS_APPROVAL = "approval"
AWAITS_OUTCOME = "outcome"

AWAITS_RELEASE = "release"
"""A person must release the session from a fence."""

AWAITS_DECISION = "decision"
"""The same call waits for a decision already."""

RESERVED = frozenset(
    {
        ANSWERED_LATE,
        CONNECTED,
        DECISION_REFUSED,
        HELD_CALL,
        OPENED,
        OUTCOME_UNKNOWN,
        PROGRAM_CHANGED,
        TAKEN_UP,
    }
)
