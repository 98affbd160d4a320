"""`sopilot approvals`: list blocked calls and decide on them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from sopilot.cli.output import give, json_option, say
from sopilot.cli.stores import BY, session_named, signed
from sopilot.records.reminders import due_calls, due_lines
from sopilot.runner.opened_stores import may_see, with_person, with_store
from sopilot.runner.options import json_object
from sopilot.session.decisions import decide_or_leave, resolve_when_free
from sopilot.session.orphans import held_lines, waiting_in, waiting_lines

SESSION = click.argument("session_id", metavar="ID")


CALL = click.argument("call_id", metavar="CALL")


def decided(command: Callable[..., None]) -> Callable[..., None]:
    """What every decision names: session, call, role, person, reason."""
    role = click.option("--role", required=True, help="The role in which you decide.")
    reason = click.option("--reason", default="", help="Reason to record with the decision.")
    return SESSION(CALL(role(BY(reason(signed(json_option(command)))))))


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
@signed
@json_option
def list_calls(
    session_id: str, minutes: float | None, once: bool, as_json: bool, **value: Any
) -> None:
    """List calls that wait for a person, soonest expiry first, and who may decide.

    With a session ID, list that session's waiting calls and unknown outcomes.
    """
    spec, token_file = value["store_spec"], value["token_file"]
    if session_id:
        if minutes is not None or once:
            raise click.UsageError("--within and --once list all sessions; leave out ID")
        session_id = session_named(spec, session_id)
        result = with_store(spec, lambda store: waiting_in(store, session_id), reading=True)
        may_see(spec, token_file, "approvals list", [session_id], to_all=True)
        give(
            as_json, {"session": session_id, **result.as_json()}, waiting_lines(result), indent=None
        )
        return
    calls = with_store(spec, lambda store: due_calls(store, minutes, once), reading=not once)
    sessions = list(dict.fromkeys(call.session_id for call in calls))
    may_see(spec, token_file, "approvals list", sessions, to_all=True)
    give(as_json, {"due": [call.as_json() for call in calls]}, due_lines(calls))


@command.command()
@SESSION
@CALL
@BY
@click.option(
    "--happened/--did-not-happen", "ok", required=True, help="Whether the call took effect."
)
@signed
@json_option
def resolve(session_id: str, call_id: str, as_json: bool, **value: Any) -> None:
    """Record how CALL ended when its outcome is unknown."""
    spec, token_file, happened = value.pop("store_spec"), value.pop("token_file"), value["ok"]
    session_id = session_named(spec, session_id)
    left = with_person(
        spec,
        token_file,
        lambda store, who: resolve_when_free(store, session_id, call_id, who=who, **value),
    )
    report = {"session": session_id, "call_id": call_id, "happened": happened}
    give(as_json, {**report, "unknown": list(left)}, [f"{call_id}: recorded"], indent=None)


def _decide(
    decision: str,
    session_id: str,
    call_id: str,
    store_spec: str | None,
    as_json: bool,
    token_file: Path | None,
    **vote: Any,
) -> None:
    session_id = session_named(store_spec, session_id)
    before, held, left = with_person(
        store_spec,
        token_file,
        lambda store, who: decide_or_leave(store, session_id, decision, call_id, who=who, **vote),
    )
    report = {"session": session_id, **held.as_json(), "left": left}
    give(as_json, report, held_lines(held), indent=None)
    if left:
        say("another process runs this session and will record the decision", err=True)
    elif decision == "approve" and held.approvals == before.approvals:
        still = f"recorded, and still {held.approvals} of {held.needed}"
        by = held.rulings[-1].by
        say(f"{still}: {by} has approved already, and counts once", err=True)
        click.get_current_context().exit(1)


for name, help in (
    ("approve", "Approve CALL of session ID."),
    ("reject", "Reject CALL of session ID. One rejection ends the call."),
):
    command.command(name, help=help)(decided(partial(_decide, name)))


@command.command()
@decided
@click.option("--arguments", required=True, metavar="JSON", help="All arguments as a JSON object.")
def amend(arguments: str, **value: Any) -> None:
    """Approve CALL with other arguments. Earlier approvals lapse; the checks run again."""
    _decide("amend", arguments=json_object("--arguments", arguments), **value)
