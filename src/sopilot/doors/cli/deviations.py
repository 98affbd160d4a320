"""`sopilot deviations`: what was found wrong, and what was done about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sopilot.adapters.sign_in import who_asks
from sopilot.doors.cli.output import json_option, print_json, say, table
from sopilot.doors.cli.people import TOKEN_FILE
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.runtime.audit.place_words import moment
from sopilot.runtime.records import read_moment
from sopilot.runtime.records.deviations import DISPOSITIONS, Deviation
from sopilot.runtime.session import Store, SystemClock
from sopilot.runtime.session.case_files import continue_deviation, load_deviations

BY = click.option("--as", "by", default="", metavar="NAME", help="Who; a token says so itself.")
NUMBER = click.argument("number", type=int)


@click.group()
def command() -> None:
    """Deviations: opened by `sopilot audit --keep`, each with an owner, a date, a disposition,
    a cause, a remedy, and closed by a second person. Every step is an entry of a journal."""


@command.command("list")
@click.option("--state", type=click.Choice(["open", "judged", "closed"]))
@click.option("--session", "session_id", metavar="ID")
@click.option("--overdue", is_flag=True)
@json_option
@STORE
def list_deviations(
    state: str | None,
    session_id: str | None,
    overdue: bool,
    as_json: bool,
    store_spec: str | None,
) -> None:
    """Which sessions deviated, and what was done about it."""
    now = SystemClock().now()
    known = list(with_store(store_spec, load_deviations).values())
    found = [
        one
        for one in known
        if state in (None, one.state)
        and session_id in (None, one.session_id)
        and (one.overdue(now) or not overdue)
    ]
    if as_json:
        print_json({"deviations": [one.as_json() for one in found], "of": len(known)})
        return
    if found:
        header = ("NO", "STATE", "FINDING", "OWNER", "DUE", "DISPOSITION", "CLOSED BY", "SESSION")
        say(table([_row(one, now) for one in found], header))
        say()
    say(f"{len(found)} of {len(known)} deviations")


def _row(one: Deviation, now: float) -> tuple[str, ...]:
    due = "-" if one.due is None else moment(one.due)[:10] + (" late" if one.overdue(now) else "")
    return (
        str(one.number), one.state, f"{one.code} #{one.seq}", one.owner or "-", due,
        one.disposition or "-", one.closed_by or "-", one.session_id,
    )  # fmt: skip


def _step(
    step: str, number: int, store_spec: str | None, token_file: Path | None, by: str, **details: Any
) -> None:
    async def use(store: Store) -> Deviation:
        who = await who_asks(store, token_file)
        return await continue_deviation(
            store, number, step, details, who=who, by=by, clock=SystemClock()
        )

    one = with_store(store_spec, use)
    say(f"deviation {one.number}: {one.state}")


def stepping(command: Any) -> Any:
    return NUMBER(BY(TOKEN_FILE(STORE(command))))


@command.command()
@stepping
@click.option("--owner", metavar="NAME")
@click.option("--due", metavar="DATE", help="Up to and with this date (UTC).")
def assign(owner: str | None, due: str | None, **given: Any) -> None:
    """Give it an owner and a date."""
    until = None if due is None else read_moment(due, whole_day=True)
    _step("assigned", owner=owner, due=until, **given)


@command.command()
@stepping
@click.argument("text")
def comment(text: str, **given: Any) -> None:
    """Write something down about it."""
    _step("commented", text=text, **given)


@command.command()
@stepping
@click.argument("disposition", type=click.Choice(DISPOSITIONS))
@click.option("--cause", required=True)
@click.option("--remedy", default="")
def judge(disposition: str, cause: str, remedy: str, **given: Any) -> None:
    """Say what it was, why it came about and what was done."""
    _step("judged", disposition=disposition, cause=cause, remedy=remedy, **given)


@command.command()
@stepping
def close(**given: Any) -> None:
    """Close it: not who judged it, nor its owner."""
    _step("closed", **given)


@command.command()
@stepping
@click.option("--why", required=True)
def reopen(why: str, **given: Any) -> None:
    """Open it again."""
    _step("reopened", why=why, **given)
