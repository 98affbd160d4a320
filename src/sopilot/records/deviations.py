"""Deviations: findings of kept audits, folded from their journal. Pure.

Nothing of a deviation can be changed, only continued.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields

from sopilot.messages.errors import mistake, unnamed
from sopilot.records.log import Entry
from sopilot.values.json import JSON, same_name
from sopilot.values.text import moment, table

DISPOSITIONS = ("true", "false-alarm", "accepted-risk")
DEVIATIONS = "deviations"
"""The journal."""

OPEN, JUDGED, CLOSED = "open", "judged", "closed"


@dataclass(slots=True)
class Deviation:
    """The fields are those of its JSON. ``deviation`` is the number of the entry that opened it,
    ``history`` every later entry."""

    deviation: int
    at: float
    session: str
    code: str
    event: int
    explanation: str
    sentence: str = ""
    state: str = OPEN
    owner: str | None = None
    due: float | None = None
    disposition: str | None = None
    cause: str | None = None
    remedy: str | None = None
    judged_by: str | None = None
    closed_by: str | None = None
    history: list[dict[str, JSON]] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, int, str]:
        return self.session, self.code, self.event, self.sentence

    def overdue(self, now: float) -> bool:
        return self.state != CLOSED and self.due is not None and now >= self.due

    def fits(self, state: str | None, session_id: str | None, overdue: bool, now: float) -> bool:
        wanted = state in (None, self.state) and session_id in (None, self.session)
        return wanted and (self.overdue(now) or not overdue)

    def as_json(self) -> dict[str, JSON]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


def fold_deviations(entries: Iterable[Entry]) -> dict[int, Deviation]:
    """Number → deviation."""
    deviations: dict[int, Deviation] = {}
    for number, at, name, it in entries:
        if name == "deviation_opened":
            deviations[number] = Deviation(
                number, at, str(it["session"]), str(it["code"]), int(it["event"]),
                str(it["explanation"]), str(it.get("sentence") or ""),
            )  # fmt: skip
            continue
        item = deviations.get(it["deviation"])
        if item is None:
            continue
        item.history.append({"at": at, "entry": name, **it})
        by = it.get("by") or None
        if name == "deviation_assigned":
            item.owner = it.get("owner") or item.owner
            item.due = it.get("due") or item.due
        elif name == "deviation_judged":
            item.state, item.judged_by = JUDGED, by
            item.disposition, item.cause, item.remedy = (
                it.get(key) or None for key in ("disposition", "cause", "remedy")
            )
        elif name == "deviation_closed":
            item.state, item.closed_by = CLOSED, by
        elif name == "deviation_reopened":
            item.state, item.judged_by, item.closed_by = OPEN, None, None
    return deviations


def findings_of(deviations: Iterable[Deviation]) -> dict[str, tuple[str, ...]]:
    """Session → the code of each of its deviations, with the disposition or the state."""
    result: dict[str, tuple[str, ...]] = {}
    for item in deviations:
        brief = f"{item.code} ({item.disposition or item.state})"
        result[item.session] = (*result.get(item.session, ()), brief)
    return result


def require_step(deviation: Deviation, step: str, by: set[str]) -> None:
    """Raise unless a person, known by any of these names, may take this step."""
    number = deviation.deviation
    if not by - {""}:
        raise unnamed()
    if deviation.state == CLOSED and step not in ("commented", "reopened"):
        raise mistake("closed", f"deviation {number} is closed: reopen it first")
    if step == "closed" and deviation.state != JUDGED:
        raise mistake("not-judged", f"deviation {number} hasn't been judged yet")
    involved = {same_name(name or "") for name in (deviation.judged_by, deviation.owner)}
    if step == "closed" and involved & (by - {""}):
        message = (
            f"a second person must close deviation {number}: not the one who judged or owns it"
        )
        raise mistake("same-person", message)


def deviation_lines(deviations: Sequence[Deviation], known: int, now: float) -> Iterator[str]:
    if deviations:
        header = ("NO", "STATE", "FINDING", "OWNER", "DUE", "DISPOSITION", "CLOSED BY", "SESSION")
        yield table([_row(item, now) for item in deviations], header)
        yield ""
    yield f"{len(deviations)} of {known} deviations"


def _row(item: Deviation, now: float) -> tuple[object, ...]:
    due = "-"
    if item.due is not None:
        due = moment(item.due - 1)[:10] + (" late" if item.overdue(now) else "")
    return (
        item.deviation, item.state, f"{item.code} #{item.event}", item.owner or "-", due,
        item.disposition or "-", item.closed_by or "-", item.session,
    )  # fmt: skip
