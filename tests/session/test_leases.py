"""A session has one owner at a time, who keeps it, lets it go and takes it back."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from counter_sessions import clock_of, opened, waiting_wire
from sopilot.messages.errors import LeaseHeld, LeaseLost, RunEnded
from sopilot.records.store import Settings
from sopilot.session.lease import when_free
from sopilot.session.opening import attach_session, resume_session
from sopilot.session.orphans import waiting_in
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Note


async def test_one_owner_at_a_time(store: MemoryStore) -> None:
    session = await opened(store)
    with pytest.raises(LeaseHeld):
        await resume_session(store, session.id, clock=session.clock)
    other = await resume_session(store, session.id, clock=session.clock, take_over=True)
    with pytest.raises(LeaseLost):
        await session.user_said("hello")
    assert (session.is_current, other.is_current) == (False, True)
    await other.user_said("hello")
    await other.release()
    assert not other.is_current
    for _ in range(2):  # a refused write stands in nobody's way
        with pytest.raises(RunEnded, match="was released"):
            await asyncio.wait_for(other.user_said("again"), 2)
    third = await resume_session(store, session.id, clock=session.clock)
    assert [one.event.kind for one in third.events][-1] == "user_said"
    await third.release()
    await asyncio.wait_for(other.reacquire(), 2)
    await other.user_said("again")


@pytest.mark.parametrize(("left", "over"), [(0.1, False), (0.0, True), (-0.1, True)])
async def test_a_lease_that_ends_now_is_over(left: float, over: bool, store: MemoryStore) -> None:
    session = await opened(store)
    clock = clock_of(session)
    record = await store.record(session.id)
    clock.advance(record.lease_expires_at - clock.now() - left)
    assert (await waiting_in(store, session.id, clock=clock)).running is not over
    with nullcontext() if over else pytest.raises(LeaseHeld):
        await attach_session(store, session.id, clock=clock)


@pytest.mark.parametrize(
    ("meanwhile", "read_again"),
    [
        ("", False),
        ("over", False),  # and nobody took it: it is renewed
        ("over taken", True),
        ("released", False),
        ("released taken", True),
    ],
)
async def test_a_session_is_read_again_where_somebody_else_had_it(
    meanwhile: str, read_again: bool, store: MemoryStore
) -> None:
    session = await waiting_wire(store)
    clock = clock_of(session)
    if "released" in meanwhile:
        await session.release()
    if "over" in meanwhile:
        clock.advance(session.settings.lease_seconds)
    if "taken" in meanwhile:
        async with await attach_session(store, session.id, clock=clock) as other:
            await other.decide("approve", "w", by="ann", role="supervisor")
    assert await session.refresh() is read_again
    assert session.is_current
    assert session.ledger.held["w"].approvals == int(read_again)
    assert (await store.record(session.id)).lease_expires_at > clock.now()
    await session.decide("approve", "w", by="bo", role="auditor")


async def test_a_write_that_was_cut_off_is_read_again_while_the_lease_still_runs(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await opened(store)
    assert await session.refresh() is False
    append = store.append

    async def written_and_cut_off(*args: Any, **options: Any) -> Any:
        await append(*args, **options)
        raise ConnectionError("reset")

    with monkeypatch.context() as patch:
        patch.setattr(store, "append", written_and_cut_off)
        with pytest.raises(ConnectionError):
            await session.operate(Note("seen", {}))
    before = len(session.events)
    assert session.is_current is False
    assert await session.refresh() is True
    assert session.is_current is True
    assert len(session.events) == before + 1
    assert await session.refresh() is False


@pytest.mark.parametrize(
    ("problem", "again", "raised"),
    [
        (None, True, False),
        (RunEnded("away"), True, False),
        (LeaseLost("s"), False, False),
        (ValueError("odd"), False, True),
    ],
)
async def test_a_lease_is_kept_alive(
    problem: Exception | None,
    again: bool,
    raised: bool,
    store: MemoryStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await opened(store, settings=Settings(lease_seconds=0.03))
    renewed, renew = [], store.renew

    async def counted(*args: Any, **options: Any) -> Any:
        renewed.append(1)
        if problem is not None:
            raise problem
        return await renew(*args, **options)

    monkeypatch.setattr(store, "renew", counted)
    with pytest.raises(ValueError, match="odd") if raised else nullcontext():
        async with session.keep_alive():
            for _ in range(200):  # ten seconds on a busy machine
                await asyncio.sleep(0.05)
                if len(renewed) > again:
                    break
            await asyncio.sleep(0.05)
    assert (len(renewed) > 1) is again
    before = len(renewed)
    await asyncio.sleep(0.05)
    assert len(renewed) == before


@pytest.mark.parametrize("inside", [None, ValueError("odd")])
async def test_of_two_problems_the_first_is_reported(
    inside: Exception | None, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease that a store doesn't take back runs out by itself."""

    async def away(*_: Any) -> None:
        raise RunEnded("away")

    session = await opened(store)
    monkeypatch.setattr(store, "release", away)

    async def leave() -> None:
        async with session:
            if inside is not None:
                raise inside

    with pytest.raises(RunEnded if inside is None else ValueError):
        await leave()
    assert not session.is_current


async def test_an_interrupt_while_the_lease_is_let_go_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await opened(settings=Settings(lease_seconds=0.03))
    leaving = asyncio.Event()

    async def renew() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            leaving.set()
            await asyncio.sleep(0.2)  # a renewal takes a moment to end
            raise

    monkeypatch.setattr(session, "renew", renew)

    async def work() -> None:
        async with session.keep_alive():
            await asyncio.sleep(0.05)

    task = asyncio.create_task(work())
    await leaving.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(("patience", "taken"), [(30.0, True), (0.5, False), (0.0, False)])
async def test_a_session_is_waited_for_until_its_lease_runs_out_or_patience_ends(
    patience: float, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried less and less often, and taken as soon as the lease is over."""
    loop, attempts, naps = asyncio.get_running_loop(), [], []
    begun = loop.time()
    monkeypatch.setattr(loop, "time", lambda: begun + sum(naps))

    async def sleep(seconds: float) -> None:
        naps.append(seconds)

    async def attempt() -> float:
        attempts.append(1)
        if sum(naps) < 3.0:
            raise LeaseHeld("s", "other", 3.0, sum(naps))
        return sum(naps)

    monkeypatch.setattr("sopilot.session.lease.asyncio.sleep", sleep)
    monkeypatch.setattr("sopilot.session.lease.random.uniform", lambda *_: 1.0)
    if taken:
        assert 3.0 <= await when_free(attempt, patience_seconds=patience) <= 3.1
        assert len(attempts) <= 12
    else:
        with pytest.raises(LeaseHeld):
            await when_free(attempt, patience_seconds=patience)
        assert sum(naps) == pytest.approx(patience)
        assert len(attempts) <= 6
