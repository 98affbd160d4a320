"""The register of a session's actions, folded event by event, live and from a trace alike. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple

from sopilot.messages.errors import RunEnded
from sopilot.trace.events import (
    AWAITS_DECISION,
    AWAITS_RELEASE,
    HELD_CALL,
    OPENED,
    OUTCOME_UNKNOWN,
    PROGRAM_CHANGED,
    Actor,
    Event,
    identity_of,
)
from sopilot.trace.redaction import words_of
from sopilot.values.json import JSON, spell


class ActionOutcome(StrEnum):
    CARRIED_OUT = "carried out"
    FAILED = "failed"
    """The tool answered that it didn't happen."""
    UNKNOWN = "unknown"
    """It broke off."""
    ATTEMPTED = "attempted"
    """It was made, and no answer is on record yet."""
    HELD = "held"
    """It wasn't made; ``awaits`` is the reason."""
    REJECTED = "rejected"
    EXPIRED = "expired"


def outcome_at(outcome: str, expires_at: float | None, now: float) -> str:
    """The outcome of a row at ``now``: a waiting request may have expired since."""
    late = outcome == ActionOutcome.HELD and expires_at is not None and expires_at < now
    return str(ActionOutcome.EXPIRED if late else outcome)


class ActionRow(NamedTuple):
    """An action as stores keep it: the columns to filter by, and the rest as JSON text. ``call``
    and ``action`` are JSON strings: names from a model may hold characters that columns can't."""

    call: str
    at: float
    action: str
    outcome: str
    grade: str
    expires_at: float | None
    arguments: str
    rest: str


@dataclass(frozen=True, slots=True)
class ActionEntry:
    """``arguments`` are those that ran, or would: people may have amended them, ``requested`` are
    the ones before. Values that the trace keeps by reference are references here, too.
    ``override`` says which requirements were unproven when people overrode them."""

    call_id: str
    action: str
    at: float
    outcome: ActionOutcome
    arguments: Mapping[str, JSON]
    seq: int
    """The event that requested it."""
    grade: str = ""
    """Empty where nothing is guarded, or the call was not made."""
    session_id: str = ""
    goal: str = ""
    program: str = ""
    """SHA-256 of the program it was made under."""
    handbook: str = ""
    model: str = ""
    view: str = ""
    decisions: tuple[Mapping[str, JSON], ...] = ()
    override: str = ""
    awaits: str = ""
    why: str = ""
    roles: tuple[str, ...] = ()
    needed: int = 0
    expires_at: float | None = None
    requested: Mapping[str, JSON] | None = None
    repeats: int = 0
    """Repetitions of the same call while it waited."""
    findings: tuple[str, ...] = ()
    """Findings of recorded audits of its session, with their dispositions; not part of the row."""

    @property
    def approvers(self) -> tuple[str, ...]:
        """The people who approved the present arguments, with role and proof of identity."""
        names: list[str] = []
        for decision in self.decisions:
            if decision["decision"] in ("amend", "reject"):
                names = []  # earlier approvals were for other arguments, or have ended
            if decision["decision"] in ("approve", "amend"):
                names.append(
                    f"{decision['by']} ({decision['role']}, "
                    f"{identity_of(decision.get('principal'))})"
                )
        return tuple(names)

    def row(self) -> ActionRow:
        rest: dict[str, JSON] = {"seq": self.seq}
        for name, value in zip(_REST, _rest_of(self), strict=True):
            # Requested arguments may be an empty object; other fields are left out if empty.
            if value or (name == "requested" and value is not None):
                rest[name] = _plain(value) if type(value) is tuple else value
        return ActionRow(
            spell(self.call_id),
            float(self.at),
            spell(self.action),
            self.outcome.value,
            self.grade,
            self.expires_at,
            spell(self.arguments),
            spell(rest),
        )

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
            "decisions": [dict(decision) for decision in self.decisions],
            "needed": self.needed,
            "override": self.override or None,
            "awaits": self.awaits or None,
            "why": self.why or None,
            "requested": None if self.requested is None else dict(self.requested),
            "repeats": self.repeats,
            "goal": self.goal or None,
            "program": self.program or None,
            "handbook": self.handbook or None,
            "model": self.model or None,
            "view": self.view or None,
            "event": self.seq,
            "expires_at": self.expires_at,
            "findings": list(self.findings),
        }


