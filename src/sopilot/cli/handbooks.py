"""`sopilot handbooks`: versions, who wrote and signed them, from when to when they hold."""

from __future__ import annotations

from typing import Any

import click

from sopilot.cli.journal_commands import EntryCommands
from sopilot.cli.output import give, json_option
from sopilot.cli.stores import BY, STORE, signed
from sopilot.records.versions import load_versions, sign_off, version_lines, withdraw
from sopilot.runner.opened_stores import with_person, with_store
from sopilot.runner.versions import (
    difference_lines,
    differences_between,
    moments,
    releasable,
    release_next,
)

HANDBOOK = click.argument("handbook")


NUMBER = click.argument("number", type=int, metavar="VERSION")


@click.group()
def command() -> None:
    """Versions of handbooks. Where the store demands it (`sopilot people require sign-off`), only
    a version runs that somebody else than its author signed off, and that is in force. Sessions
    go on with the version they began with."""


@command.command()
@click.argument("source")
@click.option("--from", "begin", metavar="DATE", help="In force from then on. Default: now.")
@click.option("--to", "end", metavar="DATE", help="Up to and with this date (UTC).")
@BY
@signed
@json_option
def release(source: str, begin: str | None, end: str | None, as_json: bool, **value: Any) -> None:
    """Release SOURCE as the next version: its text, its programs, what its scenarios reach."""
    ready = releasable(source)
    hours = moments(begin, end)
    item, before = with_person(
        value["store_spec"],
        value["token_file"],
        lambda store, who: release_next(store, ready, hours, who=who, by=value["by"]),
    )
    changed = differences_between(before, item) if before is not None else {}
    message = (
        f"version {item.number} of {item.handbook}, by {item.author} "
        f"({item.identity}), not signed off"
    )
    report = {**item.as_json(), "difference": changed}
    give(as_json, report, [message, *difference_lines(changed)])


EntryCommands(command, sign_off, HANDBOOK, NUMBER, BY).add(
    "sign-off", "version_signed_off", "Sign VERSION off: not its author."
)


EntryCommands(command, withdraw, HANDBOOK, NUMBER, BY).add(
    "withdraw",
    "version_withdrawn",
    "VERSION is in force no longer. Sessions that began with it go on.",
)


@command.command()
@HANDBOOK
@click.argument("old", type=int)
@click.argument("new", type=int)
@STORE
@json_option
def diff(handbook: str, old: int, new: int, store_spec: str | None, as_json: bool) -> None:
    """What version NEW says and does otherwise than OLD."""
    versions = with_store(store_spec, load_versions, reading=True)
    changed = differences_between(versions.known(handbook, old), versions.known(handbook, new))
    give(as_json, changed, difference_lines(changed))


@command.command("list")
@STORE
@json_option
def list_versions(store_spec: str | None, as_json: bool) -> None:
    """Every version of every handbook."""
    versions = with_store(store_spec, load_versions, reading=True)
    results = [item for known in versions.of.values() for item in known]
    give(as_json, {"versions": [item.as_json() for item in results]}, version_lines(results))
