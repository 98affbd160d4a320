"""`sopilot store`: tables, rights, backups, fences, sizes, pruning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import BY, FILE, IN_STORE, NEW_FILE, WHY, flag, full_id, option
from sopilot.cli.output import Output
from sopilot.messages.errors import UserMistake, mistake
from sopilot.protocols import SystemClock
from sopilot.records.people import Principal
from sopilot.records.pruning import ENDED, Pruning, prune
from sopilot.records.store import SessionRecord, Store
from sopilot.runner.store_access import StoreAccess
from sopilot.session.fence import fence_store, fenced_sessions, release_sessions
from sopilot.stores.backup import back_up, restore, size_lines, sizes
from sopilot.values.text import counted


@click.group()
def command() -> None:
    """Migrate, back up, restore, fence, measure and prune a store."""


@command.command()
@option("--runtime ROLE", "PostgreSQL role that runs sessions.", multiple=True)
@option("--auditor ROLE", "PostgreSQL role that only reads.", multiple=True)
@option("--keeper ROLE", "PostgreSQL role that also erases and prunes.", multiple=True)
@IN_STORE
def migrate(
    runtime: tuple[str, ...],
    auditor: tuple[str, ...],
    keeper: tuple[str, ...],
    store: StoreAccess,
) -> Output:
    """Update the tables to this release. No other command needs the right to create tables.

    The roles must exist. Name them again after every upgrade, which may add tables.
    """

    async def use(opened: Store) -> int:
        schema = await opened.migrate()
        if (grant := getattr(opened, "grant", None)) is not None:
            await grant(runtime=runtime, auditors=auditor, keepers=keeper)
        elif runtime or auditor or keeper:
            raise mistake("no-roles", "only PostgreSQL has roles", help="leave them out")
        return schema

    schema = store.write(use)
    return Output({"schema": schema}, [f"schema {schema}"])


@command.command()
@click.argument("file", type=NEW_FILE)
@IN_STORE
def backup(file: Path, store: StoreAccess) -> Output:
    """Copy the store as it is now into FILE, a new SQLite store."""
    store.may_see("backup", [str(file)], to_all=True)
    rows = store.read(lambda opened: back_up(opened, file))
    copied = f"{rows['sessions']} sessions and journals, {rows['events']} events in {file}"
    return Output(rows, [copied])


@command.command("restore")
@click.argument("file", type=FILE)
@IN_STORE
def restore_command(file: Path, store: StoreAccess) -> Output:
    """Copy a backup into an empty SQLite or PostgreSQL store, and fence the copy.

    Earlier leases end. sopilot blocks irreversible calls of these sessions until `store release`,
    because the backup lacks all later calls.
    """
    rows = store.write(lambda opened: restore(opened, file))
    copied = f"{rows['sessions']} sessions and journals, {rows['events']} events from {file}"
    return Output(rows, [copied, "fenced: see `sopilot sessions list --orphaned`, `store release`"])


@command.command()
@WHY
@IN_STORE
def fence(why: str, store: StoreAccess) -> Output:
    """Block the irreversible calls of every session that the store has now.

    Run it after restoring a database by other means than `store restore`, before any session
    continues. `sopilot sessions list --orphaned` lists the sessions; `store release` unblocks them.
    """

    async def use(opened: Store, who: Principal | None) -> list[SessionRecord]:
        await fence_store(opened, why, clock=SystemClock(), who=who)
        return await fenced_sessions(opened)

    ids = [item.id for item in store.as_person(use)]
    return Output({"fenced": ids}, [f"{counted(len(ids), 'open session')} fenced", *ids])


@command.command()
@click.argument("session_ids", nargs=-1, metavar="[ID]...", callback=full_id)
@flag("--all", "Release every fenced session.", "every")
@option("--why", "Description of your check, recorded with the release.", required=True)
@BY
@IN_STORE
def release(
    session_ids: tuple[str, ...], every: bool, why: str, by: str, store: StoreAccess
) -> Output:
    """Release sessions from a fence, and record it.

    First check in the tools' own systems that the calls haven't been made yet.
    """
    if every == bool(session_ids):
        raise UserMistake("name the sessions to release, or use --all")
    released = store.as_person(
        lambda opened, who: release_sessions(
            opened, session_ids, why, by=by, who=who, clock=SystemClock()
        )
    )
    lines = [f"{counted(len(released), 'session')} released", *released]
    return Output({"released": released}, lines)


@command.command()
@IN_STORE
def size(store: StoreAccess) -> Output:
    """Print rows and bytes of every table."""
    result = store.read(sizes)
    return Output({name: list(item) for name, item in result.items()}, size_lines(result))


@command.command("prune")
@option("--days", "Days since the last event.", type=click.FloatRange(min=0), required=True)
@option(
    "--state",
    "State of the sessions to prune (repeatable).",
    "states",
    multiple=True,
    default=ENDED,
    show_default=True,
)
@option("--archive", "First copy the events into this new SQLite store.", type=NEW_FILE)
@option("--why", "Reason to record.", default="")
@flag("--dry-run", "Only print what would be pruned.", "dry")
@IN_STORE
def prune_command(archive: Path | None, store: StoreAccess, **how: Any) -> Output:
    """Delete the events of sessions that ended long ago, and record it.

    Heads, log and action records stay verifiable. The command skips sessions that wait for people,
    have an unknown outcome or are on legal hold.
    """

    async def use(opened: Store, who: Principal | None) -> Pruning:
        stored = None if archive is None else lambda ids: back_up(opened, archive, ids)
        return await prune(opened, archive=stored, who=who, clock=SystemClock(), **how)

    done = store.as_person(use)
    return Output(done.as_json(), done.lines())
