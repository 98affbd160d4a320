"""When the tools of a server are looked at: before every call, and for the next one of a row."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types

from sopilot.doors.mcp import _checked_upstream
from sopilot.doors.mcp._call_link import CallLink
from sopilot.doors.mcp._checked_upstream import CheckedUpstream


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

    async def call(self, name: str, *, anew: bool = False) -> CallLink:
        link = CallLink()
        await self.checked.check(link, anew=anew)
        await self.checked.call(name, {}, link, key="k")
        return link

    async def answered(self, link: CallLink) -> None:
        for one in link.afterwards:
            one()
        for _ in range(5):
            await asyncio.sleep(0)


def played(scene: Callable[[Desk], Awaitable[None]], **options: float) -> list[str]:
    async def run() -> list[str]:
        desk = Desk(**options)
        await scene(desk)
        return desk.upstream.asked

    return asyncio.run(run())


def test_in_a_row_the_look_for_the_next_call_follows_the_last() -> None:
    async def scene(desk: Desk) -> None:
        for name in ("a", "b", "c", "d"):
            await desk.answered(await desk.call(name))

    # Of the first nobody knows that another one follows.
    assert played(scene) == ["look", "a", "look", "b", "look", "c", "look", "d", "look"]


def test_a_look_that_began_before_the_last_call_ended_is_none() -> None:
    async def scene(desk: Desk) -> None:
        await desk.call("a")
        await desk.call("b")  # nobody looked ahead
        await desk.call("c")

    assert played(scene) == ["look", "a", "look", "b", "look", "c"]


def test_after_a_pause_there_is_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(desk: Desk) -> None:
        await desk.answered(await desk.call("a"))
        await desk.answered(await desk.call("b"))
        monkeypatch.setattr(_checked_upstream, "_PAUSE_SECONDS", 0.0)
        await desk.answered(await desk.call("c"))

    assert played(scene) == ["look", "a", "look", "b", "look", "look", "c"]


def test_before_what_cannot_be_undone_there_is_always_one() -> None:
    async def scene(desk: Desk) -> None:
        await desk.answered(await desk.call("a"))
        await desk.answered(await desk.call("b"))
        await desk.answered(await desk.call("pay", anew=True))

    assert played(scene) == ["look", "a", "look", "b", "look", "look", "pay", "look"]


def test_who_is_told_of_a_change_looks_again() -> None:
    async def scene(desk: Desk) -> None:
        await desk.answered(await desk.call("a"))
        await desk.answered(await desk.call("b"))
        assert desk.upstream.on_list_changed is not None
        desk.upstream.on_list_changed()
        await desk.call("c")

    assert played(scene) == ["look", "a", "look", "b", "look", "look", "c"]


def test_while_a_call_is_under_way_every_other_one_is_looked_for() -> None:
    async def scene(desk: Desk) -> None:
        desk.upstream.slow = asyncio.Event()
        await desk.answered(await desk.call("a"))
        await desk.answered(await desk.call("b"))
        slow = asyncio.create_task(desk.call("slow"))
        await asyncio.sleep(0)
        await desk.call("c")
        desk.upstream.slow.set()
        await slow

    assert played(scene) == ["look", "a", "look", "b", "look", "slow", "look", "c"]


def test_another_connection_is_looked_at() -> None:
    async def scene(desk: Desk) -> None:
        await desk.answered(await desk.call("a"))
        await desk.answered(await desk.call("b"))
        desk.upstream.generation = 2
        await desk.call("c")

    assert played(scene) == ["look", "a", "look", "b", "look", "look", "c"]


def test_who_looks_now_and_then_looks_ahead_of_nothing() -> None:
    async def scene(desk: Desk) -> None:
        for name in ("a", "b", "c"):
            await desk.answered(await desk.call(name))

    assert played(scene, recheck_seconds=60.0) == ["look", "a", "b", "c"]


def test_a_connection_that_is_closed_is_not_looked_at_again() -> None:
    async def scene(desk: Desk) -> None:
        await desk.answered(await desk.call("a"))
        link = await desk.call("b")
        await desk.checked.close()
        await desk.answered(link)
        assert desk.upstream.closed_at == len(desk.upstream.asked)

    assert played(scene) == ["look", "a", "look", "b"]


def test_a_look_is_good_for_a_call_as_long_as_nothing_happened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(desk: Desk) -> None:
        checked = desk.checked
        await checked.check(anew=True)
        assert checked.holds(strictly=True)
        await checked.call("a", {}, None, key="k")
        assert checked.holds(strictly=False)
        assert not checked.holds(strictly=True)
        await checked.check(anew=True)
        assert desk.upstream.on_list_changed is not None
        desk.upstream.on_list_changed()
        assert not checked.holds(strictly=False)
        await checked.check(anew=True)
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
