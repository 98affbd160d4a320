"""Decisions on held calls, by people, in the trace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from sopilot.machine.approvals import HeldCall, HeldState
from sopilot.messages.diagnostic import Diagnostic
from sopilot.messages.errors import LeaseHeld, UserMistake
from sopilot.records.entitlements import REFUSED, Vote
from sopilot.records.people import Principal, principal_from_json
from sopilot.records.store import Store
from sopilot.session.admission import expire_due
from sopilot.session.calls import unknown_call
from sopilot.trace.events import Decision
from sopilot.values.json import JSON, plain_mapping, without_references

if TYPE_CHECKING:
    from sopilot.session.session import Session


async def take_left(session: Session, store: Store) -> None:
    """Put queued decisions on record, once. Drop those that don't count any more: the people who
    queued them were told that they did."""
    left = await store.pending_decisions(session.id)
    for _, item in left:
        value = plain_mapping(item if isinstance(item, Mapping) else {})
        arguments = value.get("arguments")
        decision, call_id = str(value.get("decision")), str(value.get("call_id"))
        by, role = str(value.get("by")), str(value.get("role"))
        who = principal_from_json(value.get("who"))
        held = session.ledger.held.get(call_id)
        seen = value.get("seen")  # nothing, where an earlier release left it
        if decision == "approve" and held is not None and seen not in (None, held.version):
            async with session.writing():
                vote = Vote(decision, by, role, who=who)
                await session.step(vote.refused(call_id, _AMENDED))
            continue
        with suppress(UserMistake):
            await session.decide(
                decision,
                call_id,
                by=by,
                role=role,
                arguments=arguments if isinstance(arguments, Mapping) else None,
                reason=str(value.get("reason")),
                who=who,
            )
    if left:
        await store.acknowledge_decisions(session.id, [number for number, _ in left])


_AMENDED = Diagnostic("amended-since", "the call was amended after it was looked at")


async def decide(
    session: Session,
    decision: str,
    call_id: str,
    *,
    by: str = "",
    role: str = "",
    arguments: Mapping[str, JSON] | None = None,
    reason: str = "",
    who: Principal | None = None,
) -> HeldCall:
    """Record a decision. ``who`` proved who they are; without, the trace says that nobody did."""
    async with session.writing():
        held = session.ledger.held.get(call_id)
        if held is None:
            raise unknown_call(call_id, session.ledger.held)
        await expire_due(session)
        held = session.ledger.held[call_id]
        rules = await session.entitlements()
        vote = Vote(decision, rules.people.name_of(by, who), role, arguments, who)
        try:
            principal = rules.require(vote, held, session.clock.now())
        except UserMistake as refused:
            [problem] = refused.diagnostics
            if vote.by and problem.code in REFUSED:
                await session.step(vote.refused(call_id, problem))
            raise
        changed = without_references(plain_mapping(arguments or {}))
        await session.step(Decision(decision, call_id, vote.by, role, changed, reason, principal))
        return session.ledger.held[call_id]


async def wait_for_decision(
    session: Session,
    call_id: str,
    *,
    poll_seconds: float = 1.0,
    timeout_seconds: float | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> HeldCall:
    """Return the held call once somebody decided, it expired, or the time is over.

    Gives up the lease while waiting, so that others can write the decision.
    """
    begun = session.clock.now()
    while True:
        await session.take_decisions()
        held = session.ledger.held.get(call_id)
        if held is None:
            raise unknown_call(call_id, session.ledger.held)
        now = session.clock.now()
        if held.state is not HeldState.WAITING:
            return held
        if held.has_expired(now):
            async with session.writing():
                await expire_due(session)
            return session.ledger.held[call_id]
        if timeout_seconds is not None and now - begun >= timeout_seconds:
            return held
        head = session.head
        await session.release()
        while True:
            await sleep(poll_seconds)
            now = session.clock.now()
            over = timeout_seconds is not None and now - begun >= timeout_seconds
            new = over or held.has_expired(now) or await session.stored_head() != head
            if new or await session.has_decisions():
                try:
                    await session.reacquire()
                except LeaseHeld:
                    continue
                break
