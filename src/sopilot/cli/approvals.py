"""`sopilot approvals`: list waiting calls and decide on them."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import click

from sopilot.cli.options import BY, IN_STORE, SESSION, all_of, flag, full_id, option
from sopilot.cli.output import Exit, Output, warn
from sopilot.records.reminders import due_calls, due_lines
from sopilot.runner.options import json_object
from sopilot.runner.store_access import StoreAccess
from sopilot.session.orphans import held_lines, waiting_in, waiting_lines
from sopilot.session.queued_decisions import decide_or_queue, resolve_when_free

CALL = click.argument("call_id", metavar="CALL")
DECISION = all_of(
    SESSION,
    CALL,
    option("--role", "Role in which you decide.", required=True),
    BY,
    option("--reason", "Reason to record with the decision.", default=""),
    IN_STORE,
)


@click.group()
def command() -> None:
    """List calls that wait for a person; approve, reject, amend or resolve them.

    Every decision is an event of the session's trace. If another process runs the session,
    that process records the decision within seconds.
    """


@command.command("list")
@click.argument("session_id", metavar="[ID]", default="", callback=full_id)
@option("--within MINUTES", "List only calls that expire within this time.", "minutes", type=float)
@flag("--once", "Leave out calls listed before; use it for reminders.")
@IN_STORE
def list_calls(session_id: str, minutes: float | None, once: bool, store: StoreAccess) -> Output:
    """List calls that wait for a person, soonest expiry first, and who may decide.

    With a session ID, list that session's waiting calls and unknown outcomes.
    """
    if session_id:
        if minutes is not None or once:
            raise click.UsageError("--within and --once list all sessions; leave out ID")
        result = store.read(lambda opened: waiting_in(opened, session_id))
        store.may_see("approvals list", [session_id], to_all=True)
        report = {"session": session_id, **result.as_json()}
        return Output(report, waiting_lines(result), indent=None)
    access = store.write if once else store.read
    calls = access(lambda opened: due_calls(opened, minutes, once))
    sessions = list(dict.fromkeys(call.session for call in calls))
    store.may_see("approvals list", sessions, to_all=True)
    return Output({"due": [asdict(call) for call in calls]}, due_lines(calls))


@command.command()
@SESSION
@CALL
@BY
@option("--happened/--did-not-happen", "Whether the call took effect.", "ok", required=True)
@IN_STORE
def resolve(session_id: str, call_id: str, store: StoreAccess, **value: Any) -> Output:
    """Record how CALL ended when its outcome is unknown."""
    left = store.as_person(
        lambda opened, who: resolve_when_free(opened, session_id, call_id, who=who, **value)
    )
    report = {"session": session_id, "call_id": call_id, "happened": value["ok"]}
    return Output({**report, "unknown": list(left)}, [f"{call_id}: recorded"], indent=None)


def _decide(
    decision: str, session_id: str, call_id: str, store: StoreAccess, **vote: Any
) -> Output:
    before, held, left = store.as_person(
        lambda opened, who: decide_or_queue(opened, session_id, decision, call_id, who=who, **vote)
    )
    report = {"session": session_id, **held.as_json(), "left": left}
    repeated = not left and decision == "approve" and held.approvals == before.approvals
    if left:
        warn("another process runs this session and will record the decision")
    elif repeated:
        missing = "another person in another role must approve, too"
        warn(f"still {held.approvals} of {held.needed} approvals: {missing}")
    return Output(report, held_lines(held), Exit.if_any(repeated), indent=None)


for name, help in (
    ("approve", "Approve CALL of session ID."),
    ("reject", "Reject CALL of session ID. One rejection ends the call."),
):
    command.command(name, help=help)(DECISION(partial(_decide, name)))


@command.command()
@DECISION
@option("--arguments JSON", "All arguments of the call, as a JSON object.", required=True)
def amend(arguments: str, **value: Any) -> Output:
    """Approve CALL with other arguments. Earlier approvals lapse; the checks run again."""
    return _decide("amend", arguments=json_object("--arguments", arguments), **value)
