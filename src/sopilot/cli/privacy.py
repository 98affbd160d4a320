"""`sopilot privacy`: contents of sessions, who reads them, how long they stay, erasing them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sopilot.cli.journal_commands import EntryCommands
from sopilot.cli.options import NEW_FILE
from sopilot.cli.output import give, json_option, say
from sopilot.cli.stores import STORE, TOKEN_FILE, require_readable, signed
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
from sopilot.runner.opened_stores import with_person, with_store
from sopilot.runner.options import forget_simulators
from sopilot.runner.versions import disclosed

_NAMED: Any = {"multiple": True, "metavar": "TEXT", "help": "A name, number or address."}


SUBJECTS = click.option("--subject", "subjects", **_NAMED)


WHAT = click.argument("what", metavar="ID|TEXT")


@click.group()
def command() -> None:
    """Contents of sessions. Where the store demands it (`sopilot people require privacy`), what
    people, models and tools say stands beside the trace: it can be erased, and chain, heads and
    register still verify."""


@command.group("set")
def settings() -> None:
    """Set which columns stay, who may read contents, how long contents stay."""


policy = EntryCommands(command, change_policy)


rules = EntryCommands(settings, change_policy)


rules.add(
    "columns", "columns_named", "Arguments that stay in register and trace of new sessions: "
    "nothing of a person.", click.argument("columns", nargs=-1),
)  # fmt: skip


rules.add(
    "readers", "readers_named", "Roles that are shown contents; everybody else sees that there "
    "were some.", click.argument("roles", nargs=-1),
)  # fmt: skip


rules.add(
    "retain", "period_set", "Contents of sessions of a CLASS are due after so many days: HANDBOOK, "
    "HANDBOOK/GOAL, `*` for all others; behind it @refused, @completed, … for those that ended so. "
    "The narrowest class holds.", click.argument("kind", metavar="CLASS"),
    click.argument("days", type=float), read=period_details,
)  # fmt: skip


policy.add(
    "hold", "hold_set", "Legal hold: a session, or every session with TEXT in it, is not erased.",
    WHAT, click.option("--why", required=True),
)  # fmt: skip


policy.add("lift", "hold_lifted", "Lift a legal hold.", WHAT)


@command.command()
@SUBJECTS
@click.option("--session", "session_ids", multiple=True, metavar="ID")
@click.option("--due", is_flag=True, help="Everything that is kept longer than its period.")
@click.option("--unfinished", is_flag=True, help="Also where a call waits for people.")
@click.option("--why", required=True)
@TOKEN_FILE
@json_option
@STORE
def erase(token_file: Path | None, as_json: bool, store_spec: str | None, **wanted: Any) -> None:
    """Erase the contents of sessions. Exit 1 if some couldn't be erased."""
    done = with_person(
        store_spec,
        token_file,
        lambda store, who: erase_wanted(store, who=who, clock=SystemClock(), **wanted),
    )
    forget_simulators(done.erased, store_spec)
    give(as_json, done.as_json(), done.lines())
    raise SystemExit(0 if done.all_erased else 1)


@command.command()
@click.option("--subject", "subjects", required=True, **_NAMED)
@click.option("-o", "--output", type=NEW_FILE, required=True)
@signed
def disclose(
    subjects: Sequence[str], output: Path, token_file: Path | None, store_spec: str | None
) -> None:
    """Write what is kept about a person, session by session, as JSON."""
    records = with_store(store_spec, lambda store: sessions_with(store, subjects), reading=True)
    require_readable(store_spec, token_file, "disclose", [record.id for record in records])
    text = with_store(store_spec, lambda store: disclosed(store, subjects, records), reading=True)
    write_whole(output, text, private=True)
    say(f"written: {output}")


@command.command()
@json_option
@STORE
def log(as_json: bool, store_spec: str | None) -> None:
    """Who read or exported contents, and when."""
    result = with_store(store_spec, lambda store: entries(store, READING), reading=True)
    readings = [{"at": item.at, **item.details} for item in result]
    give(as_json, {"readings": readings}, reading_lines(result))
