"""Decisions on held calls, by people, in the trace."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from sopilot.machine.call_ledger import HeldCall
from sopilot.messages.diagnostic import Diagnostic
from sopilot.messages.errors import UserMistake
from sopilot.records.entitlements import REFUSED, Ballot, Vote, refused_vote
from sopilot.records.people import principal_from_json
from sopilot.records.store import Store
from sopilot.session.admission import expire_due, expire_others
from sopilot.session.calls import unknown_call
from sopilot.trace.events import Decision
from sopilot.values.json import Fields, plain_mapping, without_references

if TYPE_CHECKING:
    from sopilot.session.session import Session


async def record_queued(session: Session, store: Store) -> None:
    """Record queued decisions, once. Drop those that don't count any more: the people who queued
    them saw that they did."""
    queued = await store.pending_decisions(session.id)
    for _, item in queued:
        value: Fields = item if isinstance(item, Mapping) else {}
        texts = (str(value.get(name)) for name in ("decision", "by", "role", "call_id", "reason"))
        decision, by, role, call_id, reason = texts
        arguments, who = value.get("arguments"), principal_from_json(value.get("who"))
        arguments = arguments if isinstance(arguments, Mapping) else None
        vote = Vote(decision, by, role, arguments, reason, who)
        held = session.ledger.held.get(call_id)
        if decision == "approve" and held is not None and value.get("seen") != held.version:
            async with session.writing():
                await session.step(refused_vote(vote, call_id, _AMENDED))
            continue
        with suppress(UserMistake):
            await record_vote(session, call_id, vote)
    if queued:
        await store.acknowledge_decisions(session.id, [number for number, _ in queued])


_AMENDED = Diagnostic("amended-since", "the call was amended after you looked at it")


async def decide(
    session: Session, decision: str, call_id: str, **ballot: Unpack[Ballot]
) -> HeldCall:
    """Record a decision. Without ``who`` the trace says that the person wasn't authenticated."""
    return await record_vote(session, call_id, Vote(decision, **ballot))


async def record_vote(session: Session, call_id: str, vote: Vote) -> HeldCall:
    async with session.writing():
        held = session.ledger.held.get(call_id)
        if held is None:
            raise unknown_call(call_id, session.ledger.held)
        await expire_due(session)
        held = session.ledger.held[call_id]
        rules = await session.entitlements()
        vote = replace(vote, by=rules.people.name_of(vote.by, vote.who))
        try:
            principal = rules.require(vote, held, session.clock.now())
        except UserMistake as refused:
            [problem] = refused.diagnostics
            if vote.by and problem.code in REFUSED:
                await session.step(refused_vote(vote, call_id, problem))
            raise
        changed = without_references(plain_mapping(vote.arguments or {}))
        await session.step(
            Decision(vote.decision, call_id, vote.by, vote.role, changed, vote.reason, principal)
        )
        held = session.ledger.held[call_id]
        if vote.decision == "amend" and held.amended:
            await expire_others(session, held)
        return held
