"""Sealed heads outside of a store: sent to files, other stores and addresses, and read again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from sopilot.files.text import whole_bytes, whole_text, write_whole
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import RunEnded, TraceError, UserMistake, mistake
from sopilot.protocols import SystemClock
from sopilot.records.journal import entries, write
from sopilot.records.log import (
    LogEntry,
    SealedHead,
    SealFile,
    check_proof,
    lines_of,
    read_seals,
    write_seals,
)
from sopilot.records.sealing import Sealing, seal_store
from sopilot.records.store import Store
from sopilot.stores.open import names_store, open_store
from sopilot.trace.signing import SignedHead, SigningKey, sign_head, signed_head_from_json


def post_seal(url: str, entries: Sequence[LogEntry], seal: SealedHead) -> None:
    import httpx2

    body = {"head": seal.as_json(), "entries": [entry.as_json() for entry in entries]}
    try:
        answer = httpx2.post(
            url,
            content=json.dumps(body, ensure_ascii=False).encode(),
            headers={"content-type": "application/json"},
            timeout=30.0,
        )
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise RunEnded(f"sealed, but {url} could not be reached: {problem}") from None
    if answer.status_code >= 300:
        raise RunEnded(f"sealed, but {url} refused it with status {answer.status_code}")


PUBLIC_KEY_BYTES = 32


def public_key(value: str) -> str:
    path = Path(value)
    text = whole_bytes(path).decode("ascii", "replace").strip() if path.is_file() else value
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != PUBLIC_KEY_BYTES:
        raise mistake(
            "no-key",
            f"`{value}` is not a public key",
            Place("--key"),
            f"{2 * PUBLIC_KEY_BYTES} hexadecimal digits, as `sopilot trace keygen` prints "
            "them, or the file FILE.pub that it writes",
        )
    return raw.hex()


def checked_proof(path: Path, keys: Sequence[str]) -> tuple[str, str]:
    """A statement of what the file proves, or else the problem with it."""
    try:
        return check_proof(json.loads(whole_text(path)), keys), ""
    except (TraceError, OSError, ValueError, RecursionError) as wrong:
        return "", str(wrong)


def sealed_text(path: Path) -> tuple[str, SealFile]:
    try:
        text = whole_text(path)
        return text, read_seals(text)
    except (TraceError, OSError, UnicodeDecodeError) as problem:
        raise mistake(
            "no-seals", f"the file contains no sealed heads: {problem}", Place(str(path))
        ) from None


def signed_heads(path: Path) -> list[SignedHead]:
    results = []
    for line in trace_text(path).split("\n"):
        if line.strip():
            try:
                results.append(signed_head_from_json(json.loads(line)))
            except (ValueError, RecursionError, TraceError) as problem:
                raise _unreadable(path, f"is not a signed head: {problem}") from None
    return results


def trace_text(path: Path, errors: str = "strict") -> str:
    try:
        # Line ends are part of what was written.
        return whole_bytes(path).decode("utf-8", errors)
    except (OSError, UnicodeDecodeError) as problem:
        raise _unreadable(path, f"cannot be read: {problem}") from None


def _unreadable(path: Path, message: str) -> UserMistake:
    return mistake("unreadable", message, Place(str(path)))


async def sign_session(store: Store, session_id: str, key: SigningKey) -> SignedHead:
    """Sign the present head of the session and store the signature with it."""
    signed = sign_head(key, (await store.record(session_id)).head, at=SystemClock().now())
    await store.add_signature(signed)
    return signed


_ADDRESSES = ("http://", "https://")
_JOURNAL = "heads"
_LINES_A_NOTE = 1_000


async def seal_and_send(
    store: Store, key: SigningKey, targets: Sequence[str], earlier_keys: Sequence[str] = ()
) -> Sealing:
    """Seal the store and send the head. Refuse if a target has other entries than the log, or if
    the store isn't what its head covers. A file target is JSON Lines; another store has a journal
    (`#NAME` behind the store names it)."""
    sent = {
        target: await _sent_before(target)
        for target in targets
        if not target.startswith(_ADDRESSES)
    }
    log = await store.records.log() if sent else []
    for target, (_, before) in sent.items():
        if list(before.lines) != lines_of(log[: len(before.lines)]):
            raise RunEnded(
                f"nothing was sealed: the entries of {target} differ from the log; "
                "`sopilot records verify` names them"
            )
    earlier = await store.records.seals()
    known = [head for _, before in sent.values() for head in before.heads[-1:]]
    sealing = await seal_store(
        store, key, at=SystemClock().now(), known=known, earlier_keys=earlier_keys
    )
    covered = earlier[-1].head.size if earlier else 0
    for target in targets:
        if target not in sent:
            post_seal(target, sealing.entries[covered:], sealing.seal)
            continue
        text, before = sent[target]
        added = write_seals(sealing.entries[len(before.lines) :], sealing.seal)
        if names_store(target):
            await _write_to_store(target, added)
        else:
            write_whole(Path(target), text + added)
    return sealing


async def read_sealed(value: str) -> SealFile:
    """Read the seals that were sent to a file or to another store."""
    if not names_store(value):
        return sealed_text(Path(value))[1]
    _, seals = await _sent_before(value)
    if not seals.heads:
        raise mistake("no-seals", "it contains no sealed heads", Place(value))
    return seals


class ExternalSeals:
    """Read what was sent to a file or another store. A file that hasn't changed is read once."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._stamp: tuple[int, int] | None = None
        self._seals = SealFile(())

    async def __call__(self) -> SealFile:
        if names_store(self._target):
            return await read_sealed(self._target)
        try:
            stat = Path(self._target).stat()
        except OSError as problem:
            raise RunEnded(f"{self._target} can't be read: {problem}") from None
        stamp = (stat.st_mtime_ns, stat.st_size)
        if stamp != self._stamp:
            self._seals = await read_sealed(self._target)
            self._stamp = stamp
        return self._seals


async def _sent_before(target: str) -> tuple[str, SealFile]:
    """What a file or another store has; empty if nothing was sent there yet."""
    if not names_store(target):
        return sealed_text(Path(target)) if Path(target).exists() else ("", SealFile(()))
    text = await _text_in_store(target)
    return text, read_seals(text) if text else SealFile(())


async def _text_in_store(target: str) -> str:
    spec, _, name = target.partition("#")
    store = open_store(spec, reading=True)
    try:
        result = await entries(store, name or _JOURNAL)
    finally:
        await store.close()
    noted = [item.details.get("lines") for item in result]
    lines = [line for some in noted if isinstance(some, list | tuple) for line in some]
    return "".join(f"{line}\n" for line in lines)


async def _write_to_store(target: str, text: str) -> None:
    """Write the lines as entries of a journal, which is in the log of that store."""
    spec, _, name = target.partition("#")
    lines, store = text.splitlines(), open_store(spec)
    try:
        for begin in range(0, len(lines), _LINES_A_NOTE):
            part = {"lines": lines[begin : begin + _LINES_A_NOTE]}
            await write(store, name or _JOURNAL, "sealed", part, clock=SystemClock())
    finally:
        await store.close()
