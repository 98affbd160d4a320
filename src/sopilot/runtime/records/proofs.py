"""Proofs about a log that need no log: that a session stands in it, that it only grew."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sopilot.language.diagnostics import RunEnded
from sopilot.runtime.records.log import (
    LogEntry,
    SealedHead,
    entry_from_json,
    leaves_of,
    lines_of,
    sealed_from_json,
)
from sopilot.runtime.records.tree import (
    consistency_proof,
    inclusion_proof,
    proves_consistency,
    proves_inclusion,
)
from sopilot.runtime.vm import JSON, TraceError


def prove_inclusion(log: Sequence[LogEntry], entry: LogEntry, seal: SealedHead) -> dict[str, JSON]:
    path = inclusion_proof(leaves_of(lines_of(log[: seal.head.size])), entry.number)
    return {
        "sopilot_proof": "inclusion",
        "entry": entry.as_json(),
        "path": [one.hex() for one in path],
        "head": seal.as_json(),
    }


def prove_consistency(log: Sequence[LogEntry], old: SealedHead, new: SealedHead) -> dict[str, JSON]:
    path = consistency_proof(leaves_of(lines_of(log[: new.head.size])), old.head.size)
    return {
        "sopilot_proof": "consistency",
        "old": old.as_json(),
        "path": [one.hex() for one in path],
        "head": new.as_json(),
    }


def check_proof(proof: JSON, keys: Collection[str]) -> str:
    """What it proves, in words. Raises ``TraceError`` with what is wrong."""
    if not isinstance(proof, Mapping):
        raise TraceError("a proof must be an object")
    head = _sealed(proof.get("head"), keys)
    path = _path(proof.get("path"))
    root = bytes.fromhex(head.head.root)
    if proof.get("sopilot_proof") == "inclusion":
        entry = entry_from_json(proof.get("entry"))
        if not proves_inclusion(entry.leaf, entry.number, head.head.size, path, root):
            raise TraceError(f"entry {entry.number} is not in the log that was sealed")
        return (
            f"proven: session {entry.session_id} stood at event {entry.seq} with hash "
            f"{entry.hash}: entry {entry.number} of {head.head.size}"
        )
    if proof.get("sopilot_proof") != "consistency":
        raise TraceError("a proof is of inclusion or of consistency")
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
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TraceError("the path of a proof must be a list of hashes")
    try:
        return [bytes.fromhex(one) for one in value]
    except ValueError:
        raise TraceError("the path of a proof has a hash that is none") from None


def prove(
    log: Sequence[LogEntry],
    seal: SealedHead,
    *,
    session_id: str | None = None,
    since: SealedHead | None = None,
) -> dict[str, JSON]:
    """That the session stands in the log under the head, or that it only grew since another."""
    if len(log) < seal.head.size:
        raise RunEnded("the log is shorter than the head says: see `sopilot verify`")
    if since is not None:
        if since.head.size > seal.head.size:
            raise RunEnded("the earlier head covers more entries than the later one")
        return prove_consistency(log, since, seal)
    named = [one for one in log[: seal.head.size] if one.session_id == session_id]
    if not named:
        raise RunEnded(f"session {session_id} is in no entry that the head covers")
    return prove_inclusion(log, named[-1], seal)
