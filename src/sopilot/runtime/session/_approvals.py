"""Who has approved a held call, and whether that is enough. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sopilot.runtime.trace.identity import identity_of
from sopilot.runtime.vm import JSON
from sopilot.runtime.vm.values import same, same_name


class HeldState(StrEnum):
    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    USED = "used"
    """The call was made: an approval serves one call."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """One decision that counts. ``seq`` is its event's."""

    decision: str
    by: str
    role: str
    reason: JSON
    seq: int
    principal: Mapping[str, JSON] = field(default_factory=dict)
    """How they proved who they are; empty: they did not."""

    @property
    def identity(self) -> str:
        return identity_of(self.principal)


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call that waits for approval. ``arguments`` are the ones that would run: amended or not.

    ``why`` names checks that are not proven: who approves then, approves without their proof.
    """

    call_id: str
    action: str
    arguments: Mapping[str, JSON]
    process: str | None
    roles: tuple[str, ...]
    needed: int
    requested_at: float
    expires_at: float | None
    seq: int
    rulings: tuple[Ruling, ...] = ()
    state: HeldState = HeldState.WAITING
    amended: bool = False
    why: str = ""

    @property
    def lasts(self) -> int | None:
        """Seconds that it may take."""
        return None if self.expires_at is None else round(self.expires_at - self.requested_at)

    def has_expired(self, now: float) -> bool:
        return self.expires_at is not None and now > self.expires_at

    def is_open(self, now: float) -> bool:
        """Whether a decision can still change it."""
        waiting = self.state in (HeldState.WAITING, HeldState.APPROVED)
        return waiting and not self.has_expired(now)

    def serves(self, action: str, arguments: Mapping[str, JSON]) -> bool:
        return self.action == action and same(dict(self.arguments), dict(arguments))

    @property
    def version(self) -> int:
        """The event that gave it the arguments that it has."""
        return next((one.seq for one in self.rulings if one.decision == "amend"), self.seq)

    @property
    def approvals(self) -> int:
        return count_approvals(self.rulings, self.roles, self.needed)

    @property
    def rejection(self) -> Ruling | None:
        return next((one for one in self.rulings if one.decision == "reject"), None)

    def as_json(self) -> dict[str, JSON]:
        return {
            "call_id": self.call_id,
            "action": self.action,
            "arguments": dict(self.arguments),
            "state": str(self.state),
            "roles": list(self.roles),
            "needed": self.needed,
            "approvals": self.approvals,
            "amended": self.amended,
            "why": self.why,
            "requested_at": self.requested_at,
            "expires_at": self.expires_at,
            "rulings": [
                {
                    "decision": one.decision,
                    "by": one.by,
                    "role": one.role,
                    "reason": one.reason,
                    "identity": one.identity,
                }
                for one in self.rulings
            ],
        }


def rule(
    held: HeldCall,
    *,
    decision: str,
    by: str,
    role: str,
    arguments: Mapping[str, JSON],
    reason: JSON,
    seq: int,
    at: float,
    principal: Mapping[str, JSON],
) -> HeldCall:
    """The held call after a decision; unchanged by one that does not count.

    A decision counts from a named person in one of the roles, while the call is
    open. ``expire`` needs nobody.
    """
    if held.state not in (HeldState.WAITING, HeldState.APPROVED):
        return held
    ruling = Ruling(decision, by, role, reason, seq, principal)
    if decision == "expire":
        return replace(held, state=HeldState.EXPIRED, rulings=(*held.rulings, ruling))
    if held.has_expired(at) or not by or role not in held.roles:
        return held
    if decision == "reject":
        return replace(held, state=HeldState.REJECTED, rulings=(*held.rulings, ruling))
    if decision == "amend":
        # Earlier approvals were for other arguments.
        held = replace(held, arguments=dict(arguments), amended=True, rulings=(ruling,))
    else:
        held = replace(held, rulings=(*held.rulings, ruling))
    enough = held.approvals >= held.needed
    return replace(held, state=HeldState.APPROVED if enough else HeldState.WAITING)


def count_approvals(rulings: Sequence[Ruling], roles: Sequence[str], needed: int) -> int:
    """Approvals that stand together: distinct persons, in distinct roles where roles suffice.

    A person may have approved in several roles and a role may have several
    approvers, so the most that fit together is a matching.
    """
    approving = [one for one in rulings if one.decision in ("approve", "amend")]
    people: dict[str, set[str]] = {}
    for one in approving:
        people.setdefault(same_name(one.by), set()).add(one.role)
    if needed > len(roles):
        return len(people)
    taken: dict[str, str] = {}

    def seat(person: str, tried: set[str]) -> bool:
        for role in sorted(people[person] - tried):
            tried.add(role)
            if role not in taken or seat(taken[role], tried):
                taken[role] = person
                return True
        return False

    return sum(seat(person, set()) for person in sorted(people))


_NUMBER = re.compile(r"#\d+")


def same_doubt(one: str, other: str) -> bool:
    """The same checks are missing, whichever answers show it."""
    return _NUMBER.sub("#", one) == _NUMBER.sub("#", other)
