"""`sopilot store`: the tables of a store, who may use them, and what was left open in it."""

from __future__ import annotations

import click

from sopilot.doors.terminal.output import json_option, print_json, say, warn
from sopilot.doors.terminal.stores import STORE, with_store
from sopilot.language.diagnostics import mistake
from sopilot.runtime.session import Store
from sopilot.runtime.session.unsettled import LeftOpen, keep_sweeping


@click.group()
def command() -> None:
    """Make the tables, name who may use them, find what was left open."""


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


@command.command("sweep")
@click.option("--watch", type=click.FloatRange(min=0.5), help="Go on, every so many seconds.")
@STORE
@json_option
def sweep_command(watch: float | None, store_spec: str | None, as_json: bool) -> None:
    """Put on record which irreversible calls were left open by owners who are gone.

    `sopilot mcp --http` does so by itself. Exit code 1 if something was found.
    """

    def tell(found: list[LeftOpen]) -> None:
        for one in found:
            if as_json:
                print_json(one.as_json(), indent=None)
            else:
                say(f"{one.session_id}  {one.call_id}  {one.action}  outcome unknown")

    found = with_store(store_spec, lambda store: keep_sweeping(store, watch, tell, warn))
    raise SystemExit(1 if found else 0)
