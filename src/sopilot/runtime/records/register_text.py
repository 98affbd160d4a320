"""The register for people, for scripts and for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence

from sopilot.language.diagnostics.plain_text import counted, moment, table
from sopilot.runtime.records._action import ActionEntry, ActionOutcome
from sopilot.runtime.records._selection import Selected, value_at
from sopilot.runtime.trace import MASK, is_reference
from sopilot.runtime.vm import JSON

_HEADER = ("WHEN", "ACTION", "OUTCOME", "PROOF", "APPROVED BY", "FINDINGS")
_FIELDS = (
    "session", "call_id", "event", "action", "outcome", "grade", "override", "awaits", "why",
    "goal", "handbook", "program", "model", "arm",
)  # fmt: skip

_MADE = (
    ActionOutcome.CARRIED_OUT, ActionOutcome.FAILED, ActionOutcome.UNKNOWN, ActionOutcome.ATTEMPTED,
)  # fmt: skip


def register_lines(found: Selected, limit: int, names: Sequence[str], now: float) -> Iterator[str]:
    entries = found.entries(limit)
    if entries:
        header = [*_HEADER, *(name.upper() for name in names or ("arguments",)), "SESSION"]
        rows = [_row(entry, names, now) for entry in entries]
        yield table(rows, header)
        yield ""
    for (action, outcome), count in sorted(found.counts.items()):
        yield f"{count} × {action} {outcome}"
    for name, total in found.sums.items():
        yield f"{name} of what was carried out: {total:,.15g}"
    shown = f", {len(entries)} shown: --limit for more" if len(entries) < len(found.rows) else ""
    yield f"{len(found.rows)} of {counted(found.total, 'action')} in the register{shown}"
    if found.withheld:
        yield (
            f"{found.withheld} more could not be judged: the argument is kept outside of the "
            "trace, or was erased"
        )


def register_json(found: Selected, limit: int | None, now: float) -> dict[str, object]:
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


def register_csv(entries: Sequence[ActionEntry], names: Sequence[str], now: float) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["when", *_FIELDS, "approvers", "findings", *names, "arguments"])
    for entry in entries:
        fields = {**entry.as_json(), "outcome": _outcome(entry, now)}
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


def _row(entry: ActionEntry, names: Sequence[str], now: float) -> list[str]:
    proof = entry.grade or ("not guarded" if entry.outcome in _MADE else "-")
    if entry.override:
        proof += ", override"
    values = [_cell(_masked(value_at(entry.arguments, name.split(".")))) for name in names]
    return [
        moment(entry.at),
        entry.action,
        _outcome(entry, now) + _for_what(entry, now),
        proof,
        ", ".join(entry.approvers) or "-",
        ", ".join(entry.findings) or "-",
        *(values or [_cell(_masked(dict(entry.arguments)))]),
        entry.session_id,
    ]


def _outcome(entry: ActionEntry, now: float) -> str:
    waits = entry.outcome is ActionOutcome.HELD
    if waits and entry.expires_at is not None and entry.expires_at < now:
        return str(ActionOutcome.EXPIRED)
    return str(entry.outcome)


def _for_what(entry: ActionEntry, now: float) -> str:
    """A call that was held and never proven waits for nobody: its session may be long over."""
    if _outcome(entry, now) != ActionOutcome.HELD:
        return ""
    return ", waits for people" if entry.roles else ", not proven"


def _masked(value: JSON) -> JSON:
    """For people: a digest tells them nothing, and how long a secret is is none of their
    business. Files have it, so that they can be held against the trace."""
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
    """Spreadsheets would run a cell that begins like a formula: customers write arguments."""
    number = cell[1:].replace(".", "", 1).isdigit()
    return f"'{cell}" if cell[:1] in "=+-@\t\r" and cell and not number else cell
