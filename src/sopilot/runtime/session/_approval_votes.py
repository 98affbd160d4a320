"""Decisions on held calls, by people, in the trace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from sopilot.language.diagnostics import Diagnostic, UserMistake, did_you_mean
from sopilot.runtime.session._approvals import HeldCall, HeldState
from sopilot.runtime.session._tool_calls import expire_due, unknown_call
from sopilot.runtime.session.errors import LeaseHeld
from sopilot.runtime.vm import DECISIONS, JSON, Decision
from sopilot.runtime.vm.values import plain_mapping

if TYPE_CHECKING:
    from sopilot.runtime.session._session import Session


async def decide(
    session: Session,
    decision: str,
    call_id: str,
    *,
    by: str,
    role: str,
    arguments: Mapping[str, JSON] | None,
    reason: str,
) -> HeldCall:
    async with session.writing():
        held = session.ledger.held.get(call_id)
        if held is None:
            raise unknown_call(call_id, session.ledger.held)
        await expire_due(session)
        problem = _problem(session.ledger.held[call_id], decision, by, role, arguments)
        if problem is not None:
            raise UserMistake([problem])
        await session.step(
            Decision(decision, call_id, by, role, plain_mapping(arguments or {}), reason)
        )
        return session.ledger.held[call_id]


def _problem(
    held: HeldCall, decision: str, by: str, role: str, arguments: Mapping[str, JSON] | None
) -> Diagnostic | None:
    if decision not in DECISIONS:
        return Diagnostic(
            "unknown-decision",
            f"`{decision}` is not a decision",
            help=did_you_mean(decision, DECISIONS),
        )
    if held.state not in (HeldState.WAITING, HeldState.APPROVED):
        return Diagnostic("decided", f"call `{held.call_id}` is {held.state} already")
    if decision == "expire":
        return None
    if not by.strip():
        return Diagnostic("nobody", "a decision needs the name of whoever makes it")
    if role not in held.roles:
        return Diagnostic(
            "wrong-role",
            f"`{role}` has no say in call `{held.call_id}`",
            help=did_you_mean(role, held.roles),
        )
    if (decision == "amend") != (arguments is not None):
        return Diagnostic("amendment", "`amend` needs arguments, and nothing else takes them")
    if decision == "approve" and any(
        one.by == by and one.role == role and one.decision in ("approve", "amend")
        for one in held.rulings
    ):
        return Diagnostic("approved-twice", f"{by} has approved as {role} already")
    return None


async def wait_for_decision(
    session: Session,
    call_id: str,
    *,
    poll_seconds: float,
    timeout_seconds: float | None,
    sleep: Callable[[float], Awaitable[None]],
) -> HeldCall:
    """The held call once somebody decided, it expired, or the time is over.

    The lease is given up while waiting, so that whoever decides can write. A
    call that still waits at the end has the state ``waiting``.
    """
    begun = session.clock.now()
    while True:
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
            if over or held.has_expired(now) or await session.stored_head() != head:
                try:
                    await session.reacquire()
                except LeaseHeld:
                    continue
                break
