"""`sopilot sessions`: what is kept, and where each one stands."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from sopilot.doors.cli.output import json_option, print_json, say, table
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.runtime.session import SessionRecord, Store, SystemClock

_COLUMNS = ("ID", "STATUS", "GOAL", "HANDBOOK", "MODEL", "EVENTS", "UPDATED")


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
    if as_json:
        listed = [_as_json(record) for record in records]
        print_json({"sessions": listed, "of": count}, indent=None)
    elif not records:
        say("no sessions")
    else:
        say(table([_row(record) for record in records], _COLUMNS))
        if len(records) < count:
            say(f"\n{len(records)} of {count} sessions, the newest: --limit for more")
    if orphaned and records:
        raise SystemExit(1)


def _as_json(record: SessionRecord) -> dict[str, object]:
    about = {name: record.metadata.get(name) for name in ("handbook", "arm", "model", "goals")}
    return {
        "id": record.id,
        **record.summary,
        **about,
        "events": record.head.seq + 1,
        "head": record.head.hash,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "owner": record.owner or None,
        "lease_expires_at": record.lease_expires_at or None,
    }


def _row(record: SessionRecord) -> tuple[str, ...]:
    when = datetime.fromtimestamp(record.updated_at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return (
        record.id,
        str(record.summary.get("status", "new")),
        str(record.summary.get("goal", "")) or "-",
        str(record.metadata.get("handbook", "")) or "-",
        str(record.metadata.get("model", "")) or "-",
        str(record.head.seq + 1),
        when,
    )
