"""`sopilot store`: the tables of a store, who may use them, and what was left open in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import FILE, NEW_FILE
from sopilot.cli.output import give, json_option, say
from sopilot.cli.stores import BY, STORE, signed
from sopilot.messages.errors import UserMistake, mistake
from sopilot.protocols import SystemClock
from sopilot.records.people import Principal
from sopilot.records.pruning import ENDED, Pruning, prune
from sopilot.records.store import SessionRecord, Store
from sopilot.runner.opened_stores import may_see, with_person, with_store
from sopilot.session.fence import fence_store, fenced_sessions, release_sessions
from sopilot.stores.backup import back_up, restore, size_lines, sizes
from sopilot.values.text import counted


@click.group()
def command() -> None:
    """Tables and who may use them, what was left open, back-ups, sizes, what may go."""


@command.command()
@click.option("--runtime", multiple=True, metavar="ROLE", help="May run sessions; no DELETE.")
@click.option("--auditor", multiple=True, metavar="ROLE", help="May read, and nothing else.")
@click.option("--keeper", multiple=True, metavar="ROLE", help="May forget and prune as well.")
@STORE
def migrate(
    runtime: tuple[str, ...],
    auditor: tuple[str, ...],
    keeper: tuple[str, ...],
    store_spec: str | None,
) -> None:
    """Bring the tables up to this release; nothing else needs the right to make any.

    The roles (PostgreSQL) must be there already. Give them again after every upgrade: it may
    have brought new tables.
    """

    async def use(store: Store) -> int:
        schema = await store.migrate()
        if (grant := getattr(store, "grant", None)) is not None:
            await grant(runtime=runtime, auditors=auditor, keepers=keeper)
        elif runtime or auditor or keeper:
            raise mistake("no-roles", "only PostgreSQL has roles", help="leave them out")
        return schema

    say(f"schema {with_store(store_spec, use)}")


@command.command("backup")
@click.argument("file", type=NEW_FILE)
@signed
@json_option
def backup_command(file: Path, as_json: bool, **value: Any) -> None:
    """Copy the store, as it is at this moment, into a new FILE: a SQLite store by itself."""
    spec = value["store_spec"]
    may_see(spec, value["token_file"], "backup", [str(file)], to_all=True)
    rows = with_store(spec, lambda store: back_up(store, file), reading=True)
    copied = f"{rows['sessions']} sessions and journals, {rows['events']} events in {file}"
    give(as_json, rows, [copied])


@command.command("restore")
@click.argument("file", type=FILE)
@STORE
@json_option
def restore_command(file: Path, store_spec: str | None, as_json: bool) -> None:
    """Copy a back-up into an empty store, of either kind, and fence it.

    Leases of before are worth nothing. The irreversible calls of the sessions are held until
    `store release`: the back-up doesn't know what they did after it was made.
    """
    rows = with_store(store_spec, lambda store: restore(store, file))
    copied = f"{rows['sessions']} sessions and journals, {rows['events']} events from {file}"
    give(as_json, rows, [copied, "fenced: see `sopilot sessions list --orphaned`, `store release`"])


@command.command("fence")
@click.option("--why", required=True, help="The reason, which stays on record.")
@signed
@json_option
def fence_command(why: str, token_file: Path | None, store_spec: str | None, as_json: bool) -> None:
    """Hold the irreversible calls of every session that the store has now.

    Run it after a database was restored by other means than `store restore`, before anything
    goes on. `sopilot sessions list --orphaned` lists the sessions; `store release` lets them go on.
    """

    async def use(store: Store, who: Principal | None) -> list[SessionRecord]:
        await fence_store(store, why, clock=SystemClock(), who=who)
        return await fenced_sessions(store)

    held = with_person(store_spec, token_file, use)
    ids = [item.id for item in held]
    give(as_json, {"fenced": ids}, [f"{counted(len(ids), 'open session')} fenced", *ids])


@command.command("release")
@click.argument("session_ids", nargs=-1, metavar="[SESSION]...")
@click.option("--all", "every", is_flag=True, help="Release every fenced session.")
@click.option("--why", required=True, help="What you checked; it stays on record.")
@BY
@signed
@json_option
def release_command(
    session_ids: tuple[str, ...],
    every: bool,
    why: str,
    by: str,
    token_file: Path | None,
    store_spec: str | None,
    as_json: bool,
) -> None:
    """Release sessions from a fence, on record.

    First check in the systems behind the tools that their calls weren't made already.
    """
    if every == bool(session_ids):
        raise UserMistake("name the sessions to release, or give --all")

    async def use(store: Store, who: Principal | None) -> list[str]:
        return await release_sessions(store, session_ids, why, by=by, who=who, clock=SystemClock())

    released = with_person(store_spec, token_file, use)
    lines = [f"{counted(len(released), 'session')} released", *released]
    give(as_json, {"released": released}, lines)


@command.command("size")
@STORE
@json_option
def size_command(store_spec: str | None, as_json: bool) -> None:
    """Rows and bytes of every table."""
    result = with_store(store_spec, sizes, reading=True)
    give(as_json, {name: list(item) for name, item in result.items()}, size_lines(result))


@command.command("prune")
@click.option("--days", type=click.FloatRange(min=0), required=True, help="Since its last event.")
@click.option("--state", "states", multiple=True, default=ENDED, show_default=True)
@click.option("--archive", type=NEW_FILE, help="A new SQLite store that has them, first.")
@click.option("--why", default="")
@click.option("--dry-run", "dry", is_flag=True, help="Only say what would go.")
@signed
@json_option
def prune_command(
    archive: Path | None, token_file: Path | None, store_spec: str | None, as_json: bool, **how: Any
) -> None:
    """Delete the events of sessions that ended long ago, on record. Heads, log and register stay
    and verify; what waits for people, is unknown or on legal hold stays whole."""

    async def use(store: Store, who: Principal | None) -> Pruning:
        stored = None if archive is None else lambda ids: back_up(store, archive, ids)
        return await prune(store, archive=stored, who=who, clock=SystemClock(), **how)

    done = with_person(store_spec, token_file, use)
    give(as_json, done.as_json(), done.lines())
