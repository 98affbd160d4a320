"""`sopilot records actions`: every action of all sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from sopilot.cli.output import hand_out, json_option, print_json, tell, warn
from sopilot.cli.stores import signed
from sopilot.protocols import SystemClock
from sopilot.records.actions import ActionOutcome
from sopilot.records.loading import make_anew, register
from sopilot.records.selection import (
    Selected,
    Wanted,
    read_condition,
    read_moment,
    register_csv,
    register_json,
    register_lines,
)
from sopilot.records.store import Store
from sopilot.runner.opened_stores import may_see, with_store

_SHOWN = 50


_GRADES = ("proven", "attested", "claimed", "none")


@click.command()
@click.option("--from", "begin", metavar="DATE", help="From this date or moment on (UTC).")
@click.option("--to", "end", metavar="DATE", help="Up to and with this date (UTC).")
@click.option("--action", help="Only this action.")
@click.option(
    "--outcome", type=click.Choice([str(each) for each in ActionOutcome]), help="Only this outcome."
)
@click.option("--grade", type=click.Choice(_GRADES), help="Only actions with this proof level.")
@click.option("--where", multiple=True, metavar="CONDITION", help='On an argument: "amount>1000".')
@click.option("--columns", metavar="NAMES", help="Arguments to show as columns: amount,to.")
@click.option(
    "--limit", type=click.IntRange(min=1), help=f"How many. Default: {_SHOWN}; with --csv all."
)
@click.option("--rebuild", is_flag=True, help="Rebuild the rows from the traces first.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, one line per action.")
@json_option
@signed
def command(
    begin: str | None,
    end: str | None,
    action: str | None,
    outcome: str | None,
    grade: str | None,
    where: Sequence[str],
    columns: str | None,
    limit: int | None,
    rebuild: bool,
    as_csv: bool,
    as_json: bool,
    store_spec: str | None,
    token_file: Path | None,
) -> None:
    """List every action that was carried out, attempted, blocked, rejected, expired or failed, or
    whose outcome is unknown, newest first.

    Read-only calls aren't listed. `sopilot records verify` shows that no row was altered or
    left out.
    """
    now = SystemClock().now()
    wanted = Wanted(
        None if begin is None else read_moment(begin),
        None if end is None else read_moment(end, whole_day=True),
        action,
        outcome,
        "" if grade == "none" else grade,
        now,
    )
    conditions = [read_condition(text) for text in where]
    names = [name.strip() for name in columns.split(",")] if columns else []

    async def use(store: Store) -> Selected:
        if rebuild:
            await make_anew(store, tell=warn)
        return await register(store, wanted, conditions, columns=names)

    result = with_store(store_spec, use, reading=True)
    what = [condition.without_names for condition in conditions]
    requests = [action, outcome, grade, *what, f"{begin or 'ever'} to {end or 'now'}"]
    may_see(
        store_spec, token_file, "records actions", [item for item in requests if item], to_all=True
    )
    if as_csv:
        hand_out(register_csv(result.entries(limit), names, now))
    elif as_json:
        print_json(register_json(result, limit, now))
    else:
        tell(register_lines(result, limit or _SHOWN, names, now))
