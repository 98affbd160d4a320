"""`sopilot privacy`: contents of sessions, who reads them, how long they stay, erasing them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sopilot.cli.journal_commands import EntryCommands
from sopilot.cli.options import IN_STORE, NEW_FILE, WHY, flag, full_id, option
from sopilot.cli.output import Exit, Output
from sopilot.files.text import write_whole
from sopilot.protocols import SystemClock
from sopilot.records.journal import entries
from sopilot.records.privacy import (
    READING,
    change_policy,
    erase_wanted,
    period_details,
    reading_lines,
    sessions_with,
)
from sopilot.runner.options import forget_simulators
from sopilot.runner.releases import disclosed
from sopilot.runner.store_access import StoreAccess

_SUBJECT: Any = {
    "multiple": True,
    "metavar": "TEXT",
    "help": "Name, number or address of a person.",
}
WHAT = click.argument("what", metavar="ID|TEXT")


@click.group()
def command() -> None:
    """Protect the contents of sessions. If the store requires it (`sopilot people require
    privacy`), the words of people, models and tools are stored beside the trace. You can still
    verify hash chains, heads and action records after erasing them."""


@command.group("set")
def settings() -> None:
    """Set the columns in clear text, the readers of contents and the retention periods."""


policy = EntryCommands(command, change_policy)
rules = EntryCommands(settings, change_policy)
rules.add(
    "columns", "columns_named",
    "Keep these arguments in clear text in action records and traces of new sessions. Don't "
    "name arguments that identify a person.", click.argument("columns", nargs=-1),
)  # fmt: skip
rules.add(
    "readers", "readers_named", "Let only these roles read contents. Others see only that contents "
    "exist.", click.argument("roles", nargs=-1),
)  # fmt: skip
rules.add(
    "retain", "period_set", "Keep contents of sessions of a CLASS for DAYS.\n\nCLASS is HANDBOOK, "
    "HANDBOOK/GOAL or `*`, optionally with an ending: @refused, @completed, … The narrowest class "
    "applies.", click.argument("kind", metavar="CLASS"),
    click.argument("days", type=float), read=period_details,
)  # fmt: skip
policy.add(
    "hold", "hold_set", "Put a session, or every session with TEXT in it, on legal hold: it can't "
    "be erased.", WHAT, WHY,
)  # fmt: skip
policy.add("lift", "hold_lifted", "Lift a legal hold.", WHAT)


@command.command()
@click.option("--subject", "subjects", **_SUBJECT)
@option("--session ID", "Session (repeatable).", "session_ids", multiple=True, callback=full_id)
@flag("--due", "Erase all contents past their retention period.")
@flag("--unfinished", "Include sessions whose calls wait for people.")
@WHY
@IN_STORE
def erase(store: StoreAccess, **wanted: Any) -> Output:
    """Erase the contents of sessions. Exit 1 if some couldn't be erased."""
    done = store.as_person(
        lambda opened, who: erase_wanted(opened, who=who, clock=SystemClock(), **wanted)
    )
    forget_simulators(done.erased, store.spec)
    return Output(done.as_json(), done.lines(), Exit.if_any(not done.all_erased))


@command.command()
@click.option("--subject", "subjects", required=True, **_SUBJECT)
@option("-o,--output", "JSON file to write.", type=NEW_FILE, required=True)
@IN_STORE
def disclose(subjects: Sequence[str], output: Path, store: StoreAccess) -> Output:
    """Write everything stored about a person, session by session, as JSON."""
    records = store.read(lambda opened: sessions_with(opened, subjects))
    store.require_readable("disclose", [record.id for record in records])
    text = store.read(lambda opened: disclosed(opened, subjects, records))
    write_whole(output, text, private=True)
    report = {"output": str(output), "sessions": [record.id for record in records]}
    return Output(report, [f"written: {output}"])


@command.command()
@IN_STORE
def log(store: StoreAccess) -> Output:
    """List who read or exported contents, and when."""
    result = store.read(lambda opened: entries(opened, READING))
    readings = [{"at": item.at, **item.details} for item in result]
    return Output({"readings": readings}, reading_lines(result))
