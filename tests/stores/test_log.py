"""The log of sessions: nothing that a sealed head covers is left out unnoticed."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from store_parts import StoreFactory

from counter_desk import CountingTools, HandClock, walk, wander
from counter_sessions import opened
from sopilot.messages.errors import TraceError
from sopilot.records.completeness import compare
from sopilot.records.loading import Traces
from sopilot.records.log import SealFile, check_proof, prove, read_seals, write_seals
from sopilot.records.merkle_tree import (
    consistency_proof,
    inclusion_proof,
    leaf_hashes,
    proves_consistency,
    proves_inclusion,
    root_hash,
)
from sopilot.records.sealing import seal_store, verify_store, view
from sopilot.records.store import Store
from sopilot.session.opening import resume_session
from sopilot.trace.signing import generate_key

KEY = generate_key()


def by_definition(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    left, right = by_definition(leaves[:k]), by_definition(leaves[k:])
    return hashlib.sha256(b"\x01" + left + right).digest()


def test_the_published_trees() -> None:
    """The leaves and roots that the reference implementation of the RFC is tested with."""
    data = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657"]
    leaves = leaf_hashes(map(bytes.fromhex, data))
    assert root_hash([]).hex().startswith("e3b0c44298fc1c14")
    assert leaves[0].hex().startswith("6e340b9cffb37a98")
    assert root_hash(leaves[:2]).hex().startswith("fac54203e7cc696c")


def test_proofs_of_every_small_tree_hold_and_no_other() -> None:
    leaves = leaf_hashes(bytes([n]) for n in range(20))
    for size in range(1, 20):
        root = root_hash(leaves[:size])
        assert root == by_definition(leaves[:size])
        for index in range(size):
            path = inclusion_proof(leaves[:size], index)
            assert proves_inclusion(leaves[index], index, size, path, root)
            assert not proves_inclusion(leaves[index + 1], index, size, path, root)
            assert not proves_inclusion(leaves[index], index + 1, size, path, root)
            assert not proves_inclusion(leaves[index], index, size, [*path, root], root)
        for old in range(size + 1):
            path = consistency_proof(leaves[:size], old)
            old_root = root_hash(leaves[:old])
            assert proves_consistency(old, old_root, size, root, path)
            assert not proves_consistency(old, leaves[19], size, root, path)
            assert old == 0 or not proves_consistency(old, old_root, size, leaves[19], path)


async def some_sessions(store: Store, count: int = 3, seed: int = 0) -> list[str]:
    ids = []
    for number in range(count):
        session = await opened(store)
        await wander(session, random.Random(seed + number), 15)
        await session.release()
        ids.append(session.id)
    return ids


async def test_a_session_that_goes_on_while_it_is_verified_is_no_gap(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await some_sessions(store)
    sealing = await seal_store(store, KEY, at=5.0)
    seals = read_seals(write_seals(sealing.entries, sealing.seal))
    before = await store.records.digests()
    own = Traces.loaded
    waiting = [ids[1]]

    async def loaded(self: Traces, session_id: str) -> Any:
        """Between the register and the trace somebody takes a few steps."""
        if waiting:
            session = await resume_session(
                store, waiting.pop(), tools=CountingTools(), clock=HandClock()
            )
            await wander(session, random.Random(9), 15)
            await session.release()
        return await own(self, session_id)

    monkeypatch.setattr(Traces, "loaded", loaded)
    found = await verify_store(store, seals, [sealing.seal.key])
    assert (await store.records.digests())[ids[1]] != before.get(ids[1])
    assert found.complete
    waiting.append(ids[1])
    await seal_store(store, KEY, at=6.0)


async def test_a_store_that_is_whole_is_complete_and_may_go_on(store: Store) -> None:
    ids = await some_sessions(store)
    sealing = await seal_store(store, KEY, at=5.0)
    seals = read_seals(write_seals(sealing.entries, sealing.seal))
    assert (seals.heads, seals.entries()) == ((sealing.seal,), sealing.entries)
    session = await resume_session(store, ids[1], tools=CountingTools(), clock=HandClock())
    await walk(session, "transfer")
    await session.release()
    await some_sessions(store, 1, seed=9)
    for events in (True, False):
        found = await verify_store(store, seals, [KEY.public], events=events)
        assert (found.gaps, found.sessions, len(found.moved)) == ([], 3, 1)
        assert (found.later, len(found.unsealed)) == (1, 1)
        assert found.events_read == (3 if events else 1)
    alone = SealFile((sealing.seal,))
    assert (await verify_store(store, alone, [KEY.public])).complete
    foreign = await verify_store(store, seals, [generate_key().public])
    assert [gap.code for gap in foreign.gaps] == ["foreign-key"]
    later = await seal_store(store, KEY, at=7.0)
    proof = prove(later.entries, later.seal, since=sealing.seal)
    assert check_proof(proof, [KEY.public]).startswith("proven: the log of 9")
    inclusion = prove(later.entries, later.seal, session_id=ids[1])
    assert ids[1] in check_proof(inclusion, [KEY.public])
    moved = {**inclusion["entry"], "seq": 1}  # type: ignore[dict-item]
    with pytest.raises(TraceError, match="not in the log"):
        check_proof({**inclusion, "entry": moved}, [KEY.public])


async def test_two_who_create_at_once_leave_no_gap(open_store: StoreFactory) -> None:
    stores = [open_store() for _ in range(3)]
    await asyncio.gather(*(some_sessions(store, 4) for store in stores))
    log = await stores[0].records.log()
    assert [one.number for one in log] == list(range(12))
    await seal_store(stores[0], KEY, at=5.0)


async def test_what_others_write_while_a_store_is_read_is_no_gap(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two readings a session goes on, and another one begins."""

    clock = HandClock()
    session_id = (await some_sessions(store, 1))[0]
    seals = SealFile(((await seal_store(store, KEY, at=9.0)).seal,))
    records = store.records

    async def meanwhile() -> None:
        going = await resume_session(store, session_id, tools=CountingTools(), clock=clock)
        await walk(going, "transfer")
        await going.release()
        await some_sessions(store, 1, seed=7)

    def then_write(read: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[object]]:
        async def both() -> object:
            found = await read()
            await meanwhile()
            return found

        return both

    for name in ("log", "heads", "digests"):
        monkeypatch.setattr(records, name, then_write(getattr(records, name)))
    gaps = compare(seals, await view(store)).gaps
    assert [gap.message for gap in gaps] == []
