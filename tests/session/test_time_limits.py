"""The moment at which something is over: leases, requests, periods, versions."""

from __future__ import annotations

from typing import Any

import pytest

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, walk
from sopilot.machine.approvals import HeldState
from sopilot.messages.errors import LeaseHeld, UserMistake
from sopilot.records.pruning import prune
from sopilot.records.reminders import due_calls
from sopilot.records.versions import release
from sopilot.session.opening import attach_session, open_session
from sopilot.session.orphans import waiting_in
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore

WIRE = ERRANDS["wire"]
HOUR = 3600.0
DAY = 86_400.0


async def waiting(store: MemoryStore) -> tuple[Session, HandClock]:
    """A session in which a wire waits for an hour."""
    clock = HandClock()
    session = await open_session(store, COUNTER, tools=CountingTools(), clock=clock)
    await walk(session, "wire", stop_at_action="wire")
    await session.call_tool("wire", WIRE, "w")
    return session, clock


@pytest.mark.parametrize(("seconds", "counts"), [(HOUR - 1, True), (HOUR, True), (HOUR + 1, False)])
async def test_a_request_lasts_as_long_as_the_handbook_says(seconds: float, counts: bool) -> None:
    store = MemoryStore()
    session, clock = await waiting(store)
    clock.advance(seconds)
    shown = await waiting_in(store, session.id, clock=clock)
    assert [one.call_id for one in shown.held] == (["w"] if counts else [])
    if counts:
        await session.decide("approve", "w", by="ann", role="supervisor")
    else:
        with pytest.raises(UserMistake, match="is expired already"):
            await session.decide("approve", "w", by="ann", role="supervisor")
        assert session.ledger.held["w"].state is HeldState.EXPIRED


@pytest.mark.parametrize(("left", "over"), [(0.1, False), (0.0, True), (-0.1, True)])
async def test_a_lease_that_ends_now_is_over(left: float, over: bool) -> None:
    store = MemoryStore()
    session, clock = await waiting(store)
    record = await store.record(session.id)
    clock.advance(record.lease_expires_at - clock.now() - left)
    shown = await waiting_in(store, session.id, clock=clock)
    assert shown.running is not over
    asked = {"owner": "another", "now": clock.now(), "lease_seconds": 5.0}
    if over:
        await store.acquire(session.id, **asked)
    else:
        with pytest.raises(LeaseHeld):
            await store.acquire(session.id, **asked)


@pytest.mark.parametrize(
    ("minutes", "later", "due"),
    [(None, 0.0, True), (60, 0.0, True), (59, 0.0, False), (59, 60.0, True), (0, HOUR, True)],
)
async def test_who_asks_what_expires_within_so_many_minutes(
    minutes: float | None, later: float, due: bool
) -> None:
    store = MemoryStore()
    session, clock = await waiting(store)
    clock.advance(later)
    found = await due_calls(store, minutes, clock=clock)
    assert [(one.session_id, one.call_id) for one in found] == [(session.id, "w")] * due
    if due:
        assert (found[0].approvals, found[0].needed, found[0].escalated) == (0, 2, {})
        assert (await due_calls(store, minutes, once=True, clock=clock)) == found
        assert (await due_calls(store, minutes, once=True, clock=clock)) == []
        assert (await due_calls(store, minutes, clock=clock)) == found


@pytest.mark.parametrize(("later", "gone"), [(2 * DAY - 1, False), (2 * DAY, True)])
@pytest.mark.parametrize("dry", [True, False])
async def test_what_ended_so_many_days_ago_is_pruned(later: float, gone: bool, dry: bool) -> None:
    store, clock = MemoryStore(), HandClock()
    ended = await open_session(store, COUNTER, tools=CountingTools(), clock=clock)
    await walk(ended, "transfer")
    await ended.release()
    asked, _ = await waiting(store)
    await asked.release()
    clock.advance(later)
    found = await prune(store, days=2, clock=clock, dry=dry)
    assert found.pruned == ((ended.id,) if gone else ())
    assert (await store.record(ended.id)).is_pruned is (gone and not dry)
    assert found.events == (len(ended.events) if gone else 0)
    again = await prune(store, days=2, clock=clock)
    assert again.pruned == ((ended.id,) if gone and dry else ())


async def test_what_somebody_has_is_not_pruned() -> None:
    store, clock = MemoryStore(), HandClock()
    session = await open_session(store, COUNTER, tools=CountingTools(), clock=clock)
    await walk(session, "transfer")
    found = await prune(store, days=0, clock=clock)
    assert (found.pruned, found.running, found.events) == ((), (session.id,), 0)
    with pytest.raises(UserMistake, match="is no state of an ended session"):
        await prune(store, days=0, states=["running"], clock=clock)


@pytest.mark.parametrize(("begin", "end", "fits"), [(5, 6, True), (5, 5, False), (5, None, True)])
async def test_a_version_ends_after_it_begins(begin: float, end: float | None, fits: bool) -> None:
    store = MemoryStore()
    given: dict[str, Any] = {"text": "", "programs": {}, "coverage": None, "who": None}
    asked = release(store, "bank", begin=begin, end=end, clock=HandClock(), by="ann", **given)
    if fits:
        assert (await asked).number == 1
    else:
        with pytest.raises(UserMistake, match="end before it begins"):
            await asked


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
    meanwhile: str, read_again: bool
) -> None:
    store = MemoryStore()
    session, clock = await waiting(store)
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
