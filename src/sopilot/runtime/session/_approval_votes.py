"""Decisions on held calls, by people, in the trace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from sopilot.language.diagnostics import Diagnostic, UserMistake, did_you_mean
from sopilot.runtime.session._admission import expire_due
from sopilot.runtime.session._approvals import HeldCall, HeldState
from sopilot.runtime.session._call_results import unknown_call
from sopilot.runtime.session._store import Store
from sopilot.runtime.session.errors import LeaseHeld
from sopilot.runtime.vm import DECISIONS, JSON, Actor, Configuration, Decision
from sopilot.runtime.vm.values import Fields, plain_mapping, same_name

if TYPE_CHECKING:
    from sopilot.runtime.session._session import Session


async def take_left(session: Session, store: Store) -> None:
    """What was left for a session goes on record, once. What does not count any more is dropped:
    whoever left it was told that it did."""
    left = await store.left(session.id)
    for _, one in left:
        given = plain_mapping(one if isinstance(one, Mapping) else {})
        arguments = given.get("arguments")
        with suppress(UserMistake):
            await session.decide(
                str(given.get("decision")),
                str(given.get("call_id")),
                by=str(given.get("by")),
                role=str(given.get("role")),
                arguments=arguments if isinstance(arguments, Mapping) else None,
                reason=str(given.get("reason")),
            )
    if left:
        await store.took(session.id, [number for number, _ in left])


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
        held = session.ledger.held[call_id]
        problem = problem_of(held, decision, by, role, arguments)
        if problem is None and decision != "expire":
            problem = party_of(session.metadata, session.configuration, held, by)
        if problem is not None:
            raise UserMistake([problem])
        await session.step(
            Decision(decision, call_id, by, role, plain_mapping(arguments or {}), reason)
        )
        return session.ledger.held[call_id]


def problem_of(
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
    if not same_name(by):
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
        same_name(one.by) == same_name(by)
        and one.role == role
        and one.decision in ("approve", "amend")
        for one in held.rulings
    ):
        return Diagnostic("approved-twice", f"{by} has approved as {role} already")
    return None


_NO_PERSON = {*(str(one) for one in Actor if one is not Actor.OPERATOR), "agent", "assistant"}


def party_of(
    metadata: Fields, configuration: Configuration, held: HeldCall, by: str
) -> Diagnostic | None:
    """Who asks for the call, or is meant in it, cannot decide on it."""
    name = same_name(by)
    whose = ""
    if name in _NO_PERSON or name == same_name(str(metadata.get("model") or "")):
        whose = "the name of the model or of a part of the run, and no person's"
    else:
        process = configuration.processes.get(held.process or "")
        for given in (held.arguments, process.known if process is not None else {}):
            for field, value in given.items():
                if isinstance(value, str) and same_name(value) == name:
                    whose = f"a party to this call (its `{field}`)"
    if not whose:
        return None
    return Diagnostic(
        "party", f"`{by}` is {whose}", help="somebody who has no part in it must decide"
    )


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
