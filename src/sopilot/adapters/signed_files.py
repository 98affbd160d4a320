"""Keys, signed heads and seals as people hand them in: files, or digits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from sopilot.adapters.text_files import whole_bytes, whole_text
from sopilot.language.diagnostics import Place, UserMistake, mistake
from sopilot.runtime.records.log import SealFile, read_seals
from sopilot.runtime.records.proofs import check_proof
from sopilot.runtime.session import Store, SystemClock
from sopilot.runtime.trace import SignedHead, sign_head, signed_head_from_json
from sopilot.runtime.trace.signing import SigningKey
from sopilot.runtime.vm import TraceError

PUBLIC_KEY_BYTES = 32


def public_key(given: str) -> str:
    path = Path(given)
    text = whole_bytes(path).decode("ascii", "replace").strip() if path.is_file() else given
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != PUBLIC_KEY_BYTES:
        raise mistake(
            "no-key",
            f"`{given}` is not a public key",
            Place("--key"),
            f"{2 * PUBLIC_KEY_BYTES} hexadecimal digits, as `sopilot trace keygen` prints "
            "them, or the file FILE.pub that it writes",
        )
    return raw.hex()


def checked_proof(path: Path, keys: Sequence[str]) -> tuple[str, str]:
    """What the file proves, or what is wrong with it."""
    try:
        return check_proof(json.loads(whole_text(path)), keys), ""
    except (TraceError, OSError, ValueError, RecursionError) as wrong:
        return "", str(wrong)


def sealed_text(path: Path) -> tuple[str, SealFile]:
    try:
        text = whole_text(path)
        return text, read_seals(text)
    except (TraceError, OSError, UnicodeDecodeError) as problem:
        raise mistake("no-seals", f"holds no sealed heads: {problem}", Place(str(path))) from None


def signed_heads(path: Path) -> list[SignedHead]:
    found = []
    for line in trace_text(path).split("\n"):
        if line.strip():
            try:
                found.append(signed_head_from_json(json.loads(line)))
            except (ValueError, RecursionError, TraceError) as problem:
                raise _unreadable(path, f"is not a signed head: {problem}") from None
    return found


def trace_text(path: Path, errors: str = "strict") -> str:
    try:
        # Line ends are part of what was written.
        return whole_bytes(path).decode("utf-8", errors)
    except (OSError, UnicodeDecodeError) as problem:
        raise _unreadable(path, f"cannot be read: {problem}") from None


def _unreadable(path: Path, message: str) -> UserMistake:
    return mistake("unreadable", message, Place(str(path)))


async def sign_session(store: Store, session_id: str, key: SigningKey) -> SignedHead:
    """Where it stands now; the signature is kept with it."""
    signed = sign_head(key, (await store.record(session_id)).head, at=SystemClock().now())
    await store.add_signature(signed)
    return signed
