"""Contents under a key of each session's own; the keys stand elsewhere (extra ``sign``).

What a store keeps beside the chains is encrypted before it gets there: payloads, the salt of
their digests, options, decisions that were left. A copy of the store, a back-up above all, has
no contents without the keys, and none again once a key was thrown away.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from sopilot.adapters.key_folder import KeyFolder
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.session import (
    LOCKED,
    Batch,
    Lease,
    NewSession,
    SessionRecord,
    Store,
    StoreCorrupt,
    is_locked,
)
from sopilot.runtime.session.journal import is_journal
from sopilot.runtime.vm import JSON
from sopilot.runtime.vm.values import Fields, spell

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_ABOUT_CONTENTS = ("salt", "extra")
_NONCE_BYTES = 12


def encrypted(store: Store, keys: KeyFolder) -> Store:
    """The store, with contents under keys of ``keys``. Sessions from before stay as they are."""
    return cast(Store, _EncryptedStore(store, keys))


class _EncryptedStore:
    encrypts = True

    def __init__(self, store: Store, keys: KeyFolder) -> None:
        self._store = store
        self._keys = keys
        self._ciphers: dict[str, AESGCM] = {}
        """Of sessions that are being written here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._store, name)

    async def create(
        self, session: NewSession, *, owner: str, now: float, lease_seconds: float
    ) -> Lease:
        if not is_journal(session.id):
            cipher = self._ciphers[session.id] = _cipher(self._keys.make(session.id))
            first = session.first and _lock_batch(cipher, session.id, session.first)
            about = _lock_about(cipher, session.id, session.metadata)
            session = replace(session, metadata=about, first=first)
        return await self._store.create(session, owner=owner, now=now, lease_seconds=lease_seconds)

    async def append(
        self, lease: Lease, batch: Batch, *, now: float, lease_seconds: float
    ) -> Lease:
        cipher = self._cipher_of(lease.session_id) if batch.payloads else None
        if cipher is not None:
            batch = _lock_batch(cipher, lease.session_id, batch)
        return await self._store.append(lease, batch, now=now, lease_seconds=lease_seconds)

    async def release(self, lease: Lease) -> None:
        self._ciphers.pop(lease.session_id, None)
        await self._store.release(lease)

    async def payloads(self, session_id: str) -> dict[str, JSON]:
        found = await self._store.payloads(session_id)
        return {
            ref: self._plain(session_id, value)
            for ref, value in found.items()
            if not is_locked(value) or self._cipher_of(session_id) is not None
        }

    async def record(self, session_id: str) -> SessionRecord:
        return self._whole(await self._store.record(session_id))

    async def sessions(self, *, limit: int = 100) -> list[SessionRecord]:
        return [self._whole(one) for one in await self._store.sessions(limit=limit)]

    async def unsettled(self, *, now: float) -> list[SessionRecord]:
        found = []
        for one in await self._store.unsettled(now=now):
            with suppress(StoreCorrupt):  # what is open in it stands in no content
                one = self._whole(one)
            found.append(one)
        return found

    async def leave(self, session_id: str, decision: Mapping[str, JSON], *, at: float) -> None:
        cipher = self._cipher_of(session_id)
        left = decision if cipher is None else _lock(cipher, session_id, dict(decision))
        await self._store.leave(session_id, left, at=at)

    async def left(self, session_id: str) -> list[tuple[int, JSON]]:
        found = await self._store.left(session_id)
        return [(number, self._plain(session_id, decision)) for number, decision in found]

    async def shred(self, metadata: Mapping[str, Fields]) -> None:
        """The keys first: whatever happens then, nobody reads the contents again."""
        for session_id in metadata:
            self._ciphers.pop(session_id, None)
            self._keys.throw_away(session_id)
        await self._store.shred(metadata)

    async def prune(self, metadata: Mapping[str, Fields]) -> None:
        """What goes with the events needs no key any more."""
        await self._store.prune(metadata)
        for session_id in metadata:
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
                f"the key of session {session_id} is not in {self._keys.path}: it was thrown away, "
                "or SOPILOT_KEYS names another folder"
            )
        return _unlock(cipher, session_id, value)

    def _whole(self, record: SessionRecord) -> SessionRecord:
        """With what only its key tells; without that key it is one that was erased, as after a
        back-up from before was brought back."""
        if not record.is_locked:
            return record
        cipher = self._cipher_of(record.id)
        if cipher is None:
            return replace(record, metadata=record.metadata_when_erased(record.updated_at))
        rest = {name: one for name, one in record.metadata.items() if name != LOCKED}
        about: Any = _unlock(cipher, record.id, {LOCKED: record.metadata[LOCKED]})
        return replace(record, metadata={**rest, **about})


def _cipher(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise UserMistake(
            "contents under keys need `cryptography`: pip install 'sopilot[sign]'"
        ) from None
    return AESGCM(key)


def _lock_about(cipher: AESGCM, session_id: str, metadata: Fields) -> dict[str, Any]:
    about = {name: metadata[name] for name in _ABOUT_CONTENTS if name in metadata}
    rest = {name: one for name, one in metadata.items() if name not in about}
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
            f"contents of session {session_id} are not what its key has encrypted"
        ) from None
    return plain


def _bound(session_id: str) -> bytes:
    """What is encrypted for one session is nothing in another."""
    return session_id.encode("utf-8", "surrogatepass")
