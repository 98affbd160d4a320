"""A run as a report shows it: entries for people (a call with its answer is one), and every event.

``entries_of`` and ``about_session`` read a trace, ``entries_of_transcript`` a transcript.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sopilot.audit.report import Decided, decided
from sopilot.audit.state import CheckMade
from sopilot.audit.transcript_files import Transcript
from sopilot.messages.catalogue import kept_message
from sopilot.trace.events import (
    AWAITS_APPROVAL,
    HELD_CALL,
    OPENED,
    OUTCOME_UNKNOWN,
    PROGRAM_CHANGED,
    Event,
)
from sopilot.trace.redaction import is_reference, words_of
from sopilot.values.json import JSON
from sopilot.values.text import moment

_GROUP = re.compile(r"(all_of|any_of|in_order|first_of)_(?:(\d+)_to_)?\w+")


_TOGETHER = {
    "all_of": "all of {0} requirements",
    "any_of": "one of {0} ways",
    "in_order": "{0} requirements in their order",
    "first_of": "the first of {0} ways that is true",
}


LONGEST = 240
"""Characters of a value that a report shows."""


REQUEST_NOTE = "model_request"


WITHHELD = "(withheld)"


def place_in_words(frame: str) -> str:
    """``transfer/all_of_6_to_within_limit/logged_in@ask`` is `transfer › logged in`."""
    path = frame.split("@", 1)[0].split("/")
    return " › ".join(part.replace("_", " ") for part in path if not _GROUP.fullmatch(part))


def function_in_words(name: str) -> str:
    """The handbook's name, or a description of a group, which only the compiler named."""
    match = _GROUP.fullmatch(name)
    return name if match is None else _TOGETHER[match[1]].format(match[2] or "the")


@dataclass(frozen=True, slots=True)
class Seal:
    """The newest signed head that covers a session, as far as event ``seq``."""

    at: float
    seq: int


@dataclass(frozen=True, slots=True)
class About:
    """The facts of a session at the head of its report."""

    begin: float | None = None
    end: float | None = None
    events: int = 0
    handbook: str = ""
    model: str = ""
    view: str = ""
    requester: str = ""
    programs: tuple[str, ...] = ()
    """Goal and first digits of its program, the latest version."""


def about_session(events: Iterable[Event]) -> About:
    listed = list(events)
    facts: dict[str, str] = {}
    programs: Mapping[str, JSON] = {}
    for event in listed:
        if event.note in (OPENED, PROGRAM_CHANGED):
            known = event.details.get("programs")
            programs = known if isinstance(known, Mapping) else programs
            for name in ("handbook", "model", "view", "requester"):
                if event.details.get(name):
                    facts[name] = words_of(event.details[name])
    times = [event.at for event in listed if event.at]
    begin, end = (times[0], times[-1]) if times else (None, None)
    named = tuple(f"{goal} {str(digest)[:8]}" for goal, digest in programs.items())
    return About(begin, end, len(listed), **facts, programs=named)


@dataclass(slots=True)
class Entry:
    """Something that happened: a call with its answer and its decisions, a message, a start or an
    end. ``state`` and ``kind`` are labels of ``messages.audit``; ``original`` are the arguments
    that people amended, ``events`` all events that belong to it."""

    seq: int
    kind: str
    title: str
    at: float | None = None
    arguments: JSON = None
    original: JSON = None
    state: str = ""
    answer: JSON = None
    answered: bool = False
    why: str = ""
    decisions: list[Decided] = field(default_factory=list)
    events: list[int] = field(default_factory=list)

    @property
    def requested(self) -> str:
        """The values that people changed, as they were requested."""
        before, after = dict(pairs(self.original)), dict(pairs(self.arguments))
        changed = {name: value for name, value in before.items() if after.get(name) != value}
        return ", ".join(f"{name} {value}" for name, value in changed.items())

    @property
    def tone(self) -> str:
        return _TONES.get(self.state or self.kind, "")


_TONES = {
    "carried_out": "good", "overridden": "warn", "complete": "good", "failed": "bad",
    "unknown": "bad", "blocked": "warn", "rejected": "warn", "expired": "warn", "waits": "warn",
    "fail": "warn",
}  # fmt: skip


_KINDS = {"user_said": "user", "assistant_said": "agent"}
_TEXTS = {"complete": "summary", "fail": "reason"}


