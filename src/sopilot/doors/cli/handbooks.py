"""`sopilot handbooks`: versions, who wrote and signed them, from when to when they hold."""

from __future__ import annotations

from typing import Any

import click

from sopilot.adapters.sign_in import who_asks
from sopilot.doors.cli.deviations import BY
from sopilot.doors.cli.output import json_option, print_json, say, table
from sopilot.doors.cli.people import TOKEN_FILE
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.doors.sources.releasing import differences_between, releasable
from sopilot.language.diagnostics import mistake
from sopilot.runtime.audit.place_words import moment
from sopilot.runtime.records import read_moment
from sopilot.runtime.records.versions import Version
from sopilot.runtime.session import Store, SystemClock
from sopilot.runtime.session.releases import load_versions, sign_off, withdraw
from sopilot.runtime.session.releases import release as release_version

HANDBOOK = click.argument("handbook")
NUMBER = click.argument("number", type=int, metavar="VERSION")


@click.group()
def command() -> None:
    """Versions of handbooks. Where the store demands it (`sopilot people demand sign-off`), only
    a version runs that somebody else than its author signed off, and that is in force. Sessions
    go on with the version they began with."""


@command.command()
@click.argument("source")
@click.option("--from", "begin", metavar="DATE", help="In force from then on. Default: now.")
@click.option("--to", "end", metavar="DATE", help="Up to and with this date (UTC).")
@BY
@TOKEN_FILE
@STORE
@json_option
def release(source: str, begin: str | None, end: str | None, as_json: bool, **given: Any) -> None:
    """Release SOURCE as the next version: its text, its programs, what its scenarios reach."""
    ready = releasable(source)
    clock = SystemClock()

    async def use(store: Store) -> tuple[Version, Version | None]:
        who = await who_asks(store, given["token_file"])
        one = await release_version(
            store,
            ready.handbook,
            text=ready.text,
            programs=ready.programs,
            begin=clock.now() if begin is None else read_moment(begin),
            end=None if end is None else read_moment(end, whole_day=True),
            coverage=ready.coverage,
            clock=clock,
            who=who,
            by=given["by"],
        )
        return one, (await load_versions(store)).find(ready.handbook, one.number - 1)

    one, before = with_store(given["store_spec"], use)
    changed = differences_between(before, one) if before is not None else {}
    if as_json:
        print_json({**one.as_json(), "difference": changed})
        return
    say(f"version {one.number} of {one.handbook}, by {one.author} ({one.identity}), not signed off")
    _show_difference(changed)


def _stepped(command: Any) -> Any:
    return HANDBOOK(NUMBER(BY(TOKEN_FILE(STORE(command)))))


def _step(step: Any, handbook: str, number: int, by: str, **given: Any) -> Version:
    async def use(store: Store) -> Version:
        who = await who_asks(store, given["token_file"])
        found: Version = await step(store, handbook, number, clock=SystemClock(), who=who, by=by)
        return found

    return with_store(given["store_spec"], use)


@command.command("sign-off")
@_stepped
def sign_off_(**given: Any) -> None:
    """Sign VERSION off: not its author."""
    one = _step(sign_off, **given)
    say(f"version {one.number} of {one.handbook}: signed off by {', '.join(one.signed)}")


@command.command("withdraw")
@_stepped
def withdraw_(**given: Any) -> None:
    """VERSION is in force no longer. Sessions that began with it go on."""
    one = _step(withdraw, **given)
    say(f"version {one.number} of {one.handbook}: withdrawn")


@command.command()
@HANDBOOK
@click.argument("old", type=int)
@click.argument("new", type=int)
@STORE
@json_option
def diff(handbook: str, old: int, new: int, store_spec: str | None, as_json: bool) -> None:
    """What version NEW says and does otherwise than OLD."""
    versions = with_store(store_spec, load_versions)
    before, after = versions.find(handbook, old), versions.find(handbook, new)
    if before is None or after is None:
        raise mistake("unknown-version", f"`{handbook}` has no such versions here")
    changed = differences_between(before, after)
    if as_json:
        print_json(changed)
    else:
        _show_difference(changed)


def _show_difference(changed: dict[str, list[str]]) -> None:
    for kind, lines in changed.items():
        say(f"{kind}: {len(lines) or 'no'} {'difference' if len(lines) == 1 else 'differences'}")
        for line in lines:
            say(f"  {line}")


@command.command("list")
@STORE
@json_option
def list_versions(store_spec: str | None, as_json: bool) -> None:
    """Every version of every handbook."""
    versions = with_store(store_spec, load_versions)
    found = [one for known in versions.of.values() for one in known]
    if as_json:
        print_json({"versions": [one.as_json() for one in found]})
        return
    rows = [
        (
            one.handbook, one.number, one.author, ", ".join(one.signed) or "-",
            moment(one.begin), "-" if one.end is None else moment(one.end),
        )
        for one in found
    ]  # fmt: skip
    header = ("HANDBOOK", "VERSION", "AUTHOR", "SIGNED OFF BY", "FROM", "TO")
    say(table(rows, header) if rows else "no version was released here")
