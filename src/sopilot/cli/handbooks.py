"""`sopilot handbooks`: versions, who wrote and signed them, when they are in force."""

from __future__ import annotations

import click

from sopilot.cli.journal_commands import EntryCommands
from sopilot.cli.options import BY, IN_STORE, period
from sopilot.cli.output import Output
from sopilot.records.versions import (
    SIGNED_OFF,
    WITHDRAWN,
    continue_version,
    load_versions,
    version_lines,
)
from sopilot.runner.releases import difference_lines, differences_between, releasable, release_next
from sopilot.runner.store_access import StoreAccess

HANDBOOK = click.argument("handbook")
NUMBER = click.argument("number", type=int, metavar="VERSION")


@click.group()
def command() -> None:
    """Manage versions of handbooks. If the store requires it (`sopilot people require sign-off`),
    a version runs only while it is in force and after someone other than its author has signed
    it off. Sessions keep the version they began with."""


@command.command()
@click.argument("source")
@period("First day in force; default: now", "Last day in force")
@BY
@IN_STORE
def release(source: str, begin: str | None, end: str | None, by: str, store: StoreAccess) -> Output:
    """Release SOURCE as the next version: its text, its programs, its scenario coverage."""
    ready = releasable(source)
    item, before = store.as_person(
        lambda opened, who: release_next(opened, ready, begin, end, who=who, by=by)
    )
    changed = differences_between(before, item) if before is not None else {}
    message = (
        f"version {item.number} of {item.handbook}, by {item.author} "
        f"({item.identity}), not signed off"
    )
    report = {**item.as_json(), "difference": changed}
    return Output(report, [message, *difference_lines(changed)])


steps = EntryCommands(command, continue_version, HANDBOOK, NUMBER, BY)
steps.add("sign-off", SIGNED_OFF, "Sign off VERSION. The author of a version can't sign it off.")
steps.add("withdraw", WITHDRAWN, "Withdraw VERSION. Sessions that began with it continue.")


@command.command()
@HANDBOOK
@click.argument("old", type=int)
@click.argument("new", type=int)
@IN_STORE
def diff(handbook: str, old: int, new: int, store: StoreAccess) -> Output:
    """Compare version NEW with OLD: texts, checks, effects."""
    versions = store.read(load_versions)
    changed = differences_between(versions.known(handbook, old), versions.known(handbook, new))
    return Output(changed, difference_lines(changed))


@command.command("list")
@IN_STORE
def list_versions(store: StoreAccess) -> Output:
    """List every version of every handbook."""
    versions = store.read(load_versions)
    results = [item for known in versions.of.values() for item in known]
    return Output({"versions": [item.as_json() for item in results]}, version_lines(results))
