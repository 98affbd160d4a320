"""A trace as a file: JSON Lines with a header, readable without this project.

Line one is the header, then one event a line, then signed heads, then payloads
if they were asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sopilot.runtime.session._loading import stored_hashes
from sopilot.runtime.session._store import ABOUT, Store
from sopilot.runtime.session.errors import Pruned
from sopilot.runtime.session.program_set import ProgramSet
from sopilot.runtime.session.recovery import program_changes, whole_events
from sopilot.runtime.session.secrets import SecretPlaces
from sopilot.runtime.trace import (
    SealedEvent,
    SecretTexts,
    decode_line,
    encode_line,
    holds_secret,
    is_reference,
)
from sopilot.runtime.trace.signed_head import SignedHead, signed_head_from_json
from sopilot.runtime.vm import JSON, TraceError, canonical

TRACE_FILE_FORMAT = 1
_HEADER = frozenset({"sopilot_trace", "session", "programs", "program_texts", "about"})


@dataclass(frozen=True, slots=True)
class TraceFile:
    """``programs``: goal → hash; ``program_texts``: hash → artifact, where they came along."""

    session_id: str
    events: tuple[SealedEvent, ...]
    programs: Mapping[str, str] = field(default_factory=dict)
    program_texts: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, JSON] = field(default_factory=dict)
    signatures: tuple[SignedHead, ...] = ()
    payloads: Mapping[str, JSON] = field(default_factory=dict)
    salt: str = ""
    """Hexadecimal; comes along with payloads, so that they can be held against their digests."""


async def export_trace(
    store: Store,
    session_id: str,
    *,
    payloads: bool = False,
    programs: bool = True,
    secrets: bool = False,
    known: dict[str, str] | None = None,
) -> TraceFile:
    """Payloads stay behind unless asked for: what leaves is redacted, and still verifies.
    Secrets stay behind with them, unless asked for as well: those of simulated people, and where
    a model is to read once more what it has read. Who exports many of one store gives the texts
    of programs that are ``known``, and is given those that are read."""
    record = await store.record(session_id)
    if record.is_pruned:
        raise Pruned(session_id)
    events = await store.events(session_id)
    hashes = stored_hashes(record)
    kept = await store.payloads(session_id)
    needed = set(hashes.values())
    for _, changed in program_changes(whole_events(events, kept)):
        needed.update(changed.values())
    known = {} if known is None else known
    for digest in sorted(needed - known.keys()):
        known[digest] = await store.program(digest)
    texts = {digest: known[digest] for digest in sorted(needed)}
    about = {name: record.metadata.get(name) for name in ABOUT}
    leaving: Mapping[str, JSON] = {}
    if payloads:
        leaving = kept if secrets else _without_secrets(hashes, texts, events, kept)
    return TraceFile(
        session_id,
        tuple(events),
        hashes,
        texts if programs else {},
        about,
        tuple(await store.signatures(session_id)),
        leaving,
        str(record.metadata.get("salt", "")) if payloads else "",
    )


def _without_secrets(
    hashes: Mapping[str, str],
    texts: Mapping[str, str],
    events: Sequence[SealedEvent],
    kept: Mapping[str, JSON],
) -> Mapping[str, JSON]:
    """What may leave the store: nothing that is a secret, or holds one."""
    places = SecretPlaces(ProgramSet.from_texts(hashes, texts))
    if not places.names:
        return kept
    whole = whole_events(events, kept)
    values = SecretTexts(set[str]().union(*map(places.values_in, whole)))
    named = {
        str(found["$ref"])
        for sealed, event in zip(events, whole, strict=True)
        for found in _references(sealed.event.payload, places.kept_back_in(event))
    }
    return {
        digest: value
        for digest, value in kept.items()
        if digest not in named and not holds_secret(value, values)
    }


def _references(payload: JSON, names: frozenset[str]) -> list[Mapping[str, JSON]]:
    """The references that stand under these names."""
    found: list[Mapping[str, JSON]] = []
    if isinstance(payload, Mapping):
        for key, item in payload.items():
            if key in names and is_reference(item):
                found.append(item)
            else:
                found += _references(item, names)
    elif isinstance(payload, list):
        for item in payload:
            found += _references(item, names)
    return found


def write_trace(trace: TraceFile) -> str:
    header: dict[str, JSON] = {
        "sopilot_trace": TRACE_FILE_FORMAT,
        "session": trace.session_id,
        "programs": dict(trace.programs),
        "about": dict(trace.about),
    }
    if trace.program_texts:
        header["program_texts"] = dict(trace.program_texts)
    lines = [_line(header)]
    lines.extend(encode_line(sealed) for sealed in trace.events)
    lines.extend(_line(signed.as_json()) for signed in trace.signatures)
    if trace.payloads:
        lines.append(_line({"payloads": dict(trace.payloads), "salt": trace.salt}))
    return "".join(line + "\n" for line in lines)


def read_trace(text: str) -> TraceFile:
    """Raises ``TraceError`` at the first line that is not what it should be, and when the last
    line is torn. The chain is not verified here: see ``verify_trace``."""
    lines = text.split("\n")
    session_id, programs, texts, about = _header(lines[0])
    events: list[SealedEvent] = []
    signatures: list[SignedHead] = []
    payloads: dict[str, JSON] = {}
    salt = ""
    for number, line in enumerate(lines[1:-1], start=2):
        try:
            # Keys are sorted: an event begins with its actor, a head with its time.
            if line.startswith('{"at":'):
                signatures.append(signed_head_from_json(_object(line)))
            elif line.startswith('{"payloads":'):
                entry = _object(line)
                payloads.update(_mapping(entry.get("payloads")))
                salt = str(entry.get("salt", ""))
            elif signatures or payloads:
                raise TraceError("an event stands behind the end of the trace")
            else:
                event = decode_line(line)
                if encode_line(event) != line:
                    raise _unusual()
                events.append(event)
        except (TraceError, RecursionError) as found:
            raise TraceError(f"line {number}: {found}") from found
    if lines[-1] != "":
        raise TraceError(f"line {len(lines)} is torn: it does not end")
    return TraceFile(
        session_id, tuple(events), programs, texts, about, tuple(signatures), payloads, salt
    )


def _header(line: str) -> tuple[str, dict[str, str], dict[str, str], dict[str, JSON]]:
    header = _object(line)
    if header.get("sopilot_trace") != TRACE_FILE_FORMAT:
        raise TraceError(
            f"this is not a trace of format {TRACE_FILE_FORMAT}: "
            f"the header says `{header.get('sopilot_trace')}`"
        )
    strange = sorted(header.keys() - _HEADER)
    if strange:
        raise TraceError(f"the header has `{strange[0]}`, which is not known here")
    session_id = header.get("session")
    if not isinstance(session_id, str):
        raise TraceError("the header names no session")
    return (
        session_id,
        _strings(header.get("programs", {})),
        _strings(header.get("program_texts", {})),
        _mapping(header.get("about", {})),
    )


def _object(line: str) -> dict[str, JSON]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise TraceError("this is not a line of JSON") from None
    found = _mapping(value)
    if not _is_canonical(found, line):
        raise _unusual()
    return found


def _is_canonical(value: dict[str, JSON], line: str) -> bool:
    try:
        return _line(value) == line
    except ValueError:  # not a finite number
        return False


def _unusual() -> TraceError:
    """Every value has one spelling, so that no byte of a file can change unnoticed."""
    return TraceError("this line is not spelled as it was written")


def _mapping(value: JSON) -> dict[str, JSON]:
    if not isinstance(value, dict):
        raise TraceError("an object was expected")
    return value


def _strings(value: JSON) -> dict[str, str]:
    given = _mapping(value)
    found = {name: item for name, item in given.items() if isinstance(item, str)}
    if len(found) != len(given):
        raise TraceError("the header must name programs by text")
    return found


def _line(value: Mapping[str, JSON]) -> str:
    return canonical(dict(value)).decode("utf-8", "surrogatepass")
