"""Contents under a key per session, in a folder apart from the store (extra ``sign``).

Payloads, the salt of their digests, options and queued decisions are encrypted before they get
into the store. A copy of the store has no contents without the keys, and none once a key is gone.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from errno import EACCES
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sopilot.files.text import whole_bytes
from sopilot.messages.errors import StoreCorrupt, StoreUnavailable, UserMistake
from sopilot.records.log import is_journal
from sopilot.records.store import (
    LOCKED,
    Append,
    Batch,
    Lease,
    NewSession,
    SessionRecord,
    Store,
    is_locked,
)
from sopilot.values.json import JSON, Fields, spell

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


KEY_BYTES = 32


class KeyFolder:
    """One file per key: processes need no lock, and a key is destroyed without touching others."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self, session_id: str) -> bytes:
        """Make a key durably, or return the one that another process has made."""
        file, key = self._file(session_id), secrets.token_bytes(KEY_BYTES)
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return self.key(session_id) or self._lost(session_id)
        except OSError as problem:
            raise self._unusable(problem) from problem
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(key)
                opened.flush()
                os.fsync(opened.fileno())
            _sync_folder(file.parent)
        except OSError as problem:
            raise self._unusable(problem) from problem
        return key

    def key(self, session_id: str) -> bytes | None:
        """The session's key; ``None`` if it was destroyed or never made."""
        try:
            key = whole_bytes(self._file(session_id))
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise self._unusable(problem) from problem
        return key if len(key) == KEY_BYTES else self._lost(session_id)

    def throw_away(self, session_id: str) -> None:
        """Destroy a key; overwrite it first, as far as the file system writes in place."""
        file = self._file(session_id)
        try:
            with open(file, "r+b") as opened:
                opened.write(bytes(KEY_BYTES))
                opened.flush()
                os.fsync(opened.fileno())
            file.unlink()
            _sync_folder(file.parent)
        except FileNotFoundError:
            return
        except OSError as problem:
            raise self._unusable(problem) from problem

    def require_deletion(self) -> None:
        """Raise ``StoreUnavailable`` unless this process may destroy keys."""
        for folder in (self.path, *self.path.glob("[0-9a-f][0-9a-f]")):
            if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
                raise self._unusable(PermissionError(EACCES, os.strerror(EACCES)))

    def _file(self, session_id: str) -> Path:
        # Ids may come from a caller: a name of a file is made of every one.
        name = session_id.encode("utf-8", "surrogatepass").hex()
        return self.path / name[-2:] / name

    def _lost(self, session_id: str) -> bytes:
        raise StoreCorrupt(
            f"the key of session {session_id} in {self.path} is damaged: restore it from a "
            "copy of that folder"
        )

    def _unusable(self, problem: OSError) -> StoreUnavailable:
        return StoreUnavailable(f"the keys in {self.path} cannot be used: {problem.strerror}")


def _sync_folder(path: Path) -> None:
    if os.name != "posix":
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


_ABOUT_CONTENTS = ("salt", "extra")
_NONCE_BYTES = 12


def encrypted(store: Store, keys: KeyFolder) -> Store:
    """The store, with contents under keys of ``keys``. Sessions from before stay as they are."""
    return cast(Store, _EncryptedStore(store, keys))


