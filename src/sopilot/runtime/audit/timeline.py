"""What a report shows of a run: one row an event, in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sopilot.runtime.audit._state import is_withheld
from sopilot.runtime.audit.place_words import function_in_words, place_in_words, with_moments
from sopilot.runtime.audit.transcript import Transcript
from sopilot.runtime.trace.chain import SealedEvent
from sopilot.runtime.trace.identity import identity_of
from sopilot.runtime.trace.runtime_notes import HELD_CALL, OPENED
from sopilot.runtime.vm.events import Event
from sopilot.runtime.vm.operations import CLOCK
from sopilot.runtime.vm.values import JSON

REQUEST_NOTE = "model_request"
LONGEST = 240
"""Characters of a value that a row shows."""
_NOTES = {OPENED: "session opened", HELD_CALL: "call held back", CLOCK: "the clock shows"}


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """``tone`` is ``good``, ``bad`` or nothing; ``evidence`` are the events it cites."""

    seq: int
    actor: str
    kind: str
    place: str
    says: str
    depth: int = 0
    tone: str = ""
    evidence: tuple[int, ...] = ()
    at: float | None = None


def rows_of_trace(events: Iterable[Event | SealedEvent]) -> list[TimelineRow]:
    rows = []
    for entry in events:
        event = entry.event if isinstance(entry, SealedEvent) else entry
        if event.kind == "note" and event.payload.get("name") == REQUEST_NOTE:
            continue  # what a request cost is accounting, not procedure; the trace keeps it
        path = event.frame.split("@", 1)[0]
        depth = path.count("/") if path else 0
        cited = _evidence(event.payload)
        rows.append(
            TimelineRow(
                event.seq,
                event.actor,
                event.kind,
                place_in_words(event.frame),
                _says(event.kind, event.payload),
                depth,
                _tone(event.kind, event.payload),
                cited,
                event.at,
            )
        )
    return rows


def rows_of_transcript(transcript: Transcript) -> list[TimelineRow]:
    rows = []
    for call in transcript.calls:
        answer = shown(call.value) if call.answered else "no answer"
        says = f"{call.action}({arguments(call.arguments)}) → {answer}"
        tone = "" if not call.answered else "good" if call.ok else "bad"
        place = f"message {call.message}"
        rows.append(TimelineRow(call.index, "model", "domain_call", place, says, 0, tone))
    return rows


def shown(value: JSON) -> str:
    if is_withheld(value):
        return "(withheld)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def arguments(values: JSON) -> str:
    if not isinstance(values, Mapping) or is_withheld(values):
        return "(withheld)" if values is not None else "(not an object)"
    return ", ".join(f"{name}={shown(value)}" for name, value in values.items())


def _says(kind: str, payload: Mapping[str, JSON]) -> str:
    match kind:
        case "start":
            again = " again" if payload.get("reactivated") else ""
            return f"{payload.get('goal')}({arguments(payload.get('arguments'))}){again}"
        case "amend":
            return arguments(payload.get("arguments"))
        case "call":
            called = function_in_words(str(payload.get("function") or payload.get("slot")))
            return f"{called}({arguments(payload.get('resolved'))})"
        case "return":
            bound = payload.get("bound")
            holds = bound.get("holds") if isinstance(bound, Mapping) else payload.get("holds")
            word = "is undecided" if holds is None else "holds" if holds else "does not hold"
            grade = f" ({payload['grade']})" if payload.get("grade") else ""
            return f"{function_in_words(str(payload.get('function')))} {word}{grade}"
        case "reuse":
            if "result" in payload:
                return f"takes over #{payload['result']}"
            return (
                f"{function_in_words(str(payload.get('function')))} from #{payload.get('producer')}"
            )
        case "select_branch":
            return f"{payload.get('label')} → {payload.get('target')}"
        case "emit_artifact":
            return f"{payload.get('name')}: {shown(payload.get('content'))}"
        case "domain_call":
            return f"{payload.get('action')}({arguments(payload.get('arguments'))})"
        case "domain_result":
            word = "" if payload.get("ok") else "failed: "
            return f"{payload.get('action')} → {word}{shown(payload.get('value'))}"
        case "decision":
            role = f" as {payload['role']}" if payload.get("role") else ""
            done = f"{payload.get('decision')} {payload.get('call_id')} by {payload.get('by')}"
            return f"{done}{role} ({identity_of(payload.get('principal'))})"
        case "note":
            named = str(payload.get("name"))
            details = with_moments(payload.get("details", {}))
            return f"{_NOTES.get(named, named.replace('_', ' '))} {shown(details)}"
        case "rejected":
            operation = payload.get("operation")
            name = operation.get("operation") if isinstance(operation, Mapping) else "?"
            return f"{name}: {shown(payload.get('reason'))}"
    for key in ("text", "summary", "reason", "goal"):
        if payload.get(key):
            return shown(payload[key])
    return ""


def _tone(kind: str, payload: Mapping[str, JSON]) -> str:
    if kind == "domain_result":
        return "good" if payload.get("ok") else "bad"
    return {"complete": "good", "fail": "bad", "rejected": "bad"}.get(kind, "")


def _evidence(payload: Mapping[str, JSON]) -> tuple[int, ...]:
    bound = payload.get("bound", payload)
    cited = bound.get("evidence", ()) if isinstance(bound, Mapping) else ()
    if not isinstance(cited, list | tuple):
        return ()
    return tuple(one for one in cited if isinstance(one, int) and not isinstance(one, bool))
