"""The eight operations of the one tool, and what the machine observes beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from sopilot.runtime.vm.values import JSON

Text = str | Mapping[str, JSON]
"""Words; a mapping is a reference to words that are kept elsewhere."""


def _none() -> dict[str, JSON]:
    return {}


# --- what the executor does through the tool ------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    kind: ClassVar[str] = "start"
    goal: str
    arguments: Mapping[str, JSON] = field(default_factory=_none)


@dataclass(frozen=True, slots=True)
class Amend:
    """Other values for the running process, in place: what depended on them is open again."""

    kind: ClassVar[str] = "amend"
    arguments: Mapping[str, JSON] = field(default_factory=_none)


@dataclass(frozen=True, slots=True)
class Call:
    """``function`` may be omitted: the cursor knows it."""

    kind: ClassVar[str] = "call"
    function: str | None = None
    arguments: Mapping[str, JSON] = field(default_factory=_none)


@dataclass(frozen=True, slots=True)
class Return:
    """``evidence`` cites results as ``"#12"`` or by action name; empty means all of the frame's.

    ``arguments`` are values found on the way, under names that later steps ask for.
    ``undecided``: the answers cannot tell, which is neither true nor false.
    """

    kind: ClassVar[str] = "return"
    holds: bool | None = None
    evidence: tuple[str, ...] = ()
    value: JSON = None
    arguments: Mapping[str, JSON] = field(default_factory=_none)
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


# --- what is observed -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DomainCall:
    """``licence`` is what a guarded call was let through on; ``amended``: people chose the
    arguments, which are the process's values from then on."""

    kind: ClassVar[str] = "domain_call"
    call_id: str
    action: str
    arguments: Mapping[str, JSON] = field(default_factory=_none)
    licence: Mapping[str, JSON] | None = None
    amended: bool = False


@dataclass(frozen=True, slots=True)
class DomainResult:
    """``unknown``: it broke off, and may have been carried out all the same."""

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
    """An operator on a held call: ``approve``, ``reject``, ``amend`` or ``expire``.
    ``principal`` is how they proved who they are; empty: they did not."""

    kind: ClassVar[str] = "decision"
    decision: str
    call_id: str
    by: str = ""
    role: str = ""
    arguments: Mapping[str, JSON] = field(default_factory=_none)
    reason: Text = ""
    principal: Mapping[str, JSON] = field(default_factory=_none)


CLOCK = "clock"
"""The note of what the clock showed: ``now`` in expressions until the next one."""
PROGRAM_CHANGED = "program_changed"
"""The note that a session goes on with other programs."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something the runtime did or met: a budget, a refresh, a lost tool, a held call."""

    kind: ClassVar[str] = "note"
    name: str
    details: Mapping[str, JSON] = field(default_factory=_none)


# --- what only the machine does -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BindEvidence:
    """Take an earlier result of the process over as evidence for the step at the cursor."""

    kind: ClassVar[str] = "bind_evidence"
    result: int


ToolOperation = Start | Amend | Call | Return | SelectBranch | EmitArtifact | Complete | Fail
Observation = DomainCall | DomainResult | UserSaid | AssistantSaid | Decision | Note
Operation = ToolOperation | Observation | BindEvidence

TOOL_OPERATIONS: tuple[type[ToolOperation], ...] = (
    Start,
    Amend,
    Call,
    Return,
    SelectBranch,
    EmitArtifact,
    Complete,
    Fail,
)
DECISIONS = ("approve", "reject", "amend", "expire")
