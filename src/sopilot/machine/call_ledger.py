"""Calls of a session: ids in use, held calls with their approvals, unknown outcomes. Pure.

Folded event by event, both live and on resume.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sopilot.messages.catalogue import kept_message
from sopilot.trace.events import (
    AWAITS_APPROVAL,
    AWAITS_RELEASE,
    EXECUTORS,
    HELD_CALL,
    OPENED,
    OUTCOME_UNKNOWN,
    TAKEN_UP,
    Event,
    identity_of,
)
from sopilot.trace.redaction import words_of
from sopilot.values.json import JSON, same, same_name


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
    """Proof of identity; empty if unauthenticated."""

    @property
    def identity(self) -> str:
        return identity_of(self.principal)


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call that waits for approval. ``arguments`` include amendments.

    ``why`` names unproven checks; an approval then stands in for their proof.
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
    facts: tuple[JSON, ...] | None = ()
    """The unproven checks as data (``Licence.facts``); ``None`` if they are unreadable."""

    @property
    def lasts(self) -> int | None:
        """Seconds from the request to its expiry."""
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
        """The event that gave it its present arguments."""
        return next((ruling.seq for ruling in self.rulings if ruling.decision == "amend"), self.seq)

    @property
    def approvals(self) -> int:
        approving = [item for item in self.rulings if item.decision in ("approve", "amend")]
        approvers = ((item.by, item.role) for item in approving)
        return count_approvals(approvers, self.roles, self.needed)

    @property
    def rejection(self) -> Ruling | None:
        return next((ruling for ruling in self.rulings if ruling.decision == "reject"), None)

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
                    "decision": ruling.decision,
                    "by": ruling.by,
                    "role": ruling.role,
                    "reason": ruling.reason,
                    "identity": ruling.identity,
                }
                for ruling in self.rulings
            ],
        }


def rule(held: HeldCall, ruling: Ruling, *, at: float, arguments: Mapping[str, JSON]) -> HeldCall:
    """The held call after a decision. A decision that doesn't count changes nothing.

    A decision counts from a named person in one of the roles, while the call is
    open. ``expire`` needs no person.
    """
    if held.state not in (HeldState.WAITING, HeldState.APPROVED):
        return held
    if ruling.decision == "expire":
        return replace(held, state=HeldState.EXPIRED, rulings=(*held.rulings, ruling))
    if held.has_expired(at) or not ruling.by or ruling.role not in held.roles:
        return held
    if ruling.decision == "reject":
        return replace(held, state=HeldState.REJECTED, rulings=(*held.rulings, ruling))
    if ruling.decision == "amend":
        # Earlier approvals were for other arguments.
        held = replace(held, arguments=dict(arguments), amended=True, rulings=(ruling,))
    else:
        held = replace(held, rulings=(*held.rulings, ruling))
    enough = held.approvals >= held.needed
    return replace(held, state=HeldState.APPROVED if enough else HeldState.WAITING)


def count_approvals(approvers: Iterable[tuple[str, str]], roles: Sequence[str], needed: int) -> int:
    """The number of approvals by distinct persons, in distinct roles if there are enough roles.

    ``approvers`` are persons with the roles in which they approved. A person may have approved in
    several roles and a role may have several approvers, so the number is that of a maximum
    matching.
    """
    people: dict[str, set[str]] = {}
    for name, approved_as in approvers:
        people.setdefault(same_name(name), set()).add(approved_as)
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


_OF_CALLS = frozenset({"domain_call", "domain_result", "decision", "note", "fail"})

END_SESSION = "end_session"
"""The note with which an executor without a machine ends."""

LONGEST_ID = 200
"""Of a call, in characters."""


@dataclass(slots=True)
class CallLedger:
    """``made`` are the ids of calls that were made; ``seen`` has the ids of held calls too."""

    seen: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict, compare=False)
    """Requested id → the next number to try if it is taken."""
    made: set[str] = field(default_factory=set)
    answered: dict[str, int] = field(default_factory=dict)
    """Call id → seq of its ``domain_result``."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Call id → seq of the note that its outcome is unknown, until a person resolves it."""
    held: dict[str, HeldCall] = field(default_factory=dict)
    requesters: set[str] = field(default_factory=set)
    """The people who opened the session or took it up."""
    ended: bool = False
    """Whether an executor without a machine has ended."""
    given_up: str | None = None
    """The last process that the user or the runtime gave up."""

    def fold(self, event: Event) -> None:
        kind, payload = event.kind, event.payload
        if kind not in _OF_CALLS:
            return
        if kind == "domain_call":
            call_id = str(payload["call_id"])
            self.seen.add(call_id)
            self.made.add(call_id)
            held = self.held.get(call_id)
            if held is not None:
                self.held[call_id] = replace(held, state=HeldState.USED)
        elif kind == "domain_result":
            call_id = str(payload["call_id"])
            self.answered[call_id] = event.seq
            self.unknown.pop(call_id, None)
        elif kind == "decision":
            self._decide(event)
        elif kind == "fail":
            self.given_up = self.given_up if event.actor in EXECUTORS else event.process
        else:
            self._note(event)

    def _decide(self, event: Event) -> None:
        payload = event.payload
        held = self.held.get(str(payload["call_id"]))
        if held is not None:
            decision, by, role = (str(payload[key]) for key in ("decision", "by", "role"))
            principal = _mapping(payload.get("principal"))
            ruling = Ruling(decision, by, role, payload["reason"], event.seq, principal)
            arguments = _mapping(payload["arguments"])
            self.held[held.call_id] = rule(held, ruling, at=event.at, arguments=arguments)

    def _note(self, event: Event) -> None:
        name, details = event.note, event.details
        call_id = details.get("call_id")
        self.ended = self.ended or name == END_SESSION
        if event.actor == "runtime" and name in (OPENED, TAKEN_UP) and details.get("requester"):
            self.requesters.add(same_name(str(details["requester"])))
        if not isinstance(call_id, str) or event.actor != "runtime":
            return
        if name == OUTCOME_UNKNOWN:
            self.unknown[call_id] = event.seq
        elif name == HELD_CALL:
            if details.get("awaits") != AWAITS_RELEASE:  # that call is made under its own id
                self.seen.add(call_id)
            if details.get("awaits") == AWAITS_APPROVAL:
                self.held[call_id] = _held(call_id, details, event)

    def forecast(self, events: Sequence[Event]) -> CallLedger:
        """The held and unknown calls after these events, which aren't written yet."""
        if not (self.held or self.unknown):
            for event in events:
                if event.kind in ("note", "fail"):  # nothing else changes what is forecast
                    break
            else:
                return self
        ahead = CallLedger(
            unknown=dict(self.unknown),
            held=dict(self.held),
            ended=self.ended,
            given_up=self.given_up,
        )
        for event in events:
            ahead.fold(event)
        return ahead

    def fresh_id(self, wanted: str) -> str:
        """An unused id: ``wanted`` cut to ``LONGEST_ID``, with a number if it is taken."""
        base = wanted[:LONGEST_ID] or "call"
        if base not in self.seen:
            return base
        number = self.numbers.get(base, 2)  # ids stay seen, so no lower number is free
        while f"{base}.{number}" in self.seen:
            number += 1
        self.numbers[base] = number
        return f"{base}.{number}"


def _held(call_id: str, details: Mapping[str, JSON], event: Event) -> HeldCall:
    expires = details.get("expires_at")
    needed = details.get("needed")
    roles = details.get("roles")
    facts = details.get("facts", ())
    return HeldCall(
        call_id=call_id,
        action=str(details.get("action")),
        arguments=_mapping(details.get("arguments")),
        process=event.process,
        roles=tuple(str(role) for role in roles) if isinstance(roles, list | tuple) else (),
        # An unreadable request is never satisfied.
        needed=needed if isinstance(needed, int) and needed > 0 else 1_000_000,
        requested_at=event.at,
        expires_at=float(expires) if isinstance(expires, int | float) else None,
        seq=event.seq,
        amended=details.get("amended") is True,
        why=kept_message(details.get("message")) or words_of(details.get("why")),
        facts=tuple(facts) if isinstance(facts, list | tuple) else None,
    )


def _mapping(value: JSON) -> dict[str, JSON]:
    return dict(value) if isinstance(value, Mapping) else {}
