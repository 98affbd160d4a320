"""What sessions come to once in a thousand lives, while people decide and others wait."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from desk_by_hand import opened

from counter_desk import ERRANDS, CountingTools, HandClock, go_on, walk
from sopilot.machine.approvals import HeldState
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ToolResult
from sopilot.session.opening import resume_session
from sopilot.stores.memory import MemoryStore
from sopilot.values.json import JSON

# --- people's word --------------------------------------------------------------------


# --- while a guarded call is being carried out ----------------------------------------


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
