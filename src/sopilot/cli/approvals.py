"""`sopilot approvals`: list waiting calls and decide on them."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import click

from sopilot.cli.options import BY, SESSION, STORE, all_of, json_option
from sopilot.cli.output import Exit, give, say
from sopilot.records.reminders import due_calls, due_lines
from sopilot.runner.options import json_object
from sopilot.runner.store_access import StoreAccess
from sopilot.session.decisions import decide_or_leave, resolve_when_free
from sopilot.session.orphans import held_lines, waiting_in, waiting_lines

CALL = click.argument("call_id", metavar="CALL")
DECISION = all_of(
    SESSION,
    CALL,
    click.option("--role", required=True, help="Role in which you decide."),
    BY,
    click.option("--reason", default="", help="Reason to record with the decision."),
    STORE,
    json_option,
)


@click.group()
def command() -> None:
    """List calls that wait for a person; approve, reject, amend or resolve them.

    Every decision is an event of the session's trace. If another process runs the session,
    that process records the decision within seconds.
    """


@command.command("list")
@click.argument("session_id", metavar="[ID]", default="")
@click.option(
    "--within",
    "minutes",
    type=float,
    metavar="MINUTES",
    help="List only calls that expire within this time.",
)
@click.option("--once", is_flag=True, help="Leave out calls listed before; use it for reminders.")
@STORE
@json_option
def list_calls(
    session_id: str, minutes: float | None, once: bool, store: StoreAccess, as_json: bool
) -> None:
    """List calls that wait for a person, soonest expiry first, and who may decide.

    With a session ID, list that session's waiting calls and unknown outcomes.
    """
    if session_id:
        if minutes is not None or once:
            raise click.UsageError("--within and --once list all sessions; leave out ID")
        result = store.read(lambda opened: waiting_in(opened, session_id))
        store.may_see("approvals list", [session_id], to_all=True)
        report = {"session": session_id, **result.as_json()}
        give(as_json, report, waiting_lines(result), indent=None)
        return
    access = store.write if once else store.read
    calls = access(lambda opened: due_calls(opened, minutes, once))
    sessions = list(dict.fromkeys(call.session for call in calls))
    store.may_see("approvals list", sessions, to_all=True)
    give(as_json, {"due": [asdict(call) for call in calls]}, due_lines(calls))


@command.command()
@SESSION
@CALL
@BY
@click.option(
    "--happened/--did-not-happen", "ok", required=True, help="Whether the call took effect."
)
@STORE
@json_option
def resolve(session_id: str, call_id: str, store: StoreAccess, as_json: bool, **value: Any) -> None:
    """Record how CALL ended when its outcome is unknown."""
    left = store.as_person(
        lambda opened, who: resolve_when_free(opened, session_id, call_id, who=who, **value)
    )
    report = {"session": session_id, "call_id": call_id, "happened": value["ok"]}
    give(as_json, {**report, "unknown": list(left)}, [f"{call_id}: recorded"], indent=None)


def _decide(
    decision: str, session_id: str, call_id: str, store: StoreAccess, as_json: bool, **vote: Any
) -> None:
    before, held, left = store.as_person(
        lambda opened, who: decide_or_leave(opened, session_id, decision, call_id, who=who, **vote)
    )
    report = {"session": session_id, **held.as_json(), "left": left}
    give(as_json, report, held_lines(held), indent=None)
    if left:
        say("another process runs this session and will record the decision", err=True)
    elif decision == "approve" and held.approvals == before.approvals:
        by = held.rulings[-1].by
        say(
            f"still {held.approvals} of {held.needed} approvals: {by} had already approved",
            err=True,
        )
        raise SystemExit(Exit.FINDINGS)


for name, help in (
    ("approve", "Approve CALL of session ID."),
    ("reject", "Reject CALL of session ID. One rejection ends the call."),
):
    command.command(name, help=help)(DECISION(partial(_decide, name)))


@command.command()
@DECISION
@click.option("--arguments", required=True, metavar="JSON", help="All arguments as a JSON object.")
def amend(arguments: str, **value: Any) -> None:
    """Approve CALL with other arguments. Earlier approvals lapse; the checks run again."""
    _decide("amend", arguments=json_object("--arguments", arguments), **value)
