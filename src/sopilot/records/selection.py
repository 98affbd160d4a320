"""Queries of the register: by time, name, outcome, grade and arguments; as text, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sopilot.messages.errors import UserMistake, mistake
from sopilot.records.actions import ActionEntry, ActionOutcome, ActionRow, entry_of, outcome_at
from sopilot.trace.redaction import MASK, is_reference
from sopilot.values.json import JSON
from sopilot.values.text import counted, moment, table


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filters that the store applies. Requests whose time is over at ``now`` have expired."""

    begin: float | None = None
    end: float | None = None
    """Not included."""
    action: str | None = None
    outcome: str | None = None
    grade: str | None = None
    now: float = 0.0


_ORDERS = {">": (1,), "<": (-1,), ">=": (0, 1), "<=": (-1, 0)}


class Condition(NamedTuple):
    """A condition on an argument, at any depth: ``customer.id``."""

    path: tuple[str, ...]
    operator: str
    value: JSON

    @property
    def without_names(self) -> str:
        """The condition as it may be recorded: with amounts, without names."""
        is_amount = self.operator in _ORDERS and isinstance(self.value, int | float)
        return f"{'.'.join(self.path)}{self.operator}{self.value if is_amount else '…'}"

    def holds(self, arguments: JSON) -> bool:
        result = value_at(arguments, self.path)
        if self.operator == "=":
            return _alike(result, self.value)
        if self.operator == "!=":
            return not _alike(result, self.value)
        order = _order(result, self.value)
        return order is not None and order in _ORDERS[self.operator]


_DAY_SECONDS = 86_400
_CONDITION = re.compile(r"\s*([^\s<>=!]+)\s*(>=|<=|!=|==|=|>|<)\s*(.*?)\s*", re.DOTALL)

_GROUPED = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?$")
"""A number as people write it, which would be compared as text."""


def read_condition(text: str) -> Condition:
    """``amount>1000``: a number is compared as a number, anything else as text; quotes force
    text."""
    match = _CONDITION.fullmatch(text)
    if match is None or not match[3] or match[3][0] in "<>=!" or _GROUPED.match(match[3]):
        raise mistake(
            "condition",
            f"`{text}` isn't a condition on an argument",
            help="NAME, one of = != > >= < <=, and a value: amount>1000 (no commas in a number)",
        )
    try:
        value = json.loads(match[3])
    except (ValueError, RecursionError):
        value = match[3]
    if isinstance(value, float) and not math.isfinite(value):
        raise UserMistake(f"`{match[3]}` isn't a finite number")
    operator = "=" if match[2] == "==" else match[2]
    if isinstance(value, dict | list) or (operator[0] in "<>" and not _ordered(value)):
        raise UserMistake(
            f"`{match[3]}` can't be compared with `<` or `>`: use a number or a string"
        )
    return Condition(tuple(match[1].split(".")), operator, value)


def value_at(arguments: JSON, path: Sequence[str]) -> JSON:
    result = arguments
    for name in path:
        if not isinstance(result, Mapping) or name not in result:
            return None
        result = result[name]
    return result


def _ordered(value: JSON) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _number(value: JSON) -> float | int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None


def _order(value: JSON, wanted: JSON) -> int | None:
    """Compare numbers, also written as text, or texts: -1, 0 or 1; else ``None``."""
    if isinstance(wanted, int | float):
        number = _number(value)
        if number is None or number != number or wanted != wanted:
            return None  # what is no number is not equal to all of them
        return (number > wanted) - (number < wanted)
    if isinstance(value, str) and isinstance(wanted, str):
        return (value > wanted) - (value < wanted)
    return None


def _alike(value: JSON, wanted: JSON) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool) or wanted is None:
        return value is wanted
    return _order(value, wanted) == 0


@dataclass(frozen=True, slots=True)
class Selected:
    """``total`` is the number of actions in the register; ``counts`` and ``sums`` cover the
    selected ones. ``sums`` maps a column to the total of its numbers in carried-out calls."""

    rows: Sequence[tuple[str, ActionRow]]
    total: int
    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(action, outcome) → how many."""
    sums: Mapping[str, float] = field(default_factory=dict)
    withheld: int = 0
    """Rows whose condition can't be judged: the argument is kept by reference."""
    findings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Session → findings of its recorded audits."""

    def entries(self, limit: int | None = None) -> list[ActionEntry]:
        entries = [entry_of(session_id, row) for session_id, row in self.rows[:limit]]
        if not self.findings:
            return entries
        return [
            replace(entry, findings=self.findings.get(entry.session_id, ())) for entry in entries
        ]


def select(
    rows: Iterable[tuple[str, ActionRow]],
    conditions: Sequence[Condition] = (),
    *,
    total: int,
    columns: Sequence[str] = (),
    now: float = 0.0,
) -> Selected:
    """Count a row as withheld if a condition is on an argument that the trace doesn't show. A
    request whose time has run out at ``now`` counts as expired."""
    stored, counts, withheld = [], Counter[tuple[str, str]](), 0
    sums: dict[str, float] = {}
    for session_id, row in rows:
        try:
            action = str(json.loads(row.action))
            arguments = json.loads(row.arguments) if conditions or columns else None
        except ValueError:
            entry_of(session_id, row)  # says so
            raise
        if conditions and any(_is_withheld(arguments, condition.path) for condition in conditions):
            withheld += 1
            continue
        if not all(condition.holds(arguments) for condition in conditions):
            continue
        outcome = outcome_at(row.outcome, row.expires_at, now)
        if outcome != row.outcome:
            row = row._replace(outcome=outcome)
        stored.append((session_id, row))
        counts[action, outcome] += 1
        if row.outcome == "carried out":
            for column in columns:
                number = _number(value_at(arguments, column.split(".")))
                if number is not None:
                    sums[column] = sums.get(column, 0) + number
    return Selected(stored, total, counts, sums, withheld)


def _is_withheld(arguments: JSON, path: Sequence[str]) -> bool:
    return any(is_reference(value_at(arguments, path[:deep])) for deep in range(len(path) + 1))


def read_moment(text: str, *, whole_day: bool = False) -> float:
    """A date or a moment (ISO 8601) as seconds; without a zone it is UTC. With ``whole_day`` a
    bare date is its end."""
    try:
        moment = datetime.fromisoformat(text)
        day = _DAY_SECONDS if whole_day and len(text) <= len("2026-07-01") else 0
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() + day
        datetime.fromtimestamp(seconds, UTC)  # what is behind the last day cannot be shown
        return seconds
    except (ValueError, OverflowError):
        raise UserMistake(f"`{text}` isn't a date: 2026-07-01 or 2026-07-01T12:00:00Z") from None


def with_day_ends(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The values, with the date under each name as the end of that day in seconds."""
    dates = {name: values[name] for name in names if values[name] is not None}
    ends = {name: read_moment(date, whole_day=True) for name, date in dates.items()}
    return {**values, **ends}


