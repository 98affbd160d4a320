"""The log of a store's sessions, its signed heads, and proofs about a log that need no log."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sopilot.messages.errors import RunEnded, TraceError
from sopilot.records.actions import ActionRow
from sopilot.records.merkle_tree import (
    consistency_proof,
    inclusion_proof,
    leaf_hashes,
    proves_consistency,
    proves_inclusion,
    root_hash,
)
from sopilot.trace.signing import SigningKey, verify_signature
from sopilot.values.json import JSON, canonical, spell

PREFIX = "journal."
"""No session's id begins so: those are random hexadecimals."""

LOG_FORMAT = 1
_ROOT = re.compile("[0-9a-f]{64}")
_LARGEST = 1 << 53

_END = 253_402_300_800
"""The year 10,000."""

_quoted = json.encoder.encode_basestring


def is_journal(session_id: str) -> bool:
    return session_id.startswith(PREFIX)


class Entry(NamedTuple):
    """An entry of a journal. ``number`` is that of its event."""

    number: int
    at: float
    name: str
    details: Mapping[str, Any]


class LogEntry(NamedTuple):
    """A session stood at ``seq`` with ``hash``; ``actions`` is the digest of its rows in the
    register. One when it is created, then one at each sealing after it has moved."""

    number: int
    at: float
    session_id: str
    seq: int
    hash: str
    actions: str

    def as_json(self) -> dict[str, JSON]:
        return dict(zip(("entry", "at", "session", "seq", "hash", "actions"), self, strict=True))


def lines_of(entries: Iterable[LogEntry]) -> list[str]:
    """The canonical spelling of each entry, written out for speed: a log may be very long."""
    return [
        f'{{"actions":{_quoted(actions)},"at":{at!r},"entry":{number},"hash":{_quoted(digest)},'
        f'"seq":{seq},"session":{_quoted(session_id)}}}'
        for number, at, session_id, seq, digest, actions in entries
    ]


def leaves_of(lines: Collection[str]) -> list[bytes]:
    """Hash the lines, encoded at once: none contains a line feed."""
    if not lines:
        return []
    return leaf_hashes("\n".join(lines).encode("utf-8", "surrogatepass").split(b"\n"))


def digest_of(rows: Iterable[ActionRow | tuple[Any, ...]]) -> str:
    """The digest of a session's rows in the register, in any order."""
    spelled = "".join(
        f"{len(call)}:{call}{at!r}:{len(action)}:{action}{len(outcome)}:{outcome}{len(grade)}:{grade}"
        f"{expires!r}:{len(arguments)}:{arguments}{len(rest)}:{rest}"
        for call, at, action, outcome, grade, expires, arguments, rest in sorted(rows)
    )
    return hashlib.sha256(spelled.encode("utf-8", "surrogatepass")).hexdigest()


NO_ACTIONS = digest_of(())


class TreeHead(NamedTuple):
    size: int
    root: str
    at: float


@dataclass(frozen=True, slots=True)
class SealedHead:
    """A signed head of the log. A copy kept elsewhere shows later what is missing."""

    head: TreeHead
    key: str
    signature: str

    def as_json(self) -> dict[str, JSON]:
        return {**_statement(self.head), "key": self.key, "signature": self.signature}

    @property
    def is_genuine(self) -> bool:
        """Whether the signature is by the key it names. The caller must know whose key that is."""
        return verify_signature(self.key, self.signature, canonical(_statement(self.head)))


def _statement(head: TreeHead) -> dict[str, JSON]:
    return {"sopilot_log": LOG_FORMAT, "size": head.size, "root": head.root, "at": head.at}


def head_of(entries: Sequence[LogEntry], at: float) -> TreeHead:
    return TreeHead(len(entries), root_hash(leaves_of(lines_of(entries))).hex(), at)


def seal_head(key: SigningKey, head: TreeHead) -> SealedHead:
    return SealedHead(head, key.public, key.sign(canonical(_statement(head))))


def sealed_from_json(value: JSON) -> SealedHead:
    result = _object(value, "a sealed head")
    if result.get("sopilot_log") != LOG_FORMAT:
        raise TraceError(f"unknown format of a sealed head: `{result.get('sopilot_log')}`")
    head = TreeHead(_whole(result, "size"), _text(result, "root"), _moment(result))
    if head.size < 0 or not _ROOT.fullmatch(head.root):
        raise TraceError("a sealed head needs the size of a log and the root of its tree")
    return SealedHead(head, _text(result, "key"), _text(result, "signature"))


def entry_from_json(value: JSON) -> LogEntry:
    result = _object(value, "an entry of a log")
    return LogEntry(
        _whole(result, "entry"),
        _moment(result),
        _text(result, "session"),
        _whole(result, "seq"),
        _text(result, "hash"),
        _text(result, "actions"),
    )


