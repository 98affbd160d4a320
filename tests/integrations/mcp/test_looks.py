"""When the tools of a server are looked at: before every call, or now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types

from sopilot.integrations.mcp import checked_upstream as _checked_upstream
from sopilot.integrations.mcp.call_link import CallLink
from sopilot.integrations.mcp.checked_upstream import CheckedUpstream


class Upstream:
    """What is asked of it, in order: `look`, and the names of calls."""

    connected = True
    generation = 1

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.on_list_changed: Callable[[], None] | None = None
        self.slow: asyncio.Event | None = None
        self.closed_at: int | None = None

    async def tools(self, link: object) -> list[types.Tool]:
        self.asked.append("look")
        await asyncio.sleep(0)
        return []

    async def call(self, name: str, arguments: Any, link: object, **_: Any) -> types.CallToolResult:
        self.asked.append(name)
        if name == "slow" and self.slow is not None:
            await self.slow.wait()
        return types.CallToolResult(content=[])

    async def close(self) -> None:
        self.closed_at = len(self.asked)


class Desk:
    def __init__(self, **options: float) -> None:
        self.upstream = Upstream()
        self.checked = CheckedUpstream(self.upstream, lambda tools: None, **options)  # type: ignore[arg-type]

    async def call(self, name: str) -> None:
        link = CallLink()
        await self.checked.check(link)
        await self.checked.call(name, {}, link, key="k")


def played(scene: Callable[[Desk], Awaitable[None]], **options: float) -> list[str]:
    async def run() -> list[str]:
        desk = Desk(**options)
        await scene(desk)
        return desk.upstream.asked

    return asyncio.run(run())


def test_every_call_is_looked_for() -> None:
    async def scene(desk: Desk) -> None:
        for name in ("a", "b", "c"):
            await desk.call(name)

    assert played(scene) == ["look", "a", "look", "b", "look", "c"]


def test_calls_that_come_at_once_share_a_look_that_began_after_they_came() -> None:
    async def scene(desk: Desk) -> None:
        await asyncio.gather(*map(desk.call, ("a", "b", "c")))

    asked = played(scene)
    assert (asked.count("look"), asked[:2]) == (2, ["look", "a"])


def test_while_a_call_is_under_way_every_other_one_is_looked_for() -> None:
    async def scene(desk: Desk) -> None:
        desk.upstream.slow = asyncio.Event()
        slow = asyncio.create_task(desk.call("slow"))
        await asyncio.sleep(0.01)
        await desk.call("a")
        desk.upstream.slow.set()
        await slow

    assert played(scene) == ["look", "slow", "look", "a"]


def test_who_looks_now_and_then_does_not_look_for_every_call() -> None:
    async def scene(desk: Desk) -> None:
        for name in ("a", "b", "c"):
            await desk.call(name)

    assert played(scene, recheck_seconds=60.0) == ["look", "a", "b", "c"]


def test_who_is_told_of_a_change_looks_again() -> None:
    async def scene(desk: Desk) -> None:
        await desk.call("a")
        assert desk.upstream.on_list_changed is not None
        desk.upstream.on_list_changed()
        await desk.call("b")

    assert played(scene, recheck_seconds=60.0) == ["look", "a", "look", "b"]


def test_another_connection_is_looked_at() -> None:
    async def scene(desk: Desk) -> None:
        await desk.call("a")
        desk.upstream.generation = 2
        await desk.call("b")

    assert played(scene, recheck_seconds=60.0) == ["look", "a", "look", "b"]


def test_a_connection_that_is_closed_is_not_looked_at_again() -> None:
    async def scene(desk: Desk) -> None:
        await desk.call("a")
        await desk.checked.close()
        assert desk.upstream.on_list_changed is not None
        desk.upstream.on_list_changed()
        await asyncio.sleep(0.01)
        assert desk.upstream.closed_at == len(desk.upstream.asked)

    assert played(scene) == ["look", "a"]


def test_a_look_is_good_for_a_call_as_long_as_nothing_happened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(desk: Desk) -> None:
        checked = desk.checked
        await checked.check()
        assert checked.holds(strictly=True)
        await checked.call("a", {}, None, key="k")
        assert checked.holds(strictly=False)
        assert not checked.holds(strictly=True)
        await checked.check()
        assert desk.upstream.on_list_changed is not None
        desk.upstream.on_list_changed()
        assert not checked.holds(strictly=False)
        await checked.check()
        monkeypatch.setattr(_checked_upstream, "_LONG_SECONDS", 0.0)
        assert not checked.holds(strictly=False)

    played(scene)


def test_notices_without_end_are_one_look_at_a_time() -> None:
    async def scene(desk: Desk) -> None:
        assert desk.upstream.on_list_changed is not None
        for _ in range(1000):
            desk.upstream.on_list_changed()
        assert len(asyncio.all_tasks()) == 2
        await asyncio.sleep(0.01)

    assert played(scene) == ["look"]


def test_who_has_left_does_not_look_beside() -> None:
    async def scene(desk: Desk) -> None:
        await desk.call("a")
        await desk.checked.close()
        assert desk.upstream.on_list_changed is not None
        desk.upstream.on_list_changed()
        await asyncio.sleep(0.01)

    assert played(scene) == ["look", "a"]
