"""Decisions from another process: recorded at once, or queued for the session's owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Unpack

from sopilot.machine.call_ledger import HeldCall
from sopilot.machine.secrets import Secrets
from sopilot.messages.errors import LeaseHeld
from sopilot.protocols import Clock, SystemClock
from sopilot.records.entitlements import Ballot, Vote, load_entitlements
from sopilot.records.loading import load
from sopilot.records.people import Principal
from sopilot.records.store import Store
from sopilot.session.calls import unknown_call
from sopilot.session.lease import when_free
from sopilot.session.opening import attach_session
from sopilot.values.json import JSON

PATIENCE_SECONDS = 15.0
"""A process that was killed keeps its lease for a while."""


async def decide_or_queue(
    store: Store,
    session_id: str,
    decision: str,
    call_id: str,
    *,
    clock: Clock | None = None,
    **ballot: Unpack[Ballot],
) -> tuple[HeldCall, HeldCall, bool]:
    """Return the call before and after, as people may see it, and whether the decision was only
    queued: the process that runs the session records it within seconds."""
    vote = Vote(decision, **ballot)
    try:
        async with await attach_session(store, session_id, clock=clock) as session:
            await session.take_decisions()
            before = _held(session.ledger.held, call_id)
            after = await session.record_vote(call_id, vote)
            return session.secrets.shown_call(before), session.secrets.shown_call(after), False
    except LeaseHeld:
        loaded = await load(store, session_id)
        held = _held(loaded.ledger.held, call_id)
        now = (clock or SystemClock()).now()
        rules = await load_entitlements(
            store, loaded.record.metadata, loaded.configuration, loaded.ledger, loaded.programs
        )
        vote = replace(vote, by=rules.people.name_of(vote.by, vote.who))
        rules.require(vote, held, now)
        values = {**asdict(vote), "call_id": call_id, "seen": held.version}
        await store.queue_decision(session_id, values, at=now)
        shown = Secrets(loaded.programs, loaded.whole).shown_call(held)
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
    """Record how a call ended once its process is gone; return the ids still unknown."""

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