def entries_of(events: Iterable[Event], guarded: Iterable[int] = ()) -> list[Entry]:
    """``guarded``: the events of guarded calls, which are carried out where reads are answered."""
    entries: list[Entry] = []
    calls: dict[str, Entry] = {}
    effects = frozenset(guarded)

    def add(event: Event, kind: str, title: str, arguments: JSON = None) -> Entry:
        entry = Entry(event.seq, kind, title, event.at, arguments, events=[event.seq])
        entries.append(entry)
        return entry

    for event in events:
        payload, details = event.payload, event.details
        call_id = str((details or payload).get("call_id"))
        call = calls.get(call_id)
        if event.kind in _KINDS:
            add(event, _KINDS[event.kind], words_of(payload.get("text")))
        elif event.kind in ("start", "amend"):
            add(event, event.kind, str(payload.get("goal") or ""), payload.get("arguments"))
        elif event.kind in _TEXTS:
            add(event, event.kind, words_of(payload.get(_TEXTS[event.kind])))
        elif event.note == HELD_CALL and details:
            held = add(event, "call", str(details.get("action") or ""), details.get("arguments"))
            waits = details.get("awaits") == AWAITS_APPROVAL
            held.state = "waits" if waits else "blocked"
            held.why = kept_message(details.get("message")) or words_of(details.get("why"))
            calls[call_id] = held
        elif event.note == OUTCOME_UNKNOWN and call is not None:
            call.state = "unknown"
            call.answered, call.answer = "value" in details, details.get("value")
            call.events.append(event.seq)
        elif event.kind == "domain_call":
            arguments = payload.get("arguments")
            if call is None:
                call = calls[call_id] = add(event, "call", str(payload.get("action")), arguments)
            else:
                call.events.append(event.seq)
                if call.arguments != arguments and call.original is None:
                    call.original = call.arguments
            call.seq, call.at, call.arguments, call.why = event.seq, event.at, arguments, ""
            call.state = "unanswered"
        elif event.kind == "domain_result" and call is not None:
            call.answered, call.answer = True, payload.get("value")
            done = "answered" if effects.isdisjoint(call.events) else "carried_out"
            call.state = done if payload.get("ok") else "failed"
            if payload.get("unknown") is True:
                call.state = "unknown"
            call.events.append(event.seq)
        elif event.kind == "decision" and call is not None:
            call.decisions.append(decided(event))
            call.events.append(event.seq)
            if payload.get("decision") == "amend":
                call.original, call.arguments = call.arguments, payload.get("arguments")
            closed = {"reject": "rejected", "expire": "expired"}
            call.state = closed.get(str(payload.get("decision")), call.state)
    return entries


def proof_of(entry: Entry, proofs: Mapping[int, Sequence[CheckMade]]) -> Sequence[CheckMade]:
    """The requirements of a call as they were judged last: a call that waited was judged twice."""
    return next((proofs[seq] for seq in reversed(entry.events) if seq in proofs), ())


def entries_of_transcript(transcript: Transcript) -> list[Entry]:
    entries = []
    for call in transcript.calls:
        state = "unanswered" if call.awaited else "answered" if call.ok else "failed"
        entry = Entry(call.seq, "call", call.action, state=state, events=[call.seq])
        entry.arguments, entry.answer = call.arguments, call.value
        entry.answered = not call.awaited
        entries.append(entry)
    return entries


def pairs(values: JSON) -> list[tuple[str, str]]:
    """Names and values of an object for people; one pair without a name for anything else."""
    if isinstance(values, Mapping) and not is_reference(values):
        return [(str(name), shown(value)) for name, value in values.items()]
    return [] if values is None else [("", shown(values))]


def shown(value: JSON) -> str:
    """A value for people: no braces, no quotation marks, cut to a length."""
    text = _plain(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _plain(value: JSON) -> str:
    if is_reference(value):
        return WITHHELD
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_plain(item)}" for name, item in value.items()) or "–"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value)) or "–"
    return value if isinstance(value, str) else json.dumps(value, default=str)


@dataclass(frozen=True, slots=True)
class Row:
    """One event of the complete list."""

    seq: int
    at: float
    actor: str
    kind: str
    place: str
    says: str


def rows_of(events: Iterable[Event]) -> list[Row]:
    """Every event but the accounting of model requests, which the trace keeps."""
    return [
        Row(
            event.seq,
            event.at,
            event.actor,
            event.kind,
            place_in_words(event.frame),
            _says(event.payload),
        )
        for event in events
        if event.note != REQUEST_NOTE
    ]


_SUBJECTS = ("goal", "action", "function", "name", "decision", "label", "text", "summary", "reason")
_CONTENTS = (
    "arguments", "resolved", "details", "value", "content", "bound", "target", "operation",
    "call_id", "by", "role", "grade", "producer", "result",
)  # fmt: skip


def _says(payload: Mapping[str, JSON]) -> str:
    """The first name in an event's payload, then its contents."""
    subjects = (payload[key] for key in _SUBJECTS if payload.get(key))
    subject = next(subjects, "")
    words = function_in_words(subject) if isinstance(subject, str) else ""
    contents = (payload.get(key) for key in _CONTENTS)
    listed = [shown(_with_times(item)) for item in contents if item not in (None, "", {}, [])]
    return " · ".join(filter(None, (shown(words or subject), *listed)))


def _with_times(value: JSON) -> JSON:
    """Numbers under names such as ``expires_at`` as times."""
    if not isinstance(value, Mapping):
        return value
    return {
        key: moment(item)
        if key.rpartition("_")[2] == "at" and isinstance(item, int | float) and 0 < item < 1e11
        else item
        for key, item in value.items()
    }