class _EncryptedStore:
    encrypts = True

    def __init__(self, store: Store, keys: KeyFolder) -> None:
        self.without_keys = store
        self._keys = keys
        self._ciphers: dict[str, AESGCM] = {}
        """Ciphers of sessions that are written through this object."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.without_keys, name)

    async def create(
        self, session: NewSession, *, owner: str, now: float, lease_seconds: float
    ) -> Lease:
        if not is_journal(session.id):
            cipher = self._ciphers[session.id] = _cipher(self._keys.make(session.id))
            first = session.first and _lock_batch(cipher, session.id, session.first)
            about = _lock_about(cipher, session.id, session.metadata)
            session = replace(session, metadata=about, first=first)
        return await self.without_keys.create(
            session, owner=owner, now=now, lease_seconds=lease_seconds
        )

    async def append(
        self, lease: Lease, batch: Batch, *, now: float, lease_seconds: float
    ) -> Lease:
        cipher = self._cipher_of(lease.session_id) if batch.payloads else None
        if cipher is not None:
            batch = _lock_batch(cipher, lease.session_id, batch)
        return await self.without_keys.append(lease, batch, now=now, lease_seconds=lease_seconds)

    async def release(self, lease: Lease) -> None:
        self._ciphers.pop(lease.session_id, None)
        await self.without_keys.release(lease)

    async def payloads(self, session_id: str) -> dict[str, JSON]:
        result = await self.without_keys.payloads(session_id)
        if self._cipher_of(session_id) is not None:
            return {ref: self._plain(session_id, value) for ref, value in result.items()}
        # A tool's own answer may look like ciphertext, in a session from before the keys.
        return {} if (await self.without_keys.record(session_id)).is_locked else result

    async def record(self, session_id: str) -> SessionRecord:
        return self._whole(await self.without_keys.record(session_id))

    async def sessions(self, *, limit: int | None = 100) -> list[SessionRecord]:
        return [self._whole(session) for session in await self.without_keys.sessions(limit=limit)]

    async def unresolved(self, *, now: float) -> list[SessionRecord]:
        results = []
        for whole in await self.without_keys.unresolved(now=now):
            with suppress(StoreCorrupt):  # what is open in it stands in no content
                whole = self._whole(whole)
            results.append(whole)
        return results

    async def queue_decision(
        self, session_id: str, decision: Mapping[str, JSON], *, at: float
    ) -> None:
        cipher = self._cipher_of(session_id)
        if cipher is not None:
            decision = _lock(cipher, session_id, dict(decision))
        await self.without_keys.queue_decision(session_id, decision, at=at)

    async def pending_decisions(self, session_id: str) -> list[tuple[int, JSON]]:
        pending = await self.without_keys.pending_decisions(session_id)
        return [(number, self._plain(session_id, decision)) for number, decision in pending]

    async def require_deletion(self) -> None:
        """Also destroy the keys of earlier deletions that are on record and broke off then."""
        await self.without_keys.require_deletion()
        self._keys.require_deletion()
        every = await self.without_keys.sessions(limit=None)
        self._throw_away(record.id for record in every if record.is_erased or record.is_pruned)

    async def erase(self, metadata: Mapping[str, Fields], recorded: Append | None = None) -> None:
        """Destroy the keys after the erasure is on record: a refused one must leave the keys."""
        await self.without_keys.erase(metadata, recorded)
        self._throw_away(metadata)

    async def prune(self, metadata: Mapping[str, Fields], recorded: Append | None = None) -> None:
        """Payloads go with the events, so the keys aren't needed any more."""
        await self.without_keys.prune(metadata, recorded)
        self._throw_away(metadata)

    def _throw_away(self, session_ids: Iterable[str]) -> None:
        for session_id in session_ids:
            self._ciphers.pop(session_id, None)
            self._keys.throw_away(session_id)

    def _cipher_of(self, session_id: str) -> AESGCM | None:
        cipher = self._ciphers.get(session_id)
        if cipher is None:
            key = self._keys.key(session_id)
            cipher = _cipher(key) if key is not None else None
        return cipher

    def _plain(self, session_id: str, value: JSON) -> JSON:
        if not is_locked(value):
            return value
        cipher = self._cipher_of(session_id)
        if cipher is None:
            raise StoreCorrupt(
                f"the key of session {session_id} is not in {self._keys.path}: it was erased, "
                "or SOPILOT_KEYS names another folder"
            )
        return _unlock(cipher, session_id, value)

    def _whole(self, record: SessionRecord) -> SessionRecord:
        """Decrypt the metadata. A session without its key counts as erased: a restored backup
        doesn't bring contents back."""
        if not record.is_locked:
            return record
        cipher = self._cipher_of(record.id)
        if cipher is None:
            return replace(record, metadata=record.metadata_when_erased(record.updated_at))
        rest = {name: item for name, item in record.metadata.items() if name != LOCKED}
        about: Any = _unlock(cipher, record.id, {LOCKED: record.metadata[LOCKED]})
        return replace(record, metadata={**rest, **about})


def _cipher(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise UserMistake(
            "encrypted contents need `cryptography`: pip install 'sopilot[sign]'"
        ) from None
    return AESGCM(key)


def _lock_about(cipher: AESGCM, session_id: str, metadata: Fields) -> dict[str, Any]:
    about = {name: metadata[name] for name in _ABOUT_CONTENTS if name in metadata}
    rest = {name: item for name, item in metadata.items() if name not in about}
    return {**rest, **_lock(cipher, session_id, about)}


def _lock_batch(cipher: AESGCM, session_id: str, batch: Batch) -> Batch:
    payloads = {ref: _lock(cipher, session_id, value) for ref, value in batch.payloads.items()}
    return batch._replace(payloads=payloads)


def _lock(cipher: AESGCM, session_id: str, value: JSON) -> dict[str, JSON]:
    nonce = os.urandom(_NONCE_BYTES)
    hidden = cipher.encrypt(
        nonce, spell(value).encode("utf-8", "surrogatepass"), _bound(session_id)
    )
    return {LOCKED: base64.b64encode(nonce + hidden).decode("ascii")}


def _unlock(cipher: AESGCM, session_id: str, value: JSON) -> JSON:
    from cryptography.exceptions import InvalidTag

    try:
        raw = base64.b64decode(str(cast(Mapping[str, JSON], value)[LOCKED]), validate=True)
        text = cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], _bound(session_id))
        plain: JSON = json.loads(text.decode("utf-8", "surrogatepass"))
    except (InvalidTag, binascii.Error, ValueError):
        raise StoreCorrupt(
            f"contents of session {session_id} can't be decrypted with its key: they were changed"
        ) from None
    return plain


def _bound(session_id: str) -> bytes:
    """Bind a ciphertext to its session: it can't be moved to another."""
    return session_id.encode("utf-8", "surrogatepass")
