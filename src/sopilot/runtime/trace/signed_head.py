"""A signed head as data: who signs a head signs every event before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sopilot.runtime.trace import Head
from sopilot.runtime.vm import JSON, TraceError, canonical

SIGNED_HEAD_FORMAT = 1


@dataclass(frozen=True, slots=True)
class SignedHead:
    """``key`` is the public key and ``signature`` the Ed25519 signature, both in hexadecimal."""

    head: Head
    at: float
    key: str
    signature: str

    def as_json(self) -> dict[str, JSON]:
        return {**head_statement(self.head, self.at), "key": self.key, "signature": self.signature}


def head_statement(head: Head, at: float) -> dict[str, JSON]:
    """What is signed: nothing else of the same shape can be passed off for it."""
    return {
        "sopilot_head": SIGNED_HEAD_FORMAT,
        "session": head.session_id,
        "seq": head.seq,
        "hash": head.hash,
        "at": at,
    }


def statement_bytes(head: Head, at: float) -> bytes:
    return canonical(head_statement(head, at))


def signed_head_from_json(value: JSON) -> SignedHead:
    if not isinstance(value, Mapping):
        raise TraceError("a signed head must be an object")
    if value.get("sopilot_head") != SIGNED_HEAD_FORMAT:
        raise TraceError(f"unknown format of a signed head: `{value.get('sopilot_head')}`")
    texts = [value.get(name) for name in ("session", "hash", "key", "signature")]
    seq, at = value.get("seq"), value.get("at")
    if (
        not all(isinstance(text, str) for text in texts)
        or not isinstance(seq, int)
        or isinstance(seq, bool)
        or not isinstance(at, int | float)
        or isinstance(at, bool)
    ):
        raise TraceError("a signed head needs session, seq, hash, at, key and signature")
    session, digest, key, signature = (str(text) for text in texts)
    return SignedHead(Head(session, seq, digest), at, key, signature)
