"""The promises of a store, kept by each of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from store_parts import LEASE, StoreFactory, events, start_of

from sopilot.messages.errors import (
    Conflict,
    LeaseHeld,
    LeaseLost,
    SessionExists,
    StoreCorrupt,
    StoreUnavailable,
    UnknownSession,
)
from sopilot.records.store import Batch, NewSession, Store
from sopilot.trace.chain import Head
from sopilot.trace.signing import SignedHead
from sopilot.values.json import JSON


@pytest.fixture
async def store(open_store: StoreFactory) -> AsyncIterator[Store]:
    """With the session `s`, which `first` owns."""
    store = open_store()
    session = NewSession("s", {"handbook": "h", "n": [1, 2.5]}, {"ab": "text: ä\n"})
    await store.create(session, owner="first", **LEASE)
    yield store
    await store.close()


async def test_what_is_appended_is_there_in_order_for_another_handle(
    store: Store, open_store: StoreFactory
) -> None:
    lease = await store.acquire("s", owner="w", take_over=True, **LEASE)
    head = start_of("s")
    first = events(head, {"a": 1}, {"text": "nul \x00, line \u2028, smile 😀"}, {"f": 0.1})
    batch = Batch(head, first, {"r1": {"secret": "\x00"}}, {"status": "running"})
    lease = await store.append(lease, batch, now=101.0, lease_seconds=10.0)
    assert lease.expires_at == 111.0
    second = events(batch.head, {"b": [None, True]})
    later = Batch(batch.head, second, {}, {"status": "completed"}, {"cd": "other"})
    await store.append(lease, later, now=102.0, lease_seconds=10.0)
    other = open_store()
    assert await other.events("s") == first + second
    assert await other.events("s", after=1) == (first + second)[2:]
    assert await other.payloads("s") == {"r1": {"secret": "\x00"}}
    record = await other.record("s")
    assert record.head == later.head
    assert record.metadata == {"handbook": "h", "n": [1, 2.5]}
    assert record.summary == {"status": "completed"}
    assert (record.created_at, record.updated_at) == (100.0, 102.0)
    assert (record.owner, record.lease_expires_at) == ("w", 112.0)
    assert await other.program("ab") == "text: ä\n"
    assert await other.program("cd") == "other"
    if other is not store:
        await other.close()


async def test_a_writer_with_an_old_token_is_refused(store: Store) -> None:
    old = await store.acquire("s", owner="old", take_over=True, **LEASE)
    new = await store.acquire("s", owner="new", take_over=True, **LEASE)
    assert new.token > old.token
    head = start_of("s")
    batch = Batch(head, events(head, {}))
    with pytest.raises(LeaseLost):
        await store.append(old, batch, **LEASE)
    with pytest.raises(LeaseLost):
        await store.renew(old, **LEASE)
    await store.release(old)
    assert await store.events("s") == []
    assert (await store.record("s")).owner == "new"
    await store.append(new, batch, **LEASE)
    assert len(await store.events("s")) == 1


async def test_a_released_lease_writes_nothing_more(store: Store) -> None:
    lease = await store.acquire("s", owner="w", take_over=True, **LEASE)
    await store.release(lease)
    head = start_of("s")
    with pytest.raises(LeaseLost):
        await store.append(lease, Batch(head, events(head, {})), **LEASE)
    assert (await store.record("s")).owner == ""
    assert (
        await store.acquire("s", owner="next", now=100.0, lease_seconds=10.0)
    ).token > lease.token


async def test_a_held_lease_is_taken_only_when_it_expired(store: Store) -> None:
    with pytest.raises(LeaseHeld) as held:
        await store.acquire("s", owner="b", now=109.9, lease_seconds=10.0)
    assert (held.value.owner, held.value.expires_at) == ("first", 110.0)
    taken = await store.acquire("s", owner="b", now=110.0, lease_seconds=10.0)
    renewed = await store.renew(taken, now=115.0, lease_seconds=10.0)
    assert renewed.expires_at == 125.0
    with pytest.raises(LeaseHeld):
        await store.acquire("s", owner="c", now=124.0, lease_seconds=10.0)


async def test_an_expired_lease_that_nobody_took_still_writes(store: Store) -> None:
    lease = await store.acquire("s", owner="w", take_over=True, **LEASE)
    head = start_of("s")
    batch = Batch(head, events(head, {}))
    assert (await store.append(lease, batch, now=999.0, lease_seconds=1.0)).expires_at == 1000.0


async def test_a_batch_on_another_head_is_a_conflict_and_writes_nothing(store: Store) -> None:
    lease = await store.acquire("s", owner="w", take_over=True, **LEASE)
    head = start_of("s")
    batch = Batch(head, events(head, {"n": 1}), {"ref": 1})
    await store.append(lease, batch, **LEASE)
    fork = Batch(head, events(head, {"n": 2}), {"fork": 2}, {"status": "fork"})
    with pytest.raises(Conflict):
        await store.append(lease, fork, **LEASE)
    assert await store.events("s") == list(batch.events)
    assert await store.payloads("s") == {"ref": 1}
    assert (await store.record("s")).summary == {}


async def test_payloads_can_be_forgotten(store: Store, request: pytest.FixtureRequest) -> None:
    by_runtime_role = "postgres-runtime" in request.node.name

    lease = await store.acquire("s", owner="w", take_over=True, **LEASE)
    head = start_of("s")
    await store.append(lease, Batch(head, events(head, {}), {"a": 1, "b": 2}), **LEASE)
    if by_runtime_role:
        with pytest.raises(StoreUnavailable, match="permission denied"):
            await store.erase_payloads("s", ["a"])
        return
    assert await store.erase_payloads("s", ["a", "a", "zz"]) == 1
    assert await store.payloads("s") == {"b": 2}


async def test_signatures_are_kept_in_order(store: Store) -> None:
    later = SignedHead(Head("s", 7, "h7"), 2.0, "key", "sig7")
    earlier = SignedHead(Head("s", 3, "h3"), 1.0, "key", "sig3")
    await store.add_signature(later)
    await store.add_signature(earlier)
    await store.add_signature(earlier)
    assert await store.signatures("s") == [earlier, later]


async def test_sessions_are_listed_newest_first(store: Store) -> None:
    for number in range(3):
        new = NewSession(f"t{number}", {}, {})
        await store.create(new, owner="o", now=200.0 + number, lease_seconds=1.0)
    assert [one.id for one in await store.sessions()] == ["t2", "t1", "t0", "s"]
    assert [one.id for one in await store.sessions(limit=2)] == ["t2", "t1"]
    # As they came to the store: of two hosts, one has a clock that is behind.
    await store.create(NewSession("late", {}, {}), owner="o", now=150.0, lease_seconds=1.0)
    assert [one.id for one in await store.sessions(limit=1)] == ["late"]


SUMMARIES: dict[str, tuple[dict[str, JSON], bool]] = {
    "unknown": ({"status": "unknown", "open": []}, True),
    "open": ({"status": "running", "open": ["c1"]}, True),
    "held": ({"status": "waiting", "open": ["c1"]}, True),
    "between": ({"status": "running", "open": []}, False),
    "ended": ({"status": "completed", "open": []}, False),
    "new": ({}, False),
}


@pytest.mark.parametrize("gone", [True, False])
async def test_what_was_left_without_an_outcome_is_found(store: Store, gone: bool) -> None:
    for number, (summary, _) in enumerate(SUMMARIES.values()):
        head = start_of(f"t{number}")
        batch = Batch(head, events(head, "x"), {}, summary)
        new = NewSession(f"t{number}", {}, {}, batch)
        await store.create(new, owner="o", now=200.0, lease_seconds=10.0)
    found = {one.id for one in await store.unresolved(now=211.0 if gone else 205.0)}
    wanted = [name for name, (_, left) in SUMMARIES.items() if left]
    names = dict(zip(SUMMARIES, (f"t{n}" for n in range(len(SUMMARIES))), strict=True))
    assert found == {names[name] for name in (wanted if gone else ["unknown"])}


async def test_unknown_and_repeated_names_are_typed_errors(store: Store) -> None:
    with pytest.raises(SessionExists):
        await store.create(NewSession("s", {}, {}), owner="o", **LEASE)
    assert (await store.record("s")).metadata["handbook"] == "h"
    for action in (
        store.record("nope"),
        store.events("nope"),
        store.payloads("nope"),
        store.signatures("nope"),
        store.acquire("nope", owner="o", now=100.0, lease_seconds=10.0),
    ):
        with pytest.raises(UnknownSession):
            await action
    with pytest.raises(StoreCorrupt):
        await store.program("nope")


async def test_of_many_who_want_it_one_gets_it(store: Store, open_store: StoreFactory) -> None:
    await store.release(await store.acquire("s", owner="x", take_over=True, **LEASE))
    handles = [open_store() for _ in range(5)]

    async def attempt(handle: Store, name: str) -> bool:
        try:
            await handle.acquire("s", owner=name, now=100.0, lease_seconds=10.0)
        except LeaseHeld:
            return False
        return True

    won = await asyncio.gather(
        *(attempt(handle, f"w{number}") for number, handle in enumerate(handles))
    )
    assert sum(won) == 1
    for handle in handles:
        if handle is not store:
            await handle.close()
