"""The promises of a store, kept by each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from store_parts import LEASE, StoreFactory, Writer, opening

from sopilot.messages.errors import (
    Conflict,
    LeaseHeld,
    LeaseLost,
    SessionExists,
    StoreCorrupt,
    StoreUnavailable,
    UnknownSession,
)
from sopilot.records.store import Lease, Store
from sopilot.trace.chain import Head
from sopilot.trace.signing import SignedHead
from sopilot.values.json import JSON


@pytest.fixture
async def store(open_store: StoreFactory) -> Store:
    """With the session `s`, which `first` owns."""
    store = open_store()
    about: dict[str, JSON] = {"handbook": "h", "n": [1, 2.5]}
    new = opening("s", metadata=about, programs={"ab": "text: ä\n"})
    await Writer.begin(store, new, owner="first")
    return store


@pytest.fixture
async def writer(store: Store) -> Writer:
    """Has taken `s` over."""
    return await Writer.take(store, "s", "w")


def acquire(store: Store, owner: str, now: float = 100.0, name: str = "s") -> Awaitable[Lease]:
    return store.acquire(name, owner=owner, now=now, lease_seconds=10.0)


async def test_what_is_appended_is_there_in_order_for_another_handle(
    writer: Writer, open_store: StoreFactory
) -> None:
    notes: list[JSON] = [{"a": 1}, {"text": "nul \x00, line \u2028, smile 😀"}, {"f": 0.1}]
    secret = {"r1": {"secret": "\x00"}}
    first = await writer.append(*notes, payloads=secret, summary={"status": "running"}, now=101.0)
    assert writer.lease.expires_at == 111.0
    more: JSON = {"b": [None, True]}
    second = await writer.append(
        more, summary={"status": "completed"}, programs={"cd": "other"}, now=102.0
    )
    other = open_store()
    written = [*first.events, *second.events]
    assert await other.events("s") == written
    assert await other.payloads("s") == secret
    record = await other.record("s")
    assert record.head == second.head
    assert record.metadata == {"handbook": "h", "n": [1, 2.5]}
    assert record.summary == {"status": "completed"}
    assert (record.created_at, record.updated_at) == (100.0, 102.0)
    assert (record.owner, record.lease_expires_at) == ("w", 112.0)
    assert [await other.program(name) for name in ("ab", "cd")] == ["text: ä\n", "other"]


async def test_a_writer_with_an_old_token_is_refused(store: Store) -> None:
    old = await Writer.take(store, "s", "old")
    new = await Writer.take(store, "s", "new")
    assert new.lease.token > old.lease.token
    with pytest.raises(LeaseLost):
        await old.append({})
    with pytest.raises(LeaseLost):
        await store.renew(old.lease, **LEASE)
    await store.release(old.lease)
    assert await store.events("s") == []
    assert (await store.record("s")).owner == "new"
    await new.append({})
    assert len(await store.events("s")) == 1


async def test_a_released_lease_writes_nothing_more(store: Store, writer: Writer) -> None:
    await store.release(writer.lease)
    with pytest.raises(LeaseLost):
        await writer.append({})
    assert (await store.record("s")).owner == ""
    assert (await acquire(store, "next")).token > writer.lease.token


async def test_a_held_lease_is_taken_only_when_it_expired(store: Store) -> None:
    with pytest.raises(LeaseHeld) as held:
        await acquire(store, "b", 109.9)
    assert (held.value.owner, held.value.expires_at) == ("first", 110.0)
    taken = await acquire(store, "b", 110.0)
    renewed = await store.renew(taken, now=115.0, lease_seconds=10.0)
    assert renewed.expires_at == 125.0
    with pytest.raises(LeaseHeld):
        await acquire(store, "c", 124.0)


async def test_an_expired_lease_that_nobody_took_still_writes(writer: Writer) -> None:
    await writer.append({}, now=999.0, lease_seconds=1.0)
    assert writer.lease.expires_at == 1000.0


async def test_a_batch_on_another_head_is_a_conflict_and_writes_nothing(
    store: Store, writer: Writer
) -> None:
    fork = writer.batch({"n": 2}, payloads={"fork": 2}, summary={"status": "fork"})
    written = await writer.append({"n": 1}, payloads={"ref": 1})
    with pytest.raises(Conflict):
        await store.append(writer.lease, fork, **LEASE)
    assert await store.events("s") == list(written.events)
    assert await store.payloads("s") == {"ref": 1}
    assert (await store.record("s")).summary == {}


async def test_payloads_can_be_forgotten(
    store: Store, writer: Writer, request: pytest.FixtureRequest
) -> None:
    await writer.append({}, payloads={"a": 1, "b": 2})
    if "postgres-runtime" in request.node.name:
        with pytest.raises(StoreUnavailable, match="permission denied"):
            await store.erase_payloads("s", ["a"])
        return
    assert await store.erase_payloads("s", ["a", "a", "zz"]) == 1
    assert await store.payloads("s") == {"b": 2}


async def test_signatures_are_kept_in_order(store: Store) -> None:
    later = SignedHead(Head("s", 7, "h7"), 2.0, "key", "sig7")
    earlier = SignedHead(Head("s", 3, "h3"), 1.0, "key", "sig3")
    for signature in (later, earlier, earlier):
        await store.add_signature(signature)
    assert await store.signatures("s") == [earlier, later]


async def test_sessions_are_listed_newest_first(store: Store) -> None:
    for number in range(3):
        await Writer.begin(store, opening(f"t{number}"), now=200.0 + number)
    assert [one.id for one in await store.sessions()] == ["t2", "t1", "t0", "s"]
    assert [one.id for one in await store.sessions(limit=2)] == ["t2", "t1"]
    # As they came to the store: of two hosts, one has a clock that is behind.
    await Writer.begin(store, opening("late"), now=150.0)
    assert [one.id for one in await store.sessions(limit=1)] == ["late"]


SUMMARIES: dict[str, tuple[dict[str, JSON], bool]] = {
    "unknown": ({"status": "unknown", "open": []}, True),
    "open": ({"status": "running", "open": ["c1"]}, True),
    "held": ({"status": "waiting", "open": ["c1"]}, True),
    "between": ({"status": "running", "open": []}, False),
    "ended": ({"status": "completed", "open": []}, False),
    "new": ({}, False),
}


@pytest.mark.parametrize(("now", "gone"), [(211.0, True), (205.0, False)])
async def test_what_was_left_without_an_outcome_is_found(
    store: Store, now: float, gone: bool
) -> None:
    for name, (summary, _) in SUMMARIES.items():
        await Writer.begin(store, opening(name, "x", summary=summary), now=200.0)
    found = {one.id for one in await store.unresolved(now=now)}
    assert found == ({name for name in SUMMARIES if SUMMARIES[name][1]} if gone else {"unknown"})


async def test_unknown_and_repeated_names_are_typed_errors(store: Store) -> None:
    with pytest.raises(SessionExists):
        await Writer.begin(store, opening("s"))
    assert (await store.record("s")).metadata["handbook"] == "h"
    for action in (
        store.record("nope"),
        store.events("nope"),
        store.payloads("nope"),
        store.signatures("nope"),
        acquire(store, "o", name="nope"),
    ):
        with pytest.raises(UnknownSession):
            await action
    with pytest.raises(StoreCorrupt):
        await store.program("nope")


async def test_of_many_who_want_it_one_gets_it(
    store: Store, writer: Writer, open_store: StoreFactory
) -> None:
    await store.release(writer.lease)
    wanted = (acquire(open_store(), f"w{number}") for number in range(5))
    found = await asyncio.gather(*wanted, return_exceptions=True)
    assert sorted(type(one).__name__ for one in found) == ["Lease", *["LeaseHeld"] * 4]
