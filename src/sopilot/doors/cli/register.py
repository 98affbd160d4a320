"""`sopilot register`: every action of all sessions, asked by time, name, outcome and arguments."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from sopilot.doors.cli.output import counted, hand_out, json_option, print_json, say, table
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.language.diagnostics import RunEnded
from sopilot.runtime.records import (
    ActionEntry,
    ActionOutcome,
    Selected,
    Wanted,
    read_condition,
    read_moment,
    value_at,
)
from sopilot.runtime.session import Store, SystemClock
from sopilot.runtime.session.registers import rebuild_register, register

_SHOWN = 50
_GRADES = ("proven", "attested", "claimed", "none")


@click.command()
@click.option("--from", "begin", metavar="DATE", help="From this date or moment on (UTC).")
@click.option("--to", "end", metavar="DATE", help="Up to and with this date (UTC).")
@click.option("--action", help="Only this action.")
@click.option("--outcome", type=click.Choice([str(one) for one in ActionOutcome]))
@click.option("--grade", type=click.Choice(_GRADES), help="How far it was proven.")
@click.option("--where", multiple=True, metavar="CONDITION", help='On an argument: "amount>1000".')
@click.option("--columns", metavar="NAMES", help="Arguments as columns of their own: amount,to.")
@click.option("--limit", type=click.IntRange(min=1), help=f"Default: {_SHOWN}; as a file: all.")
@click.option("--rebuild", is_flag=True, help="Make the register anew from the traces first.")
@click.option("--csv", "as_csv", is_flag=True, help="As CSV, a line an action.")
@json_option
@STORE
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
) -> None:
    """The register: one row for every action that was carried out, attempted, held, rejected,
    expired, failed or whose outcome is unknown, newest first.

    Calls that only read are no rows. The rows are made from the traces in the same
    transactions; that none was altered or left out is shown by `sopilot verify`.
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
        if rebuild or await store.records.rebuild_is_due():
            read, problems = await rebuild_register(store, told=lambda text: _warn(text))
            _warn(f"the register was made from the traces of {counted(read, 'session')}")
            if problems:
                raise RunEnded(
                    f"{counted(len(problems), 'session')} could not be read: "
                    "the register would leave out what they did"
                )
        return await register(store, wanted, conditions, columns=names)

    found = with_store(store_spec, use, reading=True)
    if as_csv:
        hand_out(_as_csv(found.entries(limit), names, now))
    elif as_json:
        print_json(_as_json(found, limit, now))
    else:
        _show(found, limit or _SHOWN, names, now)


def _warn(text: str) -> None:
    say(text, err=True)


def _as_json(found: Selected, limit: int | None, now: float) -> dict[str, object]:
    return {
        "selected": len(found.rows),
        "of": found.total,
        "withheld": found.withheld,
        "counts": [
            {"action": action, "outcome": outcome, "count": count}
            for (action, outcome), count in sorted(found.counts.items())
        ],
        "sums": dict(found.sums),
        "actions": [
            {**entry.as_json(), "outcome": _outcome(entry, now)} for entry in found.entries(limit)
        ],
    }


def _outcome(entry: ActionEntry, now: float) -> str:
    waits = entry.outcome is ActionOutcome.HELD
    if waits and entry.expires_at is not None and entry.expires_at < now:
        return str(ActionOutcome.EXPIRED)
    return str(entry.outcome)


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


_HEADER = ("WHEN", "ACTION", "OUTCOME", "PROOF", "APPROVED BY")


def _show(found: Selected, limit: int, names: Sequence[str], now: float) -> None:
    entries = found.entries(limit)
    if entries:
        header = [*_HEADER, *(name.upper() for name in names or ("arguments",)), "SESSION"]
        rows = [_row(entry, names, now) for entry in entries]
        say(table(rows, header))
        say()
    for (action, outcome), count in sorted(found.counts.items()):
        say(f"{count} × {action} {outcome}")
    for name, total in found.sums.items():
        say(f"{name} of what was carried out: {total:,.15g}")
    shown = f", {len(entries)} shown: --limit for more" if len(entries) < len(found.rows) else ""
    say(f"{len(found.rows)} of {counted(found.total, 'action')} in the register{shown}")
    if found.withheld:
        say(
            f"{found.withheld} more could not be judged: the argument is kept outside of the "
            "trace, or was erased"
        )


def _row(entry: ActionEntry, names: Sequence[str], now: float) -> list[str]:
    proof = entry.grade or "-"
    if entry.override:
        proof += ", override"
    values = [_cell(value_at(entry.arguments, name.split("."))) for name in names]
    return [
        _when(entry.at),
        entry.action,
        _outcome(entry, now),
        proof,
        ", ".join(entry.approvers) or "-",
        *(values or [_cell(dict(entry.arguments))]),
        entry.session_id,
    ]


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_FIELDS = (
    "session", "call_id", "event", "action", "outcome", "grade", "override", "awaits", "why",
    "goal", "handbook", "program", "model", "arm",
)  # fmt: skip


def _as_csv(entries: Sequence[ActionEntry], names: Sequence[str], now: float) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["when", *_FIELDS, "approvers", *names, "arguments"])
    for entry in entries:
        fields = {**entry.as_json(), "outcome": _outcome(entry, now)}
        values = [_cell(value_at(entry.arguments, name.split("."))) for name in names]
        row = [
            _when(entry.at),
            *(_cell(fields[name]) for name in _FIELDS),
            "; ".join(entry.approvers),
            *values,
            _cell(dict(entry.arguments)),
        ]
        writer.writerow([_harmless(cell) for cell in row])
    return out.getvalue()


def _harmless(cell: str) -> str:
    """Spreadsheets would run a cell that begins like a formula: customers write arguments."""
    number = cell[1:].replace(".", "", 1).isdigit()
    return f"'{cell}" if cell[:1] in "=+-@\t\r" and cell and not number else cell
