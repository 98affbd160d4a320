"""A trace as a file: JSON Lines with a header, readable without this project.

The header comes first, then one event per line, signed heads, and payloads if they were exported.
``verify_trace`` checks offline that a file is what was recorded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sopilot.messages.errors import TraceError
from sopilot.trace.chain import SealedEvent, decode_line, encode_line, genesis, verify_chain
from sopilot.trace.events import ABOUT, OPENED
from sopilot.trace.redaction import is_reference, reference
from sopilot.trace.signing import SignedHead, signed_head_from_json, verify_head
from sopilot.values.json import JSON, canonical

TRACE_FILE_FORMAT = 1
_HEADER = frozenset({"sopilot_trace", "session", "programs", "program_texts", "about"})


@dataclass(frozen=True, slots=True)
class TraceFile:
    """``programs``: goal → hash; ``program_texts``: hash → artifact, if exported."""

    session_id: str
    events: tuple[SealedEvent, ...] = ()
    programs: Mapping[str, str] = field(default_factory=dict)
    program_texts: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, JSON] = field(default_factory=dict)
    signatures: tuple[SignedHead, ...] = ()
    payloads: Mapping[str, JSON] = field(default_factory=dict)
    salt: str = ""
    """In hexadecimal, exported with payloads so that their digests can be checked."""


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
    """Raise ``TraceError`` at the first malformed line or a torn last line. ``verify_trace``
    verifies the chain."""
    lines = text.split("\n")
    header = _header(lines[0])
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
                raise TraceError("an event follows the end of the trace")
            else:
                event = decode_line(line)
                if encode_line(event) != line:
                    raise _unusual()
                events.append(event)
        except (TraceError, RecursionError) as result:
            raise TraceError(f"line {number}: {result}") from result
    if lines[-1] != "":
        raise TraceError(f"line {len(lines)} is incomplete: it has no line end")
    return replace(
        header, events=tuple(events), signatures=tuple(signatures), payloads=payloads, salt=salt
    )


def _header(line: str) -> TraceFile:
    header = _object(line)
    if header.get("sopilot_trace") != TRACE_FILE_FORMAT:
        raise TraceError(
            f"this is not a trace of format {TRACE_FILE_FORMAT}: "
            f"the header says `{header.get('sopilot_trace')}`"
        )
    strange = sorted(header.keys() - _HEADER)
    if strange:
        raise TraceError(f"the header has `{strange[0]}`, which isn't a known field")
    session_id = header.get("session")
    if not isinstance(session_id, str):
        raise TraceError("the header names no session")
    return TraceFile(
        session_id,
        programs=_strings(header.get("programs", {})),
        program_texts=_strings(header.get("program_texts", {})),
        about=_mapping(header.get("about", {})),
    )


def _object(line: str) -> dict[str, JSON]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise TraceError("this line isn't JSON") from None
    mapping = _mapping(value)
    try:
        is_canonical = _line(mapping) == line
    except ValueError:  # not a finite number
        is_canonical = False
    if not is_canonical:
        raise _unusual()
    return mapping


def _unusual() -> TraceError:
    """Every value has one encoding, so that no byte of a file can change unnoticed."""
    return TraceError("this line isn't in canonical form")


def _mapping(value: JSON) -> dict[str, JSON]:
    if not isinstance(value, dict):
        raise TraceError("an object was expected")
    return value


def _strings(value: JSON) -> dict[str, str]:
    mapping = _mapping(value)
    results = {name: item for name, item in mapping.items() if isinstance(item, str)}
    if len(results) != len(mapping):
        raise TraceError("in the header, names and texts of programs must be strings")
    return results


def _line(value: Mapping[str, JSON]) -> str:
    return canonical(dict(value)).decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Problem:
    """``index`` is the event with the problem."""

    code: str
    message: str
    index: int | None = None

    def __str__(self) -> str:
        where = f" (event {self.index})" if self.index is not None else ""
        return f"{self.code}: {self.message}{where}"


def verify_trace(
    trace: TraceFile,
    *,
    heads: Sequence[SignedHead] = (),
    keys: Collection[str] | None = None,
) -> list[Problem]:
    """The problems of the chain, the programs and the signatures.

    ``heads`` were signed earlier and stored elsewhere; they reveal a cut-off tail and a full
    rewrite. ``keys`` are the trusted public keys, each of which must have signed the last event.
    ``None`` trusts the key that a head names, which proves integrity but not origin.
    """
    problems: list[Problem] = []
    broken = verify_chain(trace.events, session_id=trace.session_id)
    if broken is not None:
        problems.append(Problem("broken-chain", "this event differs from the sealed one", broken))
    problems.extend(_header_trace_check(trace))
    if _salt(trace) is None:
        problems.append(Problem("wrong-payload", "the salt of the payloads is invalid"))
    else:
        problems.extend(
            Problem("wrong-payload", f"payload {digest[:12]} was changed")
            for digest in _other_values(trace)
        )
    problems.extend(
        Problem("wrong-program", f"the text of program {digest[:12]} doesn't match its hash")
        for digest in sorted(_other_texts(trace))
    )
    signers: set[str] = set()
    for signed in (*trace.signatures, *heads):
        problem = check_head(trace, signed, keys)
        if problem is not None:
            problems.append(problem)
        elif signed.head.seq == len(trace.events) - 1:
            signers.add(signed.key)
    problems.extend(
        Problem("unsigned-head", f"{key[:16]}… has not signed the last event", len(trace.events))
        for key in sorted(set(keys or ()) - signers)
    )
    return problems


def _header_trace_check(trace: TraceFile) -> Iterator[Problem]:
    """Compare the header, which is outside of the chain, with the first event."""
    for name in sorted(trace.about.keys() - set(ABOUT)):
        yield Problem("wrong-header", f"the header has `{name}`, which no session starts with")
    if not trace.events:
        yield Problem("no-events", "there is a header but no event, so nothing is proven")
        return
    first = trace.events[0].event
    if first.note != OPENED:
        yield Problem("wrong-header", "the trace does not begin with the opening of a session", 0)
        return
    opened = _opening(trace)
    if is_reference(opened):
        return
    for name in ("programs", *ABOUT):
        reply = trace.programs if name == "programs" else trace.about.get(name)
        if opened.get(name) != reply:
            yield Problem("wrong-header", f"the header names another `{name}`", 0)


def _opening(trace: TraceFile) -> Mapping[str, Any]:
    """The details of the session's opening; a reference if they aren't available."""
    details: Any = trace.events[0].event.payload.get("details") if trace.events else None
    if is_reference(details):
        # A wrong payload is a problem of its own.
        stored, salt = trace.payloads.get(str(details["$ref"])), _salt(trace)
        if salt is not None and reference(stored, salt) == details:
            details = stored
    return details if isinstance(details, Mapping) else {}


def _salt(trace: TraceFile) -> bytes | None:
    try:
        return bytes.fromhex(trace.salt)
    except ValueError:
        return None


def _other_values(trace: TraceFile) -> list[str]:
    """The payloads that aren't what was recorded; all of them without a valid salt."""
    salt = _salt(trace)
    return [
        digest
        for digest, value in trace.payloads.items()
        if salt is None or reference(value, salt)["$ref"] != digest
    ]


