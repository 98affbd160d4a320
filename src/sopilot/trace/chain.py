"""The tamper-evident trace: sealed events, each bound to the one before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from sopilot.messages.errors import TraceError
from sopilot.trace.events import Event
from sopilot.values.json import canonical, made, spell, unique

FORMAT = 1
"""Version of the trace. Part of every hash."""

_quoted = json.encoder.encode_basestring


class SealedEvent(NamedTuple):
    event: Event
    previous: str
    hash: str


class Head(NamedTuple):
    """The end of a trace. A signature of it covers everything before it."""

    session_id: str
    seq: int
    hash: str


def genesis(session_id: str) -> str:
    """The hash that a session's first event is bound to, so that no trace passes for another's."""
    return hashlib.sha256(canonical({"format": FORMAT, "session": session_id})).hexdigest()


def seal(event: Event, previous: str) -> SealedEvent:
    return seal_line(event, previous)[0]


def seal_line(event: Event, previous: str) -> tuple[SealedEvent, str]:
    """``seal`` and ``encode_line`` at once, encoding the event only once."""
    before, behind = _spelled(event, previous)
    digest = _digest(before, behind)
    sealed = made(SealedEvent, (event, previous, digest))
    return sealed, f'{before},"hash":"{digest}",{behind}'


def seal_all(events: Iterable[Event], previous: str) -> list[SealedEvent]:
    sealed = []
    for event in events:
        item = seal(event, previous)
        previous = item.hash
        sealed.append(item)
    return sealed


def _spelled(event: Event, previous: str) -> tuple[str, str]:
    """The canonical line in two parts, between which the hash belongs; the hash covers the line
    without itself. Hot path: encoding a mapping of ten keys would take twice as long."""
    seq, at, actor, kind, process, frame, payload = event
    when = repr(at) if type(at) is float and isfinite(at) else spell(at)
    return (
        f'{{"actor":{_quoted(actor)},"at":{when},"format":{FORMAT},"frame":{_quoted(frame)}',
        f'"kind":{_quoted(kind)},"payload":{spell(payload)},"previous":{_quoted(previous)},'
        f'"process":{"null" if process is None else _quoted(process)},"seq":{seq}}}',
    )


def _digest(before: str, behind: str) -> str:
    return hashlib.sha256(f"{before},{behind}".encode("utf-8", "surrogatepass")).hexdigest()


def verify_chain(
    events: Sequence[SealedEvent], session_id: str | None = None, head: Head | None = None
) -> int | None:
    """The index of the first event that isn't what was sealed, or ``None``.

    A chain without its last events is consistent in itself. Only a ``head`` that was stored
    elsewhere shows that they are missing; the index is then that behind the last event.
    """
    if head is not None:
        session_id = head.session_id
    previous = genesis(session_id) if session_id is not None else None
    for index, sealed in enumerate(events):
        if (
            sealed.event.seq != index
            or (previous is not None and sealed.previous != previous)
            or sealed.hash != _digest(*_spelled(sealed.event, sealed.previous))
        ):
            return index
        previous = sealed.hash
    if head is not None and (head.seq, head.hash) != (len(events) - 1, previous):
        return len(events) if head.seq >= len(events) else max(head.seq, 0)
    return None


def head(session_id: str, events: Sequence[SealedEvent]) -> Head:
    if not events:
        return Head(session_id, -1, genesis(session_id))
    return Head(session_id, events[-1].event.seq, events[-1].hash)


def encode_line(sealed: SealedEvent) -> str:
    """One line without its line feed."""
    before, behind = _spelled(sealed.event, sealed.previous)
    return f'{before},"hash":{_quoted(sealed.hash)},{behind}'


def decode_line(line: str) -> SealedEvent:
    try:
        entry = json.loads(
            line,
            object_pairs_hook=unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as problem:
        raise TraceError("this line isn't JSON") from problem
    if not isinstance(entry, dict):
        raise TraceError("an event must be an object")
    if entry.get("format") != FORMAT or isinstance(entry["format"], bool):
        raise TraceError(f"unknown trace format `{entry.get('format')}`")
    if entry.keys() != _FIELDS.keys():
        odd = sorted(entry.keys() ^ _FIELDS.keys())
        raise TraceError(f"`{odd[0]}` is missing or not expected")
    for name, types in _FIELDS.items():
        value = entry[name]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise TraceError(f"`{name}` has the wrong type")
    event = Event(
        entry["seq"],
        entry["at"],
        entry["actor"],
        entry["kind"],
        entry["process"],
        entry["frame"],
        entry["payload"],
    )
    return SealedEvent(event, entry["previous"], entry["hash"])


_FIELDS: Mapping[str, tuple[type, ...]] = {
    "format": (int,),
    "seq": (int,),
    "at": (int, float),
    "actor": (str,),
    "kind": (str,),
    "process": (str, type(None)),
    "frame": (str,),
    "payload": (dict,),
    "previous": (str,),
    "hash": (str,),
}


def _finite(text: str) -> float:
    """Refuse `1e999`, which is JSON but becomes infinity."""
    value = float(text)
    if not isfinite(value):
        _refuse_constant(text)
    return value


def _refuse_constant(name: str) -> None:
    raise TraceError(f"`{name}` is not JSON")
