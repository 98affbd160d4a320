"""Decisions on held calls, by people, in the trace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from sopilot.language.diagnostics import Diagnostic, UserMistake, did_you_mean, mistake
from sopilot.runtime.records.people import People, Principal
from sopilot.runtime.session._admission import expire_due
from sopilot.runtime.session._approvals import HeldCall, HeldState
from sopilot.runtime.session._call_results import unknown_call
from sopilot.runtime.session.errors import LeaseHeld
from sopilot.runtime.session.identity import load_people
from sopilot.runtime.trace.identity import MACHINE, UNAUTHENTICATED, identity_of
from sopilot.runtime.trace.runtime_notes import DECISION_REFUSED
from sopilot.runtime.vm import DECISIONS, JSON, Actor, Decision, Note
from sopilot.runtime.vm.values import plain_mapping, same_name

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
    who: Principal | None = None,
) -> HeldCall:
    people = await load_people(session.store)
    if who is not None and who.name:
        if by and same_name(by) not in people.names_of(who.name):
            raise mistake("another-name", f"this is {who.name}'s token, and not `{by}`'s")
        by = who.name
    elif (known := people.person(by)) is not None:
        by = known.name  # an alias is no second person
    principal: Mapping[str, JSON] = {}
    async with session.writing():
        held = session.ledger.held.get(call_id)
        if held is None:
            raise unknown_call(call_id, session.ledger.held)
        await expire_due(session)
        held = session.ledger.held[call_id]
        problem = _problem(held, decision, by, role, arguments)
        if problem is None and decision != "expire":
            problem = _party(session, held, people.names_of(by), by)
        if problem is None and decision != "expire":
            given = held.arguments if arguments is None else arguments
            at = session.clock.now()
            found = _entitlement(people, who, by, role, given, at, held.expires_at)
            if isinstance(found, Diagnostic):
                problem = found
            else:
                principal = found
        if problem is not None:
            if by and problem.code in REFUSED:
                await session.step(_refusal(decision, call_id, by, role, who, problem))
            raise UserMistake([problem])
        changed = plain_mapping(arguments or {})
        await session.step(Decision(decision, call_id, by, role, changed, reason, principal))
        return session.ledger.held[call_id]


REFUSED = {"approved-twice", "beyond-limit", "not-entitled", "party", "unauthenticated"}
"""Attempts to decide that stand in the trace: somebody tried what they may not."""


def _refusal(
    decision: str, call_id: str, by: str, role: str, who: Principal | None, problem: Diagnostic
) -> Note:
    details: dict[str, JSON] = {
        "call_id": call_id,
        "decision": decision,
        "by": by,
        "role": role,
        "identity": identity_of(who.as_json() if who is not None else None),
        "code": problem.code,
        "why": problem.message,
    }
    return Note(DECISION_REFUSED, details)


def _entitlement(
    people: People,
    who: Principal | None,
    by: str,
    role: str,
    arguments: Mapping[str, JSON],
    at: float,
    expires_at: float | None,
) -> Mapping[str, JSON] | Diagnostic:
    """How they proved who they are and through what they decide in this role."""
    through, own = "", role
    if "identity" in people.demands and (who is None or who.method == MACHINE):
        return Diagnostic(
            UNAUTHENTICATED,
            "this store takes decisions only from people who prove who they are",
            help="give --token-file",
        )
    if who is not None and who.method != MACHINE:
        entitled = people.entitled(by, role, at, expires_at)
        if entitled is None:
            return Diagnostic("not-entitled", f"{by} has no part as {role} now")
        own, through = entitled
    beyond = people.beyond(own, arguments)
    if beyond is not None:
        return Diagnostic("beyond-limit", f"{own} decides within `{beyond}`, and this is not")
    return {} if who is None else who.as_json(through)


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


def _party(session: Session, held: HeldCall, names: set[str], by: str) -> Diagnostic | None:
    """Who asks for the call, is meant in it, or wrote the rules cannot decide on it."""
    whose = ""
    if names & _NO_PERSON or same_name(str(session.metadata.get("model") or "")) in names:
        whose = "the name of the model or of a part of the run, and no person's"
    elif same_name(str(session.metadata.get("requester") or "")) in names - {""}:
        whose = "who asked for it"
    else:
        process = session.configuration.processes.get(held.process or "")
        for given in (held.arguments, process.known if process is not None else {}):
            for field, value in given.items():
                if isinstance(value, str) and same_name(value) in names:
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
