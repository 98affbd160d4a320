"""Ed25519 signatures over heads (extra ``sign``). ``cryptography`` is imported on use.

Signing a head signs every event before it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import TraceError, UserMistake, mistake
from sopilot.trace.chain import Head
from sopilot.values.json import JSON, canonical

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


SIGNED_HEAD_FORMAT = 1


@dataclass(frozen=True, slots=True)
class SignedHead:
    """``key`` is the public key and ``signature`` the Ed25519 signature, both in hexadecimal."""

    head: Head
    at: float
    key: str
    signature: str

    def as_json(self) -> dict[str, JSON]:
        return {**_statement(self.head, self.at), "key": self.key, "signature": self.signature}


def _statement(head: Head, at: float) -> dict[str, JSON]:
    """What is signed. Nothing else has this shape."""
    return {
        "sopilot_head": SIGNED_HEAD_FORMAT,
        "session": head.session_id,
        "seq": head.seq,
        "hash": head.hash,
        "at": at,
    }


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


_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class SigningKey:
    """A private key that signs heads; ``public`` is its public half in hexadecimal."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public: str = key.public_key().public_bytes_raw().hex()

    def private_hex(self) -> str:
        return self._key.private_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        return self._key.sign(message).hex()

    def __repr__(self) -> str:
        return f"SigningKey(public={self.public})"


def generate_key() -> SigningKey:
    return SigningKey(_ed25519().Ed25519PrivateKey.generate())


def write_key(key: SigningKey, path: Path) -> None:
    """Create the file with access for its owner only. Never overwrites a file."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise _mistake(
            "key-exists", "the file already exists, and sopilot never overwrites a key", path
        ) from None
    except OSError as problem:
        raise _mistake("key-unwritable", f"cannot write: {problem.strerror}", path) from None
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(f"sopilot-ed25519 {key.private_hex()}\n")


def load_key(path: Path) -> SigningKey:
    """Load a key. Refuses a file that group or others may read."""
    try:
        with open(path, encoding="ascii") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(1024)
    except (OSError, UnicodeDecodeError):
        raise _mistake("no-key", "this file can't be read as a key", path) from None
    if os.name == "posix" and mode & _OTHERS:
        raise _mistake(
            "key-exposed",
            f"others may read this key (mode {stat.S_IMODE(mode):o})",
            path,
            "chmod 600, or make a new key if others may have read it",
        )
    kind, _, spelled = text.strip().partition(" ")
    try:
        raw = bytes.fromhex(spelled)
    except ValueError:
        raw = b""
    if kind != "sopilot-ed25519" or len(raw) != 32:
        raise _mistake("no-key", "this file isn't a signing key", path)
    return SigningKey(_ed25519().Ed25519PrivateKey.from_private_bytes(raw))


def sign_head(key: SigningKey, head: Head, *, at: float) -> SignedHead:
    return SignedHead(head, at, key.public, key.sign(canonical(_statement(head, at))))


def verify_head(signed: SignedHead) -> bool:
    """Whether the signature of this head is by the named key. The caller must know whose key it
    is."""
    statement = canonical(_statement(signed.head, signed.at))
    return verify_signature(signed.key, signed.signature, statement)


def verify_signature(key_hex: str, signature_hex: str, message: bytes) -> bool:
    """Verify with ``cryptography``, or slowly in Python if it isn't installed."""
    try:
        key, signature = bytes.fromhex(key_hex), bytes.fromhex(signature_hex)
    except ValueError:
        return False
    if (key.hex(), signature.hex()) != (key_hex, signature_hex):
        return False  # only one encoding, so that no byte of a file can change unnoticed
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError:
        from sopilot.trace.ed25519 import signed_by

        return signed_by(key_hex, signature_hex, message)
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _ed25519() -> Any:
    """The module, imported on use: verifying chains alone must not need it."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError:
        raise UserMistake("signing needs `cryptography`: pip install 'sopilot[sign]'") from None
    return ed25519


def _mistake(code: str, message: str, path: Path, help: str = "") -> UserMistake:
    return mistake(code, message, Place(str(path)), help)