_REST = (
    "goal", "program", "handbook", "model", "view", "decisions", "override", "awaits",
    "why", "roles", "needed", "requested", "repeats",
)  # fmt: skip

_rest_of = attrgetter(*_REST)


def _plain(values: tuple[JSON, ...]) -> JSON:
    return [dict(value) if isinstance(value, Mapping) else value for value in values]


def entry_of(session_id: str, row: ActionRow) -> ActionEntry:
    """Read a row. Raise ``RunEnded`` if it is damaged."""
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
            f"an action record of session {session_id} is damaged; "
            "`sopilot records actions --rebuild` recomputes it from the trace"
        ) from problem


FOLDED = frozenset({"start", "domain_call", "domain_result", "decision", "note"})
"""The kinds of events that a register learns from; no other needs to be folded."""


class Register:
    """``changing`` tells whether an action may change something; other actions get no row."""

    def __init__(self, changing: Callable[[str], bool]) -> None:
        self.changing = changing
        self.entries: dict[str, ActionEntry] = {}
        self._goals: dict[str | None, str] = {}
        self._programs: Mapping[str, JSON] = {}
        self._about: dict[str, str] = {}

    def fold(self, event: Event, stored: Event) -> ActionEntry | None:
        """The entry that the event made or changed. ``stored`` is the event as the trace keeps
        it: values that are kept by reference do not enter the register either."""
        kind = event.kind
        if kind not in FOLDED:
            return None
        if kind == "start":
            self._goals[event.process] = str(event.payload.get("goal"))
            return None
        if kind == "note":
            entry = self._note(event, stored)
        elif kind == "domain_call":
            entry = self._call(event, stored)
        else:
            known = self.entries.get(str(event.payload.get("call_id")))
            if known is None:
                return None
            entry = _answered(known, event) if kind == "domain_result" else _decided(known, stored)
        if entry is not None:
            self.entries[entry.call_id] = entry
        return entry

    def _call(self, event: Event, stored: Event) -> ActionEntry | None:
        call_id, action = str(event.payload["call_id"]), str(event.payload["action"])
        licence = stored.payload.get("licence")
        known = self.entries.get(call_id)
        if known is None and licence is None and not self.changing(action):
            return None
        proof = _mapping(licence)
        grade, override = str(proof.get("grade") or ""), words_of(proof.get("missing"))
        if known is None:
            arguments = stored.payload.get("arguments")
            return self._new(call_id, action, event, arguments, grade, override)
        return replace(
            known,
            at=event.at,
            outcome=ActionOutcome.ATTEMPTED,
            arguments=_mapping(stored.payload.get("arguments")),
            awaits="",
            grade=grade if licence is not None else known.grade,
            override=override if licence is not None else known.override,
        )

    def _note(self, event: Event, stored: Event) -> ActionEntry | None:
        if event.actor != Actor.RUNTIME:
            return None
        name, details = event.note, event.details
        if name in (OPENED, PROGRAM_CHANGED):
            self._programs = _mapping(details.get("programs"))
            for about in ("handbook", "model", "view"):
                if about in details:
                    self._about[about] = str(details[about] or "")
            return None
        call_id = details.get("call_id")
        if name == OUTCOME_UNKNOWN:
            known = self.entries.get(str(call_id))
            return known and replace(known, outcome=ActionOutcome.UNKNOWN)
        if name != HELD_CALL:
            return None
        if details.get("awaits") == AWAITS_DECISION:
            waiting = self.entries.get(str(details.get("held")))
            return waiting and replace(waiting, repeats=waiting.repeats + 1)
        waiting = self.entries.get(str(call_id))
        if details.get("awaits") == AWAITS_RELEASE and waiting is not None:
            # It waited for people before, or was tried before: their decisions stay.
            return replace(waiting, awaits=AWAITS_RELEASE, repeats=waiting.repeats + 1)
        return self._held(event, stored, details)

    def _held(self, event: Event, stored: Event, details: Mapping[str, JSON]) -> ActionEntry:
        mapping = stored.details
        # A note whose details were erased still shows that a call was held.
        call_id = str(details.get("call_id") or f"#{event.seq}")
        expires, needed, roles = (details.get(name) for name in ("expires_at", "needed", "roles"))
        return replace(
            self._new(
                call_id, str(details.get("action") or ""), event, mapping.get("arguments", mapping)
            ),
            outcome=ActionOutcome.HELD,
            awaits=str(details.get("awaits") or ""),
            why=words_of(mapping.get("why")),
            roles=tuple(map(str, roles)) if isinstance(roles, list | tuple) else (),
            needed=needed if isinstance(needed, int) else 0,
            expires_at=float(expires) if isinstance(expires, int | float) else None,
        )

    def _new(
        self,
        call_id: str,
        action: str,
        event: Event,
        arguments: JSON,
        grade: str = "",
        override: str = "",
    ) -> ActionEntry:
        goal = self._goals.get(event.process, "") if event.process is not None else ""
        if not goal and len(self._programs) == 1:
            goal = next(iter(self._programs))  # without a machine nothing is started
        return ActionEntry(
            call_id,
            action,
            event.at,
            ActionOutcome.ATTEMPTED,
            _mapping(arguments),
            event.seq,
            goal=goal,
            program=str(self._programs.get(goal) or ""),
            handbook=self._about.get("handbook", ""),
            model=self._about.get("model", ""),
            view=self._about.get("view", ""),
            grade=grade,
            override=override,
        )


