"""What was found wrong and what was done about it: each deviation has a life. Pure.

Folded from the entries of a journal: nothing of it can be changed, only continued.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sopilot.language.diagnostics import Diagnostic
from sopilot.language.diagnostics.plain_text import moment, table
from sopilot.runtime.records._selection import read_moment
from sopilot.runtime.vm.values import JSON, same_name

DISPOSITIONS = ("true", "false-alarm", "accepted-risk")
DEVIATIONS = "deviations"
"""The journal."""
OPEN, JUDGED, CLOSED = "open", "judged", "closed"


@dataclass(slots=True)
class Deviation:
    """``number`` is that of the entry that opened it. ``history`` is every later entry."""

    number: int
    at: float
    session_id: str
    code: str
    seq: int
    explanation: str
    sentence: str = ""
    opened_by: str = ""
    state: str = OPEN
    owner: str = ""
    due: float | None = None
    disposition: str = ""
    cause: str = ""
    remedy: str = ""
    judged_by: str = ""
    closed_by: str = ""
    history: list[dict[str, JSON]] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, int, str]:
        return self.session_id, self.code, self.seq, self.sentence

    @property
    def briefly(self) -> str:
        """Its code, and what people made of it."""
        return f"{self.code} ({self.disposition or self.state})"

    def overdue(self, now: float) -> bool:
        return self.state != CLOSED and self.due is not None and now >= self.due

    def fits(self, state: str | None, session_id: str | None, overdue: bool, now: float) -> bool:
        asked = state in (None, self.state) and session_id in (None, self.session_id)
        return asked and (self.overdue(now) or not overdue)

    def as_json(self) -> dict[str, JSON]:
        return {
            "deviation": self.number,
            "at": self.at,
            "session": self.session_id,
            "code": self.code,
            "event": self.seq,
            "explanation": self.explanation,
            "sentence": self.sentence,
            "state": self.state,
            "owner": self.owner or None,
            "due": self.due,
            "disposition": self.disposition or None,
            "cause": self.cause or None,
            "remedy": self.remedy or None,
            "judged_by": self.judged_by or None,
            "closed_by": self.closed_by or None,
            "history": list(self.history),
        }


def fold_deviations(
    entries: Iterable[tuple[int, float, str, Mapping[str, JSON]]],
) -> dict[int, Deviation]:
    found: dict[int, Deviation] = {}
    for number, at, name, it in entries:
        if name == "deviation_opened":
            found[number] = Deviation(
                number, at, str(it["session"]), str(it["code"]), _whole(it["event"]),
                str(it["explanation"]), str(it.get("sentence") or ""), str(it.get("by") or ""),
            )  # fmt: skip
            continue
        one = found.get(_whole(it.get("deviation")))
        if one is None:
            continue
        one.history.append({"at": at, "entry": name, **it})
        if name == "deviation_assigned":
            due = it.get("due")
            one.owner = str(it.get("owner") or one.owner)
            one.due = float(due) if isinstance(due, int | float) else one.due
        elif name == "deviation_judged":
            one.state, one.judged_by = JUDGED, str(it.get("by") or "")
            one.disposition = str(it.get("disposition"))
            one.cause, one.remedy = str(it.get("cause") or ""), str(it.get("remedy") or "")
        elif name == "deviation_closed":
            one.state, one.closed_by = CLOSED, str(it.get("by") or "")
        elif name == "deviation_reopened":
            one.state, one.judged_by, one.closed_by = OPEN, "", ""
    return found


def _whole(value: JSON) -> int:
    return value if isinstance(value, int) else -1


def why_not(one: Deviation, step: str, by: set[str]) -> Diagnostic | None:
    """What keeps somebody (under any of these names) from taking this step."""
    if not by - {""}:
        return Diagnostic("nobody", "whoever does this must be named")
    if one.state == CLOSED and step not in ("commented", "reopened"):
        return Diagnostic("closed", f"deviation {one.number} is closed: reopen it first")
    if step == "closed":
        if one.state != JUDGED:
            return Diagnostic("not-judged", f"deviation {one.number} has no disposition yet")
        if same_name(one.judged_by) in by or same_name(one.owner) in by - {""}:
            return Diagnostic(
                "same-person",
                f"deviation {one.number} is closed by a second person: not who judged or owns it",
            )
    return None


def deviation_lines(found: Sequence[Deviation], known: int, now: float) -> Iterator[str]:
    if found:
        header = ("NO", "STATE", "FINDING", "OWNER", "DUE", "DISPOSITION", "CLOSED BY", "SESSION")
        yield table([_row(one, now) for one in found], header)
        yield ""
    yield f"{len(found)} of {known} deviations"


def _row(one: Deviation, now: float) -> tuple[str, ...]:
    due = (
        "-" if one.due is None else moment(one.due - 1)[:10] + (" late" if one.overdue(now) else "")
    )
    return (
        str(one.number), one.state, f"{one.code} #{one.seq}", one.owner or "-", due,
        one.disposition or "-", one.closed_by or "-", one.session_id,
    )  # fmt: skip


def due_date(text: str | None) -> float | None:
    return None if text is None else read_moment(text, whole_day=True)
