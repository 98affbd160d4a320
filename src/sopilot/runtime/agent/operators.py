"""People who decide about held calls while a run waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from sopilot.runtime.records.people import THE_MACHINE, Principal
from sopilot.runtime.session import HeldCall
from sopilot.runtime.session.protocols import JSON, ToolCall, ToolResult


@dataclass(frozen=True, slots=True)
class Vote:
    """One decision of one person in one role: ``approve``, ``reject`` or ``amend``."""

    decision: str
    by: str
    role: str
    arguments: Mapping[str, JSON] | None = None
    reason: str = ""
    who: Principal | None = None
    """How they proved who they are."""


class Operator(Protocol):
    async def decide(self, held: HeldCall) -> Sequence[Vote]:
        """What is decided now; nothing means that the run has to wait."""
        ...


@runtime_checkable
class RecallsOutcomes(Protocol):
    """Tools that can tell what a call with this key came to; ``None`` if it was never made."""

    async def recall(self, key: str) -> ToolResult | None: ...


@runtime_checkable
class KeepsUnmadeCalls(Protocol):
    """Tools with a log of their own in which malformed calls have to stand as well."""

    async def unmade(self, call: ToolCall, problem: str) -> bool:
        """Runs nothing. Whether the call is in the log."""
        ...


@dataclass(frozen=True, slots=True)
class RoleApprovers:
    """Approves at once, as one person in each of these roles."""

    roles: tuple[str, ...]

    async def decide(self, held: HeldCall) -> Sequence[Vote]:
        given = {(one.by, one.role) for one in held.rulings}
        votes = [
            Vote("approve", f"the {role}", role, who=THE_MACHINE)
            for role in self.roles
            if role in held.roles
        ]
        # Nobody decides twice: a run that was taken up again may have their approval already.
        return [one for one in votes[: held.needed] if (one.by, one.role) not in given]
