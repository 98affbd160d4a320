"""The register of one session's actions, folded event by event. Pure.

Live and from a stored trace alike, so both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sopilot.runtime.records._action import ActionEntry, ActionOutcome
from sopilot.runtime.trace import words_of
from sopilot.runtime.trace.runtime_notes import (
    AWAITS_DECISION,
    HELD_CALL,
    OPENED,
    OUTCOME_UNKNOWN,
    PROGRAM_CHANGED,
)
from sopilot.runtime.vm.events import Actor, Event
from sopilot.runtime.vm.values import JSON

FOLDED = frozenset({"start", "domain_call", "domain_result", "decision", "note"})
"""The kinds of events that a register learns from; no other needs to be folded."""


class Register:
    """``changing`` tells whether an action may change something; others are no rows."""

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
        name = event.payload.get("name")
        details = _mapping(event.payload.get("details"))
        if name in (OPENED, PROGRAM_CHANGED):
            self._programs = _mapping(details.get("programs"))
            for about in ("handbook", "model", "arm"):
                if about in details:
                    self._about[about] = str(details[about] or "")
            return None
        call_id = details.get("call_id")
        if name == OUTCOME_UNKNOWN:
            known = self.entries.get(str(call_id))
            return known and known.turned(ActionOutcome.UNKNOWN)
        if name != HELD_CALL:
            return None
        if details.get("awaits") == AWAITS_DECISION:
            waiting = self.entries.get(str(details.get("held")))
            return waiting and replace(waiting, repeats=waiting.repeats + 1)
        return self._held(event, stored, details)

    def _held(self, event: Event, stored: Event, details: Mapping[str, JSON]) -> ActionEntry:
        kept = _mapping(stored.payload.get("details"))
        # Of a note whose details were erased nothing is known but that it was made.
        call_id = str(details.get("call_id") or f"#{event.seq}")
        expires, needed, roles = (details.get(name) for name in ("expires_at", "needed", "roles"))
        return replace(
            self._new(
                call_id, str(details.get("action") or ""), event, kept.get("arguments", kept)
            ),
            outcome=ActionOutcome.HELD,
            awaits=str(details.get("awaits") or ""),
            why=words_of(kept.get("why")),
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
            arm=self._about.get("arm", ""),
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
    value = payload.get("value")
    if event.actor == Actor.OPERATOR and isinstance(value, Mapping) and "settled_by" in value:
        said = "it happened" if payload.get("ok") is True else "it did not happen"
        settled = {"decision": "settle", "by": str(value["settled_by"]), "role": ""}
        if value.get("principal"):
            settled["principal"] = value["principal"]
        known = replace(
            known,
            decisions=(*known.decisions, {**settled, "at": event.at, "reason": said}),
        )
    return known.turned(outcome)


def _decided(known: ActionEntry, event: Event) -> ActionEntry:
    """As ``session`` counts decisions: of a named person in one of the roles, while it waits."""
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
    said: dict[str, JSON] = {"decision": decision, "by": by, "role": role, "at": event.at}
    if payload.get("reason"):
        said["reason"] = payload["reason"]
    if payload.get("principal"):
        said["principal"] = payload["principal"]
    entry = replace(known, decisions=(*known.decisions, said))
    if decision == "reject":
        return entry.turned(ActionOutcome.REJECTED)
    if decision == "amend":
        return replace(
            entry,
            arguments=_mapping(payload.get("arguments")),
            asked=known.asked or known.arguments,
        )
    return entry


def _mapping(value: JSON) -> dict[str, JSON]:
    return dict(value) if isinstance(value, Mapping) else {}
