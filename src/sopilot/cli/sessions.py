"""`sopilot sessions`: list, show, sweep."""

from __future__ import annotations

import click

from sopilot.cli.options import IN_STORE, SESSION, flag, option, wants_json
from sopilot.cli.output import Exit, Output, print_json, say, warn
from sopilot.protocols import SystemClock
from sopilot.records.store import SessionRecord, Store
from sopilot.runner.store_access import StoreAccess
from sopilot.session.fence import Fence, fenced_sessions, load_fence
from sopilot.session.orphans import (
    OpenCall,
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
@option("--limit", "Rows to print.", type=click.IntRange(min=1), default=50, show_default=True)
@flag(
    "--orphaned",
    "List only sessions with an irreversible call of unknown outcome, or blocked by a fence. "
    "Exit 1 if there are any.",
)
@IN_STORE
def list_sessions(limit: int, orphaned: bool, store: StoreAccess) -> Output:
    """List sessions, newest first, with status and position."""

    async def use(opened: Store) -> tuple[list[SessionRecord], int, Fence]:
        fence = await load_fence(opened)
        if orphaned:
            unresolved = await opened.unresolved(now=SystemClock().now())
            unresolved += await fenced_sessions(opened, but=unresolved)
            return unresolved[:limit], len(unresolved), fence
        return await opened.sessions(limit=limit), await opened.records.count_sessions(), fence

    records, count, fence = store.read(use)
    rows = [{**record.as_json(), "fenced": fence.holds_open(record)} for record in records]
    lines = session_lines(records, count, fence)
    findings = Exit.if_any(orphaned and records)
    return Output({"sessions": rows, "of": count}, lines, findings, indent=None)


@command.command("show")
@SESSION
@IN_STORE
def show_session(session_id: str, store: StoreAccess) -> Output:
    """Show one session: status, position, waiting calls."""

    async def use(opened: Store) -> tuple[SessionRecord, Waiting, Fence]:
        waiting = await waiting_in(opened, session_id)
        return await opened.record(session_id), waiting, await load_fence(opened)

    record, waiting, fence = store.read(use)
    report = {**record.as_json(), **waiting.as_json()}
    return Output(report, [*session_lines([record], 1, fence), *waiting_lines(waiting)])


@command.command("sweep")
@option(
    "--watch SECONDS", "Repeat at this interval until interrupted.", type=click.FloatRange(min=0.5)
)
@IN_STORE
def sweep_sessions(watch: float | None, store: StoreAccess) -> None:
    """Record irreversible calls whose process is gone as `outcome unknown`.

    An HTTP server does this by itself. Exit 1 if there was such a call.
    """

    def report(calls: list[OpenCall]) -> None:
        for call in calls:
            if wants_json():
                print_json(call.as_json(), indent=None)
            else:
                say(f"{call.session_id}  {call.call_id}  {call.action}  outcome unknown")

    orphans = store.write(lambda opened: keep_sweeping(opened, watch, report, warn))
    raise SystemExit(Exit.if_any(orphans))