_HEADER = ("WHEN", "ACTION", "OUTCOME", "PROOF", "APPROVED BY", "FINDINGS")

_FIELDS = (
    "session", "call_id", "event", "action", "outcome", "grade", "override", "awaits", "why",
    "goal", "handbook", "program", "model", "view",
)  # fmt: skip

_MADE = (
    ActionOutcome.CARRIED_OUT, ActionOutcome.FAILED, ActionOutcome.UNKNOWN, ActionOutcome.ATTEMPTED,
)  # fmt: skip


def register_lines(selected: Selected, limit: int, names: Sequence[str]) -> Iterator[str]:
    entries = selected.entries(limit)
    if entries:
        header = [*_HEADER, *(name.upper() for name in names or ("arguments",)), "SESSION"]
        yield table([_row(entry, names) for entry in entries], header)
        yield ""
    for (action, outcome), count in sorted(selected.counts.items()):
        yield f"{count} × {action} {outcome}"
    for name, total in selected.sums.items():
        yield f"{name} of what was carried out: {total:,.15g}"
    shown = f", {len(entries)} shown: --limit for more" if len(entries) < len(selected.rows) else ""
    recorded = counted(selected.total, "action")
    yield f"{len(selected.rows)} of {recorded} in the action records{shown}"
    if selected.withheld:
        yield (
            f"{selected.withheld} more could not be judged: the argument is stored outside "
            "the trace, or was erased"
        )


def register_json(selected: Selected, limit: int | None) -> dict[str, object]:
    return {
        "selected": len(selected.rows),
        "of": selected.total,
        "withheld": selected.withheld,
        "counts": [
            {"action": action, "outcome": outcome, "count": count}
            for (action, outcome), count in sorted(selected.counts.items())
        ],
        "sums": dict(selected.sums),
        "actions": [entry.as_json() for entry in selected.entries(limit)],
    }


def register_csv(entries: Sequence[ActionEntry], names: Sequence[str]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["when", *_FIELDS, "approvers", "findings", *names, "arguments"])
    for entry in entries:
        fields = entry.as_json()
        values = [_cell(value_at(entry.arguments, name.split("."))) for name in names]
        row = [
            moment(entry.at),
            *(_cell(fields[name]) for name in _FIELDS),
            "; ".join(entry.approvers),
            "; ".join(entry.findings),
            *values,
            _cell(dict(entry.arguments)),
        ]
        writer.writerow([_harmless(cell) for cell in row])
    return out.getvalue()


def _row(entry: ActionEntry, names: Sequence[str]) -> list[str]:
    outcome, proof = str(entry.outcome), entry.grade
    if entry.outcome is ActionOutcome.HELD:
        # An unproven call doesn't wait for people: its session may be over.
        outcome += ", waits for people" if entry.roles else ", not proven"
    if not proof:
        proof = "not guarded" if entry.outcome in _MADE else "-"
    if entry.override:
        proof += ", override"
    values = [_cell(_masked(value_at(entry.arguments, name.split(".")))) for name in names]
    return [
        moment(entry.at),
        entry.action,
        outcome,
        proof,
        ", ".join(entry.approvers) or "-",
        ", ".join(entry.findings) or "-",
        *(values or [_cell(_masked(dict(entry.arguments)))]),
        entry.session_id,
    ]


def _masked(value: JSON) -> JSON:
    """Hide digests from people: the length of a secret is part of them. Files have them, for
    comparison with the trace."""
    if is_reference(value):
        return MASK
    if isinstance(value, Mapping):
        return {name: _masked(item) for name, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list | tuple) else value


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _harmless(cell: str) -> str:
    """Quote a cell that a spreadsheet would run as a formula: customers write arguments."""
    number = cell[1:].replace(".", "", 1).isdigit()
    return f"'{cell}" if cell[:1] in "=+-@\t\r" and cell and not number else cell