def _other_texts(trace: TraceFile) -> set[str]:
    return {
        digest
        for digest, text in trace.program_texts.items()
        if hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() != digest
    }


def as_recorded(trace: TraceFile) -> TraceFile:
    """The trace without forged payloads and program texts, and with the programs that the session's
    opening names."""
    values, texts = {*_other_values(trace)}, _other_texts(trace)
    named = _opening(trace).get("programs")
    known = named.items() if isinstance(named, Mapping) else trace.programs.items()
    return replace(
        trace,
        # A forger may have put something else than text there.
        programs={goal: digest for goal, digest in known if isinstance(digest, str)},
        payloads={name: item for name, item in trace.payloads.items() if name not in values},
        program_texts={
            name: text for name, text in trace.program_texts.items() if name not in texts
        },
    )


def check_head(
    trace: TraceFile, signed: SignedHead, keys: Collection[str] | None = None
) -> Problem | None:
    """One signed head against the trace."""
    if keys is not None and signed.key not in keys:
        message = f"a head is signed with {signed.key[:16]}…, which isn't one of the trusted keys"
        return Problem("unknown-key", message)
    if not verify_head(signed):
        return Problem("bad-signature", "the signature of a head doesn't match its key")
    head = signed.head
    if head.session_id != trace.session_id:
        return Problem("transplanted", f"the signed head belongs to session {head.session_id}")
    if head.seq >= len(trace.events):
        return Problem(
            "truncated",
            f"{head.seq + 1} events were signed, {len(trace.events)} are here",
            len(trace.events),
        )
    result = genesis(trace.session_id) if head.seq < 0 else trace.events[head.seq].hash
    if result != head.hash:
        return Problem("rewritten", "the trace was rewritten after it was signed", head.seq)
    return None
