"""`sopilot sessions list`: list, show, sweep."""

from __future__ import annotations

import click

from sopilot.cli.output import give, json_option, print_json, say, warn
from sopilot.cli.stores import STORE, session_named
from sopilot.protocols import SystemClock
from sopilot.records.store import SessionRecord, Store
from sopilot.runner.opened_stores import with_store
from sopilot.session.fence import Fence, fenced_sessions, load_fence
from sopilot.session.orphans import (
    LeftOpen,
    Waiting,
    keep_sweeping,
    session_lines,
    waiting_in,
    waiting_lines,
)


@click.group()
def command() -> None:
    """List sessions, show one, record orphaned calls.

    ID is a session id, a unique prefix of one, or `last`.
    """


@command.command("list")
@STORE
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many."
)
@click.option(
    "--orphaned",
    is_flag=True,
    help="List only sessions with an irreversible call of unknown outcome, or held by a fence. "
    "Exit 1 if there are any.",
)
@json_option
def list_sessions(store_spec: str | None, limit: int, orphaned: bool, as_json: bool) -> None:
    """List sessions, newest first, with status and position."""

    async def use(store: Store) -> tuple[list[SessionRecord], int, Fence]:
        fence = await load_fence(store)
        if orphaned:
            unresolved = await store.unresolved(now=SystemClock().now())
            unresolved += await fenced_sessions(store, but=unresolved)
            return unresolved[:limit], len(unresolved), fence
        return await store.sessions(limit=limit), await store.records.count_sessions(), fence

    records, count, fence = with_store(store_spec, use, reading=True)
    rows = [{**record.as_json(), "fenced": fence.holds_open(record)} for record in records]
    lines = session_lines(records, count, fence)
    give(as_json, {"sessions": rows, "of": count}, lines, indent=None)
    if orphaned and records:
        raise SystemExit(1)


@command.command("show")
@click.argument("session_id", metavar="ID")
@STORE
@json_option
def show_session(session_id: str, store_spec: str | None, as_json: bool) -> None:
    """Show one session: status, position, waiting calls."""
    session_id = session_named(store_spec, session_id)

    async def use(store: Store) -> tuple[SessionRecord, Waiting, Fence]:
        waiting = await waiting_in(store, session_id)
        return await store.record(session_id), waiting, await load_fence(store)

    record, waiting, fence = with_store(store_spec, use, reading=True)
    report = {**record.as_json(), **waiting.as_json()}
    give(as_json, report, [*session_lines([record], 1, fence), *waiting_lines(waiting)])


@command.command("sweep")
@click.option(
    "--watch",
    type=click.FloatRange(min=0.5),
    metavar="SECONDS",
    help="Repeat at this interval until interrupted.",
)
@STORE
@json_option
def sweep_sessions(watch: float | None, store_spec: str | None, as_json: bool) -> None:
    """Record irreversible calls whose process is gone as `outcome unknown`.

    An HTTP server does this by itself. Exit 1 if there was such a call.
    """

    def report(calls: list[LeftOpen]) -> None:
        for call in calls:
            if as_json:
                print_json(call.as_json(), indent=None)
            else:
                say(f"{call.session_id}  {call.call_id}  {call.action}  outcome unknown")

    orphans = with_store(store_spec, lambda store: keep_sweeping(store, watch, report, warn))
    raise SystemExit(1 if orphans else 0)
