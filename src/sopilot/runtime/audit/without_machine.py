"""Sessions without a machine: their trace has calls and results, but no process that ran.

They are judged like a transcript of anybody's agent, with more that is known: the chain of
the trace, every goal that was gone for, and what the user said.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from sopilot.language.diagnostics import UserMistake
from sopilot.language.handbook import Handbook
from sopilot.runtime.audit._auditing import judge_chain
from sopilot.runtime.audit._report import Report
from sopilot.runtime.audit._state import is_withheld
from sopilot.runtime.audit._transcript_leaf import Proof
from sopilot.runtime.audit.transcript import Transcript, TranscriptCall, read_value
from sopilot.runtime.audit.transcripts import Review
from sopilot.runtime.trace.chain import Head, SealedEvent
from sopilot.runtime.vm.events import Event
from sopilot.runtime.vm.values import JSON, Judge, plain


def audit_untracked(
    handbook: Handbook,
    events: Sequence[Event],
    *,
    goal: str | None,
    chain: Sequence[SealedEvent],
    session_id: str | None = None,
    judge: Judge | None = None,
    head: Head | None = None,
    offered: Collection[str] | None = None,
) -> Report:
    """``goal`` is what the user came for, where that is known. ``chain`` are the events as they
    were sealed; ``offered`` the tools that the agent had, where that is known."""
    transcript = transcript_of(events)
    review = Review(
        Proof(handbook, judge),
        transcript,
        _gone_for(handbook, transcript, goal),
        # Who ran out of turns has refused nothing.
        own=not any(_note(event, "budget") for event in events),
        offered=offered,
    )
    review.judge_calls()
    if goal is not None and not review.attempted(goal):
        others = [name for name in review.goals if name != goal]
        if not others or not _changed_to(events, others):
            action = handbook.procedures[goal].action
            absent = offered is not None and action not in offered
            hindered = absent or action in _not_offered(events)
            obstacle = f"`{action}` is not on offer" if hindered else ""
            review.judge_refusal(goal, obstacle=obstacle)
    broken, whole = judge_chain(chain, session_id, head)
    report = review.report(session_id, whole)
    return report.with_findings([broken]) if broken is not None else report


def transcript_of(events: Sequence[Event]) -> Transcript:
    """A call's index is its event's number, so that a finding names the event."""
    calls: dict[str, TranscriptCall] = {}
    made: list[str] = []
    for event in events:
        payload = event.payload
        if event.kind not in ("domain_call", "domain_result"):
            continue
        name = str(payload["call_id"])
        if any(is_withheld(value) for value in payload.values()):
            raise UserMistake("values of this trace are withheld: calls cannot be judged")
        if event.kind == "domain_call":
            arguments = payload["arguments"]
            assert isinstance(arguments, dict)
            calls[name] = TranscriptCall(event.seq, event.seq, str(payload["action"]), arguments)
            made.append(name)
        elif name in calls:
            asked, ok = calls[name], bool(payload["ok"])
            calls[name] = TranscriptCall(
                asked.index, asked.message, asked.action, asked.arguments,
                ok, payload.get("value"), True, ok,
            )  # fmt: skip
    turns = _turns(events, "user_said")
    spoken = [*_turns(events, "assistant_said"), *turns[1:]]
    return Transcript(
        tuple(calls[name] for name in made),
        len(events),
        max(0, len(turns) - 1),
        # Words that are kept elsewhere may have been any: then nothing is known of any.
        "" if None in spoken else "\n".join(filter(None, spoken)),
        _told("\n".join(filter(None, turns))),
    )


def _gone_for(handbook: Handbook, transcript: Transcript, goal: str | None) -> list[str]:
    """The goals whose actions were called, or else the one that the user came for."""
    goals = {one.action: name for name, one in handbook.procedures.items()}
    if goal is not None:
        goals[handbook.procedures[goal].action] = goal
    called = dict.fromkeys(goals[one.action] for one in transcript.calls if one.action in goals)
    return list(called) or ([goal] if goal is not None else [])


def _turns(events: Sequence[Event], kind: str) -> list[str | None]:
    """What was said, ``None`` where it is withheld."""
    said = [event.payload.get("text") for event in events if event.kind == kind]
    return [None if is_withheld(text) else str(text) for text in said]


_LINE = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*): (.+)$", re.MULTILINE)


def _told(text: str) -> dict[str, JSON]:
    """Values that the user gave a line each, by name; the last word counts."""
    return {name: plain(read_value(value)) for name, value in _LINE.findall(text)}


def _changed_to(events: Sequence[Event], goals: Sequence[str]) -> bool:
    """Whether the user asked for one of the goals after the first request, or may have."""
    said = _turns(events, "user_said")[1:]
    if None in said:
        return True
    later = " ".join(filter(None, said)).lower().replace("_", " ")
    return any(re.search(rf"\b{re.escape(goal.replace('_', ' '))}\b", later) for goal in goals)


def _note(event: Event, name: str) -> bool:
    return event.kind == "note" and event.payload.get("name") == name


def _not_offered(events: Sequence[Event]) -> set[str]:
    found: set[str] = set()
    for event in events:
        details = event.payload.get("details")
        if _note(event, "not_offered") and isinstance(details, Mapping):
            named = details.get("actions")
            found.update(map(str, named) if isinstance(named, list | tuple) else ())
    return found
