"""What sessions come to once in a thousand lives, while people decide and others wait."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from desk_by_hand import HELD, PROGRAMS, SET, opened

from counter_desk import ERRANDS, CountingTools, HandClock, go_on, walk
from sopilot.machine.approvals import HeldState
from sopilot.machine.evidence import may_unprove
from sopilot.machine.machine import Machine
from sopilot.machine.proof.licence import Licence
from sopilot.messages.errors import UserMistake
from sopilot.program.model import Guarded
from sopilot.protocols import ToolResult
from sopilot.session.admission import _amended_request, under_way
from sopilot.session.opening import resume_session
from sopilot.stores.memory import MemoryStore
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


class Stubborn(CountingTools):
    """Fails and says so, the second time it is asked."""

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        if name == "find_account" and self.made(name):
            self.calls.append((name, dict(arguments), key))
            return ToolResult(False, {"error": "no"})
        return await super().call(name, arguments, key=key)


async def test_what_fails_when_it_is_made_again_may_have_been_carried_out() -> None:
    store, clock = MemoryStore(), HandClock()
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
async def test_how_long_a_decision_is_waited_for(
    timeout: float, poll: float, slept: list[float]
) -> None:
    store, clock = MemoryStore(), HandClock()
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


async def test_who_waits_goes_on_waiting_while_another_has_the_session() -> None:
    store, clock = MemoryStore(), HandClock()
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
