"""What sessions come to once in a thousand lives, while people decide and others wait."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from desk_by_hand import HELD, PROGRAMS, SET, opened, run

from counter_desk import ERRANDS, CountingTools, HandClock, go_on, walk
from sopilot.handbook.expressions import judge
from sopilot.machine.approvals import HeldState
from sopilot.machine.evidence import may_unprove
from sopilot.machine.machine import Machine
from sopilot.machine.proof.guard import _other_act
from sopilot.machine.proof.licence import Licence
from sopilot.messages.errors import LeaseHeld, LeaseLost, RunEnded, UserMistake
from sopilot.program.model import Act, Guarded, Literal, Local
from sopilot.protocols import ToolResult
from sopilot.records.store import Settings
from sopilot.session.admission import _amended_request, _same_values, under_way
from sopilot.session.lease import _Beating, when_free
from sopilot.session.opening import resume_session
from sopilot.session.outcomes import read_failure
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Event
from sopilot.values.json import JSON

# --- people's word --------------------------------------------------------------------

PROVEN = Licence()
POOR = Licence("`rich` is false", facts=({"leaf": "rich", "truth": False},))


@pytest.mark.parametrize(
    ("changed", "guarded", "licence", "serves"),
    [
        ({}, {}, PROVEN, True),
        ({}, {"roles": ("chief",)}, PROVEN, False),
        ({}, {"needed": 2}, PROVEN, False),
        ({"needed": 2}, {"needed": 2}, PROVEN, True),
        ({}, {"needed": 0, "roles": ("chief",)}, PROVEN, True),
        ({"roles": ("operator",)}, {"needed": 1, "roles": ()}, PROVEN, True),
        ({"roles": ("clerk",)}, {"needed": 1, "roles": ()}, PROVEN, False),
        ({}, {}, POOR, False),
        ({"facts": POOR.facts}, {}, POOR, True),
        ({"facts": ({"leaf": "rich", "truth": None},)}, {}, POOR, False),
        ({"facts": None}, {}, POOR, False),
        ({"state": HeldState.EXPIRED}, {}, PROVEN, False),
        ({"state": HeldState.USED}, {}, PROVEN, False),
        ({"state": HeldState.REJECTED}, {}, PROVEN, True),
        ({"state": HeldState.APPROVED}, {}, PROVEN, True),
    ],
)
def test_a_request_that_people_amended(
    changed: Any, guarded: Any, licence: Licence, serves: bool
) -> None:
    held = replace(HELD, **changed)
    ledger = SimpleNamespace(held={"c": held})
    stands: Any = SimpleNamespace(ledger=ledger, events=(), own_events=())
    asks = replace(Guarded("pay", roles=("boss",), needed=1), **guarded)
    assert (_amended_request(stands, asks, "c", licence) is held) is serves


@pytest.mark.parametrize(
    ("seq", "kind", "process", "same"),
    [
        (5, "amend", "p1", False), (4, "amend", "p1", False), (3, "amend", "p1", True),
        (5, "amend", "p2", True), (5, "note", "p1", True),
    ],
)  # fmt: skip
def test_the_values_that_people_saw(seq: int, kind: str, process: str, same: bool) -> None:
    event = Event(seq, 0.0, "model", kind, process, "", {})
    later = Event(9, 0.0, "model", "note", "p1", "", {})
    events = [SimpleNamespace(event=one) for one in (event, later)]
    stands: Any = SimpleNamespace(events=events)
    assert _same_values(stands, HELD) is same


def test_inputs_that_are_to_be_one() -> None:
    step = Act("act", "pay", (("a", Local("x")), ("b", Local("x")), ("c", Literal(1))), goal=True)
    assert _other_act(step, {"a": 1, "b": 1.0, "c": 9}) is None
    assert _other_act(step, {}) is None
    for given in ({"a": 1, "b": 2}, {"a": 1}):
        held = _other_act(step, given)
        assert held is not None
        assert (held.awaits, held.why) == (
            "root",
            "`b` of `pay` must be the same as another input of it: amend it so, or reject it",
        )


# --- while a guarded call is being carried out ----------------------------------------


@pytest.mark.parametrize(
    ("action", "may"),
    [
        ("move", True), ("tell", True), ("note", False), ("look", False), ("login", True),
        ("logout", True), ("pay", True), ("dance", True),
    ],
)  # fmt: skip
def test_what_may_unprove_something(action: str, may: bool) -> None:
    programs = Machine(PROGRAMS).programs
    assert may_unprove(programs, action) is may
    busy = SimpleNamespace(action="pay")
    stands: Any = SimpleNamespace(
        machine=SimpleNamespace(programs=programs), programs=SET, in_flight={"c1"},
        open_guarded=("c1",), configuration=SimpleNamespace(pending={"c1": busy, "c2": busy}),
    )  # fmt: skip
    held = under_way(stands, action)
    assert (held is not None) is may
    if held is not None:
        assert held.awaits == "outcome"
        said = f"`pay` is being carried out; call `{action}` again when it is answered"
        assert held.why == said
    stands.in_flight = {"c9"}
    held = under_way(stands, action)
    assert (held is not None and "nobody knows yet how call `c1`" in held.why) is may
    stands.open_guarded = ()
    assert under_way(stands, action) is None


@pytest.mark.parametrize(
    ("action", "ok", "value", "found"),
    [
        ("look", False, {"error": "none"}, True), ("look", False, {"error": "down"}, False),
        ("look", False, "none", False), ("move", False, {"error": "none"}, False),
        ("look", True, {"error": "none"}, True),
    ],
)  # fmt: skip
def test_a_failure_that_is_an_answer(action: str, ok: bool, value: JSON, found: bool) -> None:
    stands: Any = SimpleNamespace(programs=SET, judge=judge)
    result = read_failure(stands, action, ToolResult(ok, value))
    assert result.ok is found
    assert result.value == value


class Stubborn(CountingTools):
    """Fails and says so, the second time it is asked."""

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        if name == "find_account" and self.made(name):
            self.calls.append((name, dict(arguments), key))
            return ToolResult(False, {"error": "no"})
        return await super().call(name, arguments, key=key)


def test_what_fails_when_it_is_made_again_may_have_been_carried_out() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        tools = Stubborn()
        one = await opened(store, clock, tools=tools)
        await walk(one, "rename", stop_at_action="find_account")
        store_append, lost = store.append, []

        async def append(*given: Any, **more: Any) -> Any:
            if any(sealed.event.kind == "domain_result" for sealed in given[1].events) and not lost:
                lost.append(1)
                raise asyncio.CancelledError
            return await store_append(*given, **more)

        store.append = append  # type: ignore[method-assign]
        with pytest.raises(asyncio.CancelledError):
            await one.call_tool("find_account", {"username": "una"}, "c1")
        store.append = store_append  # type: ignore[method-assign]
        clock.advance(60)
        back = await resume_session(store, "s", tools=tools, clock=clock)
        assert back.retryable == ("c1",)
        answer = await back.retry("c1")
        assert answer.result is not None
        assert (answer.result.ok, answer.result.unknown) == (False, True)
        assert tools.made("find_account") == 2
        with pytest.raises(UserMistake, match="there is no such call `c1` here"):
            await back.retry("c1")

    run(case)


# --- waiting --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout", "poll", "slept"),
    [
        (0.0, 1.0, []),
        (2.0, 1.0, [1.0, 1.0]),
        (2.5, 1.0, [1.0, 1.0, 1.0]),
        (4000.0, 1800.0, [1800.0] * 3),
    ],
)
def test_how_long_a_decision_is_waited_for(timeout: float, poll: float, slept: list[float]) -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock)
        await walk(one, "wire", stop_at_action="wire")
        held = (await one.call_tool("wire", ERRANDS["wire"], "w")).held
        assert held is not None
        naps: list[float] = []

        async def sleep(seconds: float) -> None:
            naps.append(seconds)
            clock.advance(seconds)

        end = await one.wait_for_decision(
            held.call_id, poll_seconds=poll, timeout_seconds=timeout, sleep=sleep
        )
        assert naps == slept
        assert end.state is (HeldState.EXPIRED if timeout > 3600 else HeldState.WAITING)
        with pytest.raises(UserMistake, match="there is no such call `x` here"):
            await one.wait_for_decision("x")

    run(case)


def test_who_waits_goes_on_waiting_while_another_has_the_session() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock)
        await walk(one, "refund", stop_at_action="refund")
        held = (await one.call_tool("refund", ERRANDS["refund"], "w")).held
        assert held is not None
        naps: list[int] = []

        async def sleep(_: float) -> None:
            naps.append(len(naps))
            if len(naps) == 1:
                other = await resume_session(store, "s", tools=CountingTools(), clock=clock)
                await other.decide("approve", held.call_id, by="sue", role="supervisor")
            if len(naps) == 3:
                clock.advance(60)

        end = await one.wait_for_decision(
            held.call_id, poll_seconds=1.0, timeout_seconds=None, sleep=sleep
        )
        assert end.state is HeldState.APPROVED
        assert naps == [0, 1, 2]
        await go_on(one)

    run(case)


async def test_patience_ends_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, asked, naps = asyncio.get_running_loop(), [], []
    begun = loop.time()
    monkeypatch.setattr(loop, "time", lambda: begun + sum(naps))

    async def sleep(seconds: float) -> None:
        naps.append(seconds)

    async def attempt() -> None:
        asked.append(1)
        raise LeaseHeld("s", "other", 9.0, 0.0)

    monkeypatch.setattr("sopilot.session.lease.asyncio.sleep", sleep)
    monkeypatch.setattr("sopilot.session.lease.random.uniform", lambda *_: 1.0)
    with pytest.raises(LeaseHeld):
        await when_free(attempt, patience_seconds=0.5)
    assert [round(one, 2) for one in naps] == [0.03, 0.06, 0.12, 0.24, 0.05]
    assert len(asked) == 6


class Beating:
    """A session whose lease is renewed, or not."""

    def __init__(self, problem: Exception | None) -> None:
        self.problem, self.renewed, self.taken = problem, 0, 0
        self.settings = Settings(lease_seconds=0.03)

    async def renew(self) -> None:
        self.renewed += 1
        if self.problem is not None:
            raise self.problem

    async def take_decisions(self) -> None:
        self.taken += 1


@pytest.mark.parametrize(
    ("problem", "again", "raised"),
    [(None, True, False), (RunEnded("away"), True, False), (LeaseLost("s"), False, False),
     (ValueError("odd"), False, True)],
)  # fmt: skip
async def test_a_lease_is_kept_alive(problem: Exception | None, again: bool, raised: bool) -> None:
    one: Any = Beating(problem)
    with pytest.raises(ValueError, match="odd") if raised else nullcontext():
        async with _Beating(one):
            await asyncio.sleep(0.2)
    assert (one.renewed > 1) is again
    assert (one.taken > 0) is (problem is None)
    before = one.renewed
    await asyncio.sleep(0.05)
    assert one.renewed == before
