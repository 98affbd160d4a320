"""Guarded actions: did the program accept, and had enough people approved?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sopilot.language.program.model import Guarded
from sopilot.runtime.audit._audit_state import CLOSING, AuditState
from sopilot.runtime.audit._state import PendingCall, ProcessView, is_withheld
from sopilot.runtime.vm.events import Event
from sopilot.runtime.vm.values import JSON, same, same_name


def judge_guard(
    run: AuditState,
    event: Event,
    call: PendingCall,
    process: ProcessView | None,
    *,
    violated: bool = False,
) -> None:
    """Findings about a call of a guarded action; ``violated``: the cursor does not license it."""
    codes = [process.program] if process is not None else list(run.programs.values())
    guarded = next((c.guarded[call.action] for c in codes if call.action in c.guarded), None)
    if guarded is None:
        return
    if violated:
        run.find(
            "guard-violated",
            event,
            f"`{call.action}` is irreversible and ran where the program does not accept it",
            action=call.action,
        )
    if guarded.needed > 0:
        _judge_approval(run, event, call, guarded)


OPERATOR = "operator"
"""Who decides on an unproven call where the handbook names no role."""


def decided_by_people(run: AuditState, event: Event, guarded: Guarded) -> bool:
    """Whether enough people approved this very call, and nobody closed it."""
    call_id = str(event.payload.get("call_id"))
    decisions = run.decisions.get(call_id, [])
    if any(one.payload.get("decision") in CLOSING for one in decisions):
        return False
    asked = replace(guarded, roles=guarded.roles or (OPERATOR,), needed=max(guarded.needed, 1))
    return _approvals(_standing(run, event, call_id, asked, decisions), asked) >= asked.needed


def _judge_approval(run: AuditState, event: Event, call: PendingCall, guarded: Guarded) -> None:
    call_id = str(event.payload.get("call_id"))
    decisions = run.decisions.get(call_id, [])
    closed = [one for one in decisions if one.payload.get("decision") in CLOSING]
    standing = _standing(run, event, call_id, guarded, decisions)
    if closed:
        word = "rejected" if closed[-1].payload.get("decision") == "reject" else "expired"
        run.find(
            "approval-missing",
            event,
            f"`{call.action}` ran although its approval was {word} (#{closed[-1].seq})",
            action=call.action,
        )
    elif (count := _approvals(standing, guarded)) < guarded.needed:
        run.find(
            "approval-missing",
            event,
            f"`{call.action}` ran with {count} of {guarded.needed} approvals by "
            + ", ".join(guarded.roles),
            action=call.action,
        )
    amended = [one for one in decisions if one.payload.get("decision") == "amend"]
    if amended and not _the_same(amended[-1].payload.get("arguments"), dict(call.arguments)):
        run.find(
            "approval-exceeded",
            event,
            f"`{call.action}` ran with other arguments than were approved (#{amended[-1].seq})",
            action=call.action,
        )


def _standing(
    run: AuditState, event: Event, call_id: str, guarded: Guarded, decisions: Sequence[Event]
) -> list[Event]:
    """The approvals that count for this call. An amendment voids the ones before it: they
    were for other arguments."""
    found: list[Event] = []
    asked = run.held.get(call_id)
    for one in decisions:
        word = one.payload.get("decision")
        if word not in ("approve", "amend") or not one.payload.get("by"):
            continue
        if one.payload.get("role") not in guarded.roles:
            continue
        since = one.at if asked is None else asked
        if guarded.expires_seconds is not None and event.at - since > guarded.expires_seconds:
            continue
        found = [one] if word == "amend" else [*found, one]
    return found


def _approvals(standing: Sequence[Event], guarded: Guarded) -> int:
    """Distinct people; in distinct roles as long as there are roles enough."""
    people: dict[str, set[str]] = {}
    for one in standing:
        people.setdefault(same_name(str(one.payload["by"])), set()).add(str(one.payload["role"]))
    if guarded.needed > len(guarded.roles):
        return len(people)
    seats: dict[str, str] = {}

    def seat(person: str, tried: set[str]) -> bool:
        for role in sorted(people[person] - tried):
            tried.add(role)
            if role not in seats or seat(seats[role], tried):
                seats[role] = person
                return True
        return False

    return sum(seat(person, set()) for person in sorted(people))


def _the_same(amended: JSON, called: JSON) -> bool:
    return is_withheld(amended) != is_withheld(called) or same(amended, called)
