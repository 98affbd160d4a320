"""Decisions of people who are elsewhere: on record at once, or left for who runs the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from sopilot.machine.approvals import HeldCall
from sopilot.machine.secrets import Secrets
from sopilot.messages.errors import LeaseHeld
from sopilot.protocols import Clock, SystemClock
from sopilot.records.entitlements import Vote, load_entitlements
from sopilot.records.loading import load
from sopilot.records.people import Principal
from sopilot.records.store import Store
from sopilot.session.calls import unknown_call
from sopilot.session.lease import when_free
from sopilot.session.opening import attach_session
from sopilot.values.json import JSON

PATIENCE_SECONDS = 15.0
"""A process that was killed keeps its lease for a while."""


async def decide_or_leave(
    store: Store,
    session_id: str,
    decision: str,
    call_id: str,
    *,
    by: str,
    role: str,
    arguments: Mapping[str, JSON] | None = None,
    reason: str = "",
    who: Principal | None = None,
    clock: Clock | None = None,
) -> tuple[HeldCall, HeldCall, bool]:
    """The call before and after, as people may see it, and whether the decision was only left:
    somebody runs the session, and puts it on record within seconds."""
    try:
        async with await attach_session(store, session_id, clock=clock) as session:
            await session.take_decisions()
            before = _held(session.ledger.held, call_id)
            after = await session.decide(
                decision, call_id, by=by, role=role, arguments=arguments, reason=reason, who=who
            )
            return session.secrets.shown_call(before), session.secrets.shown_call(after), False
    except LeaseHeld:
        loaded = await load(store, session_id)
        held = _held(loaded.ledger.held, call_id)
        now = (clock or SystemClock()).now()
        rules = await load_entitlements(
            store, loaded.record.metadata, loaded.configuration, loaded.ledger, loaded.programs
        )
        by = rules.people.name_of(by, who)
        rules.require(Vote(decision, by, role, arguments, who), held, now)
        left = {"decision": decision, "call_id": call_id, "by": by, "role": role}
        values = {
            **left,
            "arguments": arguments,
            "seen": held.version,
            "reason": reason,
            "who": None if who is None else asdict(who),
        }
        await store.queue_decision(session_id, values, at=now)
        shown = Secrets(loaded.programs, loaded.configuration, [held]).shown_call(held)
        return shown, shown, True


async def resolve_when_free(
    store: Store,
    session_id: str,
    call_id: str,
    *,
    ok: bool,
    by: str,
    value: JSON = None,
    who: Principal | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
) -> tuple[str, ...]:
    """Says how a call ended, once whoever made it is gone; what is unknown still."""

    async def recorded() -> tuple[str, ...]:
        async with await attach_session(store, session_id) as session:
            await session.resolve_outcome(call_id, ok=ok, value=value, by=by, who=who)
            return session.unknown_outcomes

    return await when_free(recorded, patience_seconds=patience_seconds)


def _held(held: Mapping[str, HeldCall], call_id: str) -> HeldCall:
    result = held.get(call_id)
    if result is None:
        raise unknown_call(call_id, held)
    return result
