"""One action in the register, and the row that a store keeps of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple

from sopilot.language.diagnostics import RunEnded
from sopilot.language.frozen import frozen
from sopilot.runtime.trace.identity import identity_of
from sopilot.runtime.vm.values import JSON, made, spell


class ActionOutcome(StrEnum):
    CARRIED_OUT = "carried out"
    FAILED = "failed"
    """The tool says that it did not happen."""
    UNKNOWN = "unknown"
    """It broke off: nobody knows whether it happened."""
    ATTEMPTED = "attempted"
    """It was made, and no answer is on record yet."""
    HELD = "held"
    """It was not made: ``awaits`` says what for."""
    REJECTED = "rejected"
    EXPIRED = "expired"


class ActionRow(NamedTuple):
    """As stores keep it: what is filtered by, and the rest as JSON text. ``call`` and ``action``
    are JSON strings, since a model may put characters into names that columns cannot hold."""

    call: str
    at: float
    action: str
    outcome: str
    grade: str
    expires_at: float | None
    arguments: str
    rest: str


class _KeepsItsRow:
    """Room beside an entry for its row, once it was spelled: neither compared nor copied."""

    __slots__ = ("_row",)
    _row: ActionRow


@frozen
class ActionEntry(_KeepsItsRow):
    """``arguments`` are those that ran, or would: people may have amended them, ``asked`` are
    the ones before. Values that the trace keeps by reference are references here, too.
    ``override`` is what people let through without proof."""

    call_id: str
    action: str
    at: float
    outcome: ActionOutcome
    arguments: Mapping[str, JSON]
    seq: int
    """Of the event that asked for it."""
    grade: str = ""
    """Empty where nothing is guarded, or the call was not made."""
    session_id: str = ""
    goal: str = ""
    program: str = ""
    """SHA-256 of the program it was made under."""
    handbook: str = ""
    model: str = ""
    arm: str = ""
    decisions: tuple[Mapping[str, JSON], ...] = ()
    override: str = ""
    awaits: str = ""
    why: str = ""
    roles: tuple[str, ...] = ()
    needed: int = 0
    expires_at: float | None = None
    asked: Mapping[str, JSON] | None = None
    repeats: int = 0
    """How often the same call was asked for again while it waited."""
    findings: tuple[str, ...] = ()
    """Of kept audits of its session, each with what people said of it; no part of the row."""

    @property
    def approvers(self) -> tuple[str, ...]:
        """Who agreed to the arguments as they are: in which role, and how proven."""
        names: list[str] = []
        for one in self.decisions:
            if one["decision"] in ("amend", "reject"):
                names = []  # earlier approvals were for other arguments, or came to nothing
            if one["decision"] in ("approve", "amend"):
                names.append(f"{one['by']} ({one['role']}, {identity_of(one.get('principal'))})")
        return tuple(names)

    def row(self) -> ActionRow:
        try:
            return self._row
        except AttributeError:
            pass
        rest: dict[str, JSON] = {"seq": self.seq}
        for name, value in zip(_REST, _rest_of(self), strict=True):
            # Arguments that were asked for may be none at all; anything else is left out then.
            if value or (name == "asked" and value is not None):
                rest[name] = _plain(value) if type(value) is tuple else value
        row = ActionRow(
            spell(self.call_id),
            float(self.at),
            spell(self.action),
            self.outcome.value,
            self.grade,
            self.expires_at,
            spell(self.arguments),
            spell(rest),
        )
        _set_row(self, row)
        return row

    def turned(self, outcome: ActionOutcome) -> ActionEntry:
        """The same with another outcome, which most answers bring and nothing else: what its row
        says beside that is not spelled again."""
        values: list[Any] = [*_all_of(self)]
        values[_OUTCOME] = outcome
        entry = ActionEntry(*values)
        row = self.row()
        _set_row(entry, made(ActionRow, (*row[:3], outcome.value, *row[4:])))
        return entry

    def as_json(self) -> dict[str, JSON]:
        return {
            "at": self.at,
            "session": self.session_id,
            "call_id": self.call_id,
            "action": self.action,
            "arguments": dict(self.arguments),
            "outcome": str(self.outcome),
            "grade": self.grade or None,
            "approvers": list(self.approvers),
            "decisions": [dict(one) for one in self.decisions],
            "needed": self.needed,
            "override": self.override or None,
            "awaits": self.awaits or None,
            "why": self.why or None,
            "asked": None if self.asked is None else dict(self.asked),
            "repeats": self.repeats,
            "goal": self.goal or None,
            "program": self.program or None,
            "handbook": self.handbook or None,
            "model": self.model or None,
            "arm": self.arm or None,
            "event": self.seq,
            "expires_at": self.expires_at,
            "findings": list(self.findings),
        }


_REST = (
    "goal", "program", "handbook", "model", "arm", "decisions", "override", "awaits",
    "why", "roles", "needed", "asked", "repeats",
)  # fmt: skip
_rest_of = attrgetter(*_REST)
_FIELDS = [one.name for one in fields(ActionEntry)]
_OUTCOME = _FIELDS.index("outcome")
_all_of = attrgetter(*_FIELDS)
_set_row = vars(_KeepsItsRow)["_row"].__set__


def _plain(values: tuple[JSON, ...]) -> JSON:
    return [dict(one) if isinstance(one, Mapping) else one for one in values]


def entry_of(session_id: str, row: ActionRow) -> ActionEntry:
    """Raises ``RunEnded`` for a row that is damaged."""
    try:
        rest = json.loads(row.rest)
        for name in ("decisions", "roles"):
            if name in rest:
                rest[name] = tuple(rest[name])
        return ActionEntry(
            json.loads(row.call),
            json.loads(row.action),
            row.at,
            ActionOutcome(row.outcome),
            json.loads(row.arguments),
            grade=row.grade,
            session_id=session_id,
            expires_at=row.expires_at,
            **rest,
        )
    except (ValueError, TypeError) as problem:
        raise RunEnded(
            f"a row of the register of session {session_id} is damaged; "
            "`sopilot register --rebuild` makes it anew from the trace"
        ) from problem
