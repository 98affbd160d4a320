"""`sopilot sessions`: what is kept, and where each one stands."""

from __future__ import annotations

import click

from sopilot.cli.output import give, json_option
from sopilot.cli.stores import STORE
from sopilot.protocols import SystemClock
from sopilot.records.store import SessionRecord, Store
from sopilot.runner.opened_stores import with_store
from sopilot.session.fence import Fence, fenced_sessions, load_fence
from sopilot.session.orphans import session_lines


@click.command()
@STORE
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@click.option(
    "--orphaned",
    is_flag=True,
    help="Only those in which an irreversible call was left without an outcome (on record as "
    "unknown, or open where nobody is any more), and those that a fence holds. Exit code 1 if "
    "there are any.",
)
@json_option
def command(store_spec: str | None, limit: int, orphaned: bool, as_json: bool) -> None:
    """Sessions, newest first, with their status and where they stand."""

    async def use(store: Store) -> tuple[list[SessionRecord], int, Fence]:
        fence = await load_fence(store)
        if orphaned:
            found = await store.unresolved(now=SystemClock().now())
            found += await fenced_sessions(store, but=found)
            return found[:limit], len(found), fence
        return await store.sessions(limit=limit), await store.records.count_sessions(), fence

    records, count, fence = with_store(store_spec, use, reading=True)
    rows = [{**record.as_json(), "fenced": fence.holds_open(record)} for record in records]
    lines = session_lines(records, count, fence)
    give(as_json, {"sessions": rows, "of": count}, lines, indent=None)
    if orphaned and records:
        raise SystemExit(1)
