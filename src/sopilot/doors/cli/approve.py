"""`sopilot approve`: decisions of people on held calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from sopilot.adapters.sign_in import who_asks
from sopilot.doors.cli.output import json_option, print_json, say
from sopilot.doors.cli.people import TOKEN_FILE
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.session import HeldCall, Store
from sopilot.runtime.session.deciding import decide_or_leave, settle_when_free
from sopilot.runtime.session.unsettled import waiting_in

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

    Every decision is an event of the session's trace. Where another process runs the
    session at this moment, the decision is left for it, and on record within seconds.
    """


@command.command("list")
@SESSION
@STORE
@json_option
def list_calls(session_id: str, store_spec: str | None, as_json: bool) -> None:
    """Calls of session ID that wait, and outcomes that nobody knows."""

    found = with_store(store_spec, lambda store: waiting_in(store, session_id))
    if as_json:
        print_json({"session": session_id, **found.as_json()}, indent=None)
        return
    for one in found.held:
        _show(one)
    for call in found.unknown:
        say(f"{call.call_id}  outcome unknown: settle it with `sopilot approve settle`")
    for left in found.left:
        say(f"left for the running session, not on record yet: {json.dumps(left)}")
    if not found.held and not found.unknown:
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

    left = with_store(
        given["store_spec"],
        lambda store: settle_when_free(store, session_id, call_id, ok=happened, by=given["by"]),
    )
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
    async def use(store: Store) -> tuple[HeldCall, HeldCall, bool]:
        who = await who_asks(store, token_file)
        return await decide_or_leave(store, session_id, decision, call_id, who=who, **vote)

    before, held, left = with_store(store_spec, use)
    if as_json:
        print_json({"session": session_id, **held.as_json(), "left": left}, indent=None)
    else:
        _show(held)
    if left:
        say("somebody runs this session: the decision is left for it", err=True)
    elif decision == "approve" and held.approvals == before.approvals:
        still = f"recorded, and still {held.approvals} of {held.needed}"
        by = held.rulings[-1].by
        say(f"{still}: {by} has approved already, and counts once", err=True)
        click.get_current_context().exit(1)


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
