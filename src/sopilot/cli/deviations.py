"""`sopilot records deviations`: what was found wrong, and what was done about it."""

from __future__ import annotations

import click

from sopilot.cli.journal_commands import EntryCommands
from sopilot.cli.output import give, json_option
from sopilot.cli.stores import BY, STORE
from sopilot.protocols import SystemClock
from sopilot.records.audits import deviation_step, load_deviations
from sopilot.records.deviations import DISPOSITIONS, deviation_lines
from sopilot.records.selection import read_moment
from sopilot.runner.opened_stores import with_store

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
    known = list(with_store(store_spec, load_deviations, reading=True).values())
    now = SystemClock().now()
    results = [item for item in known if item.fits(state, session_id, overdue, now)]
    report = {"deviations": [item.as_json() for item in results], "of": len(known)}
    give(as_json, report, deviation_lines(results, len(known), now))


steps = EntryCommands(command, deviation_step, NUMBER, BY)


steps.add(
    "assign", "assigned", "Give it an owner and a date.",
    click.option("--owner", metavar="NAME"),
    click.option("--due", metavar="DATE", help="Up to and with this date (UTC)."),
    read=lambda value: {
        **value,
        "due": None if value["due"] is None else read_moment(value["due"], whole_day=True),
    },
)  # fmt: skip


steps.add("comment", "commented", "Write something down about it.", click.argument("text"))


steps.add(
    "judge", "judged", "Say what it was, why it came about and what was done.",
    click.argument("disposition", type=click.Choice(DISPOSITIONS)),
    click.option("--cause", required=True), click.option("--remedy", default=""),
)  # fmt: skip


steps.add("close", "closed", "Close it: not who judged it, nor its owner.")


steps.add("reopen", "reopened", "Open it again.", click.option("--why", required=True))
