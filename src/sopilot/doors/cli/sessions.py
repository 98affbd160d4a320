"""`sopilot sessions`: what is kept, and where each one stands."""

from __future__ import annotations

import click

from sopilot.doors.terminal.output import give, json_option
from sopilot.doors.terminal.stores import STORE, with_store
from sopilot.runtime.session import SessionRecord, Store, SystemClock
from sopilot.runtime.session.session_text import session_lines


@click.command()
@STORE
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@click.option(
    "--orphaned",
    is_flag=True,
    help="Only those in which an irreversible call was left without an outcome: on record as "
    "unknown, or open where nobody is any more. Exit code 1 if there are any.",
)
@json_option
def command(store_spec: str | None, limit: int, orphaned: bool, as_json: bool) -> None:
    """Sessions, newest first, with their status and where they stand."""

    async def use(store: Store) -> tuple[list[SessionRecord], int]:
        if orphaned:
            found = await store.unsettled(now=SystemClock().now())
            return found[:limit], len(found)
        return await store.sessions(limit=limit), await store.records.count_sessions()

    records, count = with_store(store_spec, use, reading=True)
    listed = {"sessions": [record.as_json() for record in records], "of": count}
    give(as_json, listed, session_lines(records, count), indent=None)
    if orphaned and records:
        raise SystemExit(1)
