"""`sopilot deviations`: what was found wrong, and what was done about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sopilot.doors.terminal.output import give, json_option, say
from sopilot.doors.terminal.stores import STORE, signed, with_person, with_store
from sopilot.runtime.records import read_moment
from sopilot.runtime.records.deviations import DISPOSITIONS, deviation_lines
from sopilot.runtime.session import SystemClock
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
    state: str | None, session_id: str | None, overdue: bool, as_json: bool, store_spec: str | None
) -> None:
    """Which sessions deviated, and what was done about it."""
    now = SystemClock().now()
    known = list(with_store(store_spec, load_deviations, reading=True).values())
    found = [
        one
        for one in known
        if state in (None, one.state)
        and session_id in (None, one.session_id)
        and (one.overdue(now) or not overdue)
    ]
    report = {"deviations": [one.as_json() for one in found], "of": len(known)}
    give(as_json, report, deviation_lines(found, len(known), now))


def _step(
    step: str, number: int, store_spec: str | None, token_file: Path | None, by: str, **details: Any
) -> None:
    clock = SystemClock()
    one = with_person(
        store_spec,
        token_file,
        lambda store, who: continue_deviation(
            store, number, step, details, who=who, by=by, clock=clock
        ),
    )
    say(f"deviation {one.number}: {one.state}")


def stepping(command: Any) -> Any:
    return NUMBER(BY(signed(command)))


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
