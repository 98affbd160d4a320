"""`sopilot approve`: decisions of people on held calls."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import click

from sopilot.adapters.sign_in import who_asks
from sopilot.doors.cli.output import json_option, print_json, say
from sopilot.doors.cli.people import TOKEN_FILE
from sopilot.doors.cli.stores import STORE, Answer, with_store
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.session import HeldCall, Session, Store, attach_session

BY = click.option(
    "--as", "by", default="", metavar="NAME", help="Who decides; a token says so itself."
)
SESSION = click.argument("session_id", metavar="ID")
CALL = click.argument("call_id", metavar="CALL")


def decided(command: Callable[..., None]) -> Callable[..., None]:
    """What every decision names: session, call, role, person, reason."""
    role = click.option("--role", required=True, help="In which role.")
    reason = click.option("--reason", default="", help="Recorded with the decision.")
    return SESSION(CALL(role(BY(reason(TOKEN_FILE(STORE(json_option(command))))))))


@click.group()
def command() -> None:
    """Approve, reject or amend a call that waits for people.

    Every decision is an event of the session's trace. A session that another
    process runs at this moment is refused; it gives way while it waits.
    """


@command.command("list")
@SESSION
@STORE
@json_option
def list_calls(session_id: str, store_spec: str | None, as_json: bool) -> None:
    """Calls of session ID that wait, and outcomes that nobody knows."""

    async def look(session: Session) -> tuple[tuple[HeldCall, ...], tuple[str, ...]]:
        return session.held_calls, session.unknown_outcomes

    held, unknown = _on_session(store_spec, session_id, look)
    if as_json:
        calls = [one.as_json() for one in held]
        print_json({"session": session_id, "held": calls, "unknown": list(unknown)}, indent=None)
        return
    for one in held:
        _show(one)
    for call_id in unknown:
        say(f"{call_id}  outcome unknown: settle it with `sopilot approve settle`")
    if not held and not unknown:
        say("nothing waits")


@command.command()
@decided
def approve(**given: Any) -> None:
    """Approve CALL of session ID."""
    _decide("approve", **given)


@command.command()
@decided
def reject(**given: Any) -> None:
    """Reject CALL of session ID. One rejection ends it."""
    _decide("reject", **given)


@command.command()
@decided
@click.option("--arguments", required=True, metavar="JSON", help="All arguments, as an object.")
def amend(arguments: str, **given: Any) -> None:
    """Approve CALL with other arguments. Earlier approvals fall; the checks are made again."""
    try:
        amended = json.loads(arguments)
    except (ValueError, RecursionError):
        raise UserMistake("--arguments is not JSON") from None
    if not isinstance(amended, dict):
        raise UserMistake("--arguments must be a JSON object")
    _decide("amend", arguments=amended, **given)


@command.command()
@SESSION
@CALL
@BY
@click.option("--happened/--did-not-happen", required=True, help="How the call really ended.")
@STORE
@json_option
def settle(session_id: str, call_id: str, happened: bool, as_json: bool, **given: Any) -> None:
    """Say how CALL ended, of which the outcome is unknown."""

    async def use(session: Session) -> tuple[str, ...]:
        await session.settle_outcome(call_id, ok=happened, by=given["by"])
        return session.unknown_outcomes

    left = _on_session(given["store_spec"], session_id, use)
    if as_json:
        report = {"session": session_id, "call_id": call_id, "happened": happened}
        print_json({**report, "unknown": list(left)}, indent=None)
    else:
        say(f"{call_id}: recorded")


def _decide(
    decision: str,
    session_id: str,
    call_id: str,
    store_spec: str | None,
    as_json: bool,
    token_file: Path | None,
    **vote: Any,
) -> None:
    async def use(session: Session) -> tuple[int, HeldCall]:
        before = session.ledger.held.get(call_id)
        who = await who_asks(session.store, token_file)
        made = await session.decide(decision, call_id, who=who, **vote)
        return before.approvals if before else 0, made

    before, held = _on_session(store_spec, session_id, use)
    if as_json:
        print_json({"session": session_id, **held.as_json()}, indent=None)
    else:
        _show(held)
    if decision == "approve" and held.approvals == before:
        still = f"recorded, and still {held.approvals} of {held.needed}"
        who = held.rulings[-1].by
        say(f"{still}: {who} has approved already, and counts once", err=True)
        click.get_current_context().exit(1)


def _on_session(
    store_spec: str | None, session_id: str, use: Callable[[Session], Awaitable[Answer]]
) -> Answer:
    async def run(store: Store) -> Answer:
        async with await attach_session(store, session_id) as session:
            return await use(session)

    return with_store(store_spec, run)


def _show(held: HeldCall) -> None:
    arguments = json.dumps(dict(held.arguments), ensure_ascii=False)
    say(
        f"{held.call_id}  {held.state}  {held.action} {arguments}  "
        f"{held.approvals} of {held.needed} from {', '.join(held.roles)}"
    )
    for one in held.rulings:
        say(f"  {one.decision} by {one.by} as {one.role} ({one.identity})")
    if held.why:
        say(f"  not proven: {held.why}")
