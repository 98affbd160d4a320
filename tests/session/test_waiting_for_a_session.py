"""Whoever needs a session that another has: waits until it is free, and asks ever less often."""

from __future__ import annotations

import time

import pytest

from sopilot.messages.errors import LeaseHeld
from sopilot.records.store import NewSession
from sopilot.session.lease import when_free
from sopilot.stores.memory import MemoryStore


async def test_it_is_taken_as_soon_as_the_lease_runs_out_and_not_asked_for_all_the_time() -> None:
    store, asked = MemoryStore(), 0
    seconds = 0.6
    await store.create(
        NewSession("s", {}, {}), owner="gone", now=time.time(), lease_seconds=seconds
    )

    async def attempt() -> float:
        nonlocal asked
        asked += 1
        await store.acquire("s", owner="next", now=time.time(), lease_seconds=9.0)
        return time.monotonic()

    begun = time.monotonic()
    taken = await when_free(attempt, patience_seconds=30.0)
    # Late by one pause at most, whatever else this machine does.
    assert seconds - 0.05 <= taken - begun
    assert asked <= 9
    with pytest.raises(LeaseHeld) as held:
        await when_free(attempt, patience_seconds=0.0)
    assert 0 < held.value.seconds_left <= 9.0
