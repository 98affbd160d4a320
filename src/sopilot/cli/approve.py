"""`sopilot approve`: decisions of people on held calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from sopilot.cli.output import give, json_option, say
from sopilot.cli.stores import BY, signed
from sopilot.records.reminders import due_calls, due_lines
from sopilot.runner.opened_stores import may_see, with_person, with_store
from sopilot.runner.options import json_object
from sopilot.session.decisions import decide_or_leave, settle_when_free
from sopilot.session.orphans import held_lines, waiting_in, waiting_lines

SESSION = click.argument("session_id", metavar="ID")


CALL = click.argument("call_id", metavar="CALL")


def decided(command: Callable[..., None]) -> Callable[..., None]:
    """What every decision names: session, call, role, person, reason."""
    role = click.option("--role", required=True, help="In which role.")
    reason = click.option("--reason", default="", help="Recorded with the decision.")
    return SESSION(CALL(role(BY(reason(signed(json_option(command)))))))


@click.group()
def command() -> None:
    """Approve, reject or amend a call that waits for people.

    Every decision is an event of the session's trace. Where another process runs the
    session at this moment, the decision is left for it, and on record within seconds.
    """


@command.command("list")
@SESSION
@signed
@json_option
def list_calls(session_id: str, as_json: bool, **given: Any) -> None:
    """Calls of session ID that wait, and outcomes that nobody knows."""
    spec, token_file = given["store_spec"], given["token_file"]
    found = with_store(spec, lambda store: waiting_in(store, session_id), reading=True)
    may_see(spec, token_file, "approve list", [session_id], to_all=True)
    give(as_json, {"session": session_id, **found.as_json()}, waiting_lines(found), indent=None)


@command.command()
@click.option(
    "--within", "minutes", type=float, metavar="MINUTES", help="Those that expire by then."
)
@click.option("--once", is_flag=True, help="Those that nobody was told of: for reminders.")
@signed
@json_option
def due(minutes: float | None, once: bool, as_json: bool, **given: Any) -> None:
    """Calls of all sessions that wait, soonest first, and who may decide."""
    spec, token_file = given["store_spec"], given["token_file"]
    found = with_store(spec, lambda store: due_calls(store, minutes, once), reading=not once)
    waiting = list(dict.fromkeys(one.session_id for one in found))
    may_see(spec, token_file, "approve due", waiting, to_all=True)
    give(as_json, {"due": [one.as_json() for one in found]}, due_lines(found))


@command.command()
@SESSION
@CALL
@BY
@click.option("--happened/--did-not-happen", "ok", required=True, help="How it really ended.")
@signed
@json_option
def settle(session_id: str, call_id: str, as_json: bool, **given: Any) -> None:
    """Say how CALL ended, of which the outcome is unknown."""
    spec, token_file, happened = given.pop("store_spec"), given.pop("token_file"), given["ok"]
    left = with_person(
        spec,
        token_file,
        lambda store, who: settle_when_free(store, session_id, call_id, who=who, **given),
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
    before, held, left = with_person(
        store_spec,
        token_file,
        lambda store, who: decide_or_leave(store, session_id, decision, call_id, who=who, **vote),
    )
    report = {"session": session_id, **held.as_json(), "left": left}
    give(as_json, report, held_lines(held), indent=None)
    if left:
        say("somebody runs this session: the decision is left for it", err=True)
    elif decision == "approve" and held.approvals == before.approvals:
        still = f"recorded, and still {held.approvals} of {held.needed}"
        by = held.rulings[-1].by
        say(f"{still}: {by} has approved already, and counts once", err=True)
        click.get_current_context().exit(1)


for name, help in (
    ("approve", "Approve CALL of session ID."),
    ("reject", "Reject CALL of session ID. One rejection ends it."),
):
    command.command(name, help=help)(decided(partial(_decide, name)))


@command.command()
@decided
@click.option("--arguments", required=True, metavar="JSON", help="All arguments, as an object.")
def amend(arguments: str, **given: Any) -> None:
    """Approve CALL with other arguments. Earlier approvals fall; the checks are made again."""
    _decide("amend", arguments=json_object("--arguments", arguments), **given)