def _object(value: JSON, what: str) -> Mapping[str, JSON]:
    if not isinstance(value, Mapping):
        raise TraceError(f"{what} must be an object")
    return value


def _text(values: Mapping[str, JSON], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise TraceError(f"`{name}` must be a string")
    return value


def _whole(values: Mapping[str, JSON], name: str) -> int:
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _LARGEST:
        raise TraceError(f"`{name}` must be a whole number")
    return value


def _moment(values: Mapping[str, JSON]) -> float:
    value = values.get("at")
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _END:
        raise TraceError("`at` must be a time in seconds")
    return value


@dataclass(frozen=True, slots=True)
class SealFile:
    """Sealed heads that were sent elsewhere, oldest first, and the lines of the entries they cover,
    where those were sent along."""

    heads: tuple[SealedHead, ...]
    lines: tuple[str, ...] = ()

    def entries(self) -> tuple[LogEntry, ...]:
        """Read the entries; slow for a long log. Raise ``TraceError``."""
        return tuple(entry_from_json(_read(line)) for line in self.lines)


_ENTRY = '{"actions":'


def read_seals(text: str) -> SealFile:
    """Read JSON Lines. Raise ``TraceError``."""
    heads: list[SealedHead] = []
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(_ENTRY):
            lines.append(line)
        elif line.strip():
            try:
                heads.append(sealed_from_json(_read(line)))
            except TraceError as problem:
                raise TraceError(f"line {number}: {problem}") from None
    if not heads:
        raise TraceError("it contains no sealed head")
    return SealFile(tuple(heads), tuple(lines))


def _read(line: str) -> JSON:
    try:
        value: JSON = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise TraceError("this line isn't JSON") from problem
    return value


def write_seals(entries: Iterable[LogEntry], head: SealedHead) -> str:
    return "".join(f"{line}\n" for line in (*lines_of(entries), spell(head.as_json())))


def check_proof(proof: JSON, keys: Collection[str]) -> str:
    """State in words what the proof shows. Raise ``TraceError`` for a wrong proof."""
    proof = _object(proof, "a proof")
    head = _sealed(proof.get("head"), keys)
    path = _path(proof.get("path"))
    root = bytes.fromhex(head.head.root)
    if proof.get("sopilot_proof") == "inclusion":
        entry = entry_from_json(proof.get("entry"))
        [leaf] = leaves_of(lines_of([entry]))
        if not proves_inclusion(leaf, entry.number, head.head.size, path, root):
            raise TraceError(f"entry {entry.number} is not in the log that was sealed")
        return (
            f"proven: session {entry.session_id} was at event {entry.seq} with hash "
            f"{entry.hash}: entry {entry.number} of {head.head.size}"
        )
    if proof.get("sopilot_proof") != "consistency":
        raise TraceError("a proof must be an inclusion or a consistency proof")
    old = _sealed(proof.get("old"), keys)
    if not proves_consistency(
        old.head.size, bytes.fromhex(old.head.root), head.head.size, root, path
    ):
        raise TraceError("the later log does not begin with the earlier one")
    return f"proven: the log of {head.head.size} entries begins with that of {old.head.size}"


def _sealed(value: JSON, keys: Collection[str]) -> SealedHead:
    seal = sealed_from_json(value)
    if seal.key not in keys:
        raise TraceError("the head is signed with another key")
    if not seal.is_genuine:
        raise TraceError("the signature of the head is wrong")
    return seal


def _path(value: JSON) -> list[bytes]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TraceError("the path of a proof must be a list of hashes")
    try:
        return [bytes.fromhex(item) for item in value]
    except ValueError:
        raise TraceError("the path of a proof has an invalid hash") from None


def prove(
    log: Sequence[LogEntry],
    seal: SealedHead,
    *,
    session_id: str | None = None,
    since: SealedHead | None = None,
) -> dict[str, JSON]:
    """Prove that the session stands in the log under the head, or that the log only grew since
    another head."""
    if len(log) < seal.head.size:
        raise RunEnded("the log is shorter than the head says: see `sopilot records verify`")
    covered = log[: seal.head.size]
    if since is not None:
        if since.head.size > seal.head.size:
            raise RunEnded("the earlier head covers more entries than the later one")
        path = consistency_proof(leaves_of(lines_of(covered)), since.head.size)
        about: dict[str, JSON] = {"sopilot_proof": "consistency", "old": since.as_json()}
    else:
        named = [item for item in covered if item.session_id == session_id]
        if not named:
            raise RunEnded(f"the head covers no entry of session {session_id}")
        path = inclusion_proof(leaves_of(lines_of(covered)), named[-1].number)
        about = {"sopilot_proof": "inclusion", "entry": named[-1].as_json()}
    return {**about, "path": [item.hex() for item in path], "head": seal.as_json()}
