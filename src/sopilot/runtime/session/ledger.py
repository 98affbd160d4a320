"""What a trace says about calls: ids in use, held calls, unknown outcomes. Pure.

Folded event by event, live and on resume alike, so both agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sopilot.runtime.session._approvals import HeldCall, HeldState, rule
from sopilot.runtime.trace import words_of
from sopilot.runtime.trace.runtime_notes import AWAITS_APPROVAL, HELD_CALL, OUTCOME_UNKNOWN
from sopilot.runtime.vm import JSON, Event

_OF_CALLS = frozenset({"domain_call", "domain_result", "decision", "note"})


END_SESSION = "end_session"
"""The note of an executor that has no machine, at its end."""

LONGEST_ID = 200
"""Of a call, in characters."""


@dataclass(slots=True)
class CallLedger:
    """``made`` are the ids of calls that were made, ``seen`` those and every held one."""

    seen: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    answered: dict[str, int] = field(default_factory=dict)
    """Call id → seq of its ``domain_result``."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Call id → seq of the note that its outcome is unknown, until somebody settles it."""
    held: dict[str, HeldCall] = field(default_factory=dict)
    ended: bool = False
    """An executor without a machine has said that it is done."""

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
        else:
            self._note(event)

    def _decide(self, event: Event) -> None:
        payload = event.payload
        held = self.held.get(str(payload["call_id"]))
        if held is not None:
            self.held[held.call_id] = rule(
                held,
                decision=str(payload["decision"]),
                by=str(payload["by"]),
                role=str(payload["role"]),
                arguments=_mapping(payload["arguments"]),
                reason=payload["reason"],
                seq=event.seq,
                at=event.at,
                principal=_mapping(payload.get("principal")),
            )

    def _note(self, event: Event) -> None:
        self.ended = self.ended or event.payload.get("name") == END_SESSION
        details = _mapping(event.payload.get("details"))
        call_id = details.get("call_id")
        if not isinstance(call_id, str) or event.actor != "runtime":
            return
        name = event.payload.get("name")
        if name == OUTCOME_UNKNOWN:
            self.unknown[call_id] = event.seq
        elif name == HELD_CALL:
            self.seen.add(call_id)
            if details.get("awaits") == AWAITS_APPROVAL:
                self.held[call_id] = _held(call_id, details, event)

    def forecast(self, events: Sequence[Event]) -> CallLedger:
        """What is held and unknown after these events, which are not written yet."""
        if not (self.held or self.unknown):
            for event in events:
                if event.kind == "note":  # nothing else holds a call or loses its outcome
                    break
            else:
                return self
        ahead = CallLedger(unknown=dict(self.unknown), held=dict(self.held), ended=self.ended)
        for event in events:
            ahead.fold(event)
        return ahead

    def fresh_id(self, wanted: str) -> str:
        """``wanted``, or with a number behind it: models use ids again, and may write long ones,
        which are cut: registers find calls by them."""
        base = wanted[:LONGEST_ID] or "call"
        if base not in self.seen:
            return base
        number = 2
        while f"{base}.{number}" in self.seen:
            number += 1
        return f"{base}.{number}"


def _held(call_id: str, details: Mapping[str, JSON], event: Event) -> HeldCall:
    expires = details.get("expires_at")
    needed = details.get("needed")
    roles = details.get("roles")
    return HeldCall(
        call_id=call_id,
        action=str(details.get("action")),
        arguments=_mapping(details.get("arguments")),
        process=event.process,
        roles=tuple(str(role) for role in roles) if isinstance(roles, list | tuple) else (),
        # A request that cannot be read is never satisfied.
        needed=needed if isinstance(needed, int) and needed > 0 else 1_000_000,
        requested_at=event.at,
        expires_at=float(expires) if isinstance(expires, int | float) else None,
        seq=event.seq,
        amended=details.get("amended") is True,
        why=words_of(details.get("why")),
    )


def _mapping(value: JSON) -> dict[str, JSON]:
    return dict(value) if isinstance(value, Mapping) else {}