def _answered(known: ActionEntry, event: Event) -> ActionEntry:
    payload = event.payload
    outcome = ActionOutcome.FAILED
    if payload.get("unknown") is True:
        outcome = ActionOutcome.UNKNOWN
    elif payload.get("ok") is True:
        outcome = ActionOutcome.CARRIED_OUT
    decisions, value = known.decisions, payload.get("value")
    if event.actor == Actor.OPERATOR and isinstance(value, Mapping) and "settled_by" in value:
        reason = "it happened" if payload.get("ok") is True else "it did not happen"
        resolved = {"decision": "resolve", "by": str(value["settled_by"]), "role": ""}
        if value.get("principal"):
            resolved["principal"] = value["principal"]
        decisions = (*decisions, {**resolved, "at": event.at, "reason": reason})
    return replace(known, outcome=outcome, decisions=decisions)


def _decided(known: ActionEntry, event: Event) -> ActionEntry:
    """Count a decision as the session does: by a named person, in a role, while it waits."""
    payload = event.payload
    decision, by, role = (str(payload.get(name) or "") for name in ("decision", "by", "role"))
    if known.outcome is not ActionOutcome.HELD:
        return known
    if decision == "expire":
        why = words_of(payload.get("reason") or known.why)
        return replace(known, outcome=ActionOutcome.EXPIRED, why=why)
    late = known.expires_at is not None and event.at > known.expires_at
    if late or not by or role not in known.roles:
        return known
    values: dict[str, JSON] = {"decision": decision, "by": by, "role": role, "at": event.at}
    if payload.get("reason"):
        values["reason"] = payload["reason"]
    if payload.get("principal"):
        values["principal"] = payload["principal"]
    changed: dict[str, Any] = {}
    if decision == "reject":
        changed["outcome"] = ActionOutcome.REJECTED
    if decision == "amend":
        changed["arguments"] = _mapping(payload.get("arguments"))
        changed["requested"] = known.requested or known.arguments
    return replace(known, decisions=(*known.decisions, values), **changed)


def _mapping(value: JSON) -> dict[str, JSON]:
    return dict(value) if isinstance(value, Mapping) else {}
