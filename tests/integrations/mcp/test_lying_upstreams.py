"""Servers that lie about their tools, judged by what reached them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types
from gateway_scenes import call
from mcp.client import Client
from mcp_servers import gateway_to

from sopilot.handbook.reader import load_handbook
from sopilot.integrations.mcp.options import UpstreamSpec
from sopilot.views.step_tool import TOOL_NAME
from warm import warm_python

LYING = Path(__file__).with_name("lying_upstream.py")
DOOR = """
handbook: door
actions:
  look_up: {input: {name: string}}
  note: {input: {name: string}, changes: []}
  open_door:
    {says: Opens the door., input: {name: string}, irreversible: true, confirm: false, RECHECK}
predicates:
  invited(name):
    says: "{name} is on the list."
    verify: look_up(name)
    verdict: result.invited
procedures:
  open_door:
    requires: invited(name)
"""


class Desk:
    """A door that is proven to be for Ada; ``seen`` is what reached the server."""

    def __init__(self, client: Client, file: Path) -> None:
        self.client = client
        self._file = file

    def lie(self) -> None:
        self._file.with_name(f"{self._file.name}.lie").touch()

    async def call(self, name: str) -> types.CallToolResult:
        result = await self.client.call_tool(name, {"name": "Ada"})
        assert isinstance(result, types.CallToolResult)
        return result

    async def prove(self) -> None:
        start: dict[str, Any] = {"goal": "open_door", "arguments": {"name": "Ada"}}
        await call(self.client, TOOL_NAME, operation="start", **start)
        found = await self.call("look_up")
        assert isinstance(found.content[0], types.TextContent)
        number = int(found.content[0].text.split()[0].removeprefix("#"))
        await call(self.client, TOOL_NAME, operation="return", holds=True, evidence=[number])

    @property
    def seen(self) -> list[str]:
        return self._file.read_text().splitlines()


@asynccontextmanager
async def desk(lie: str, folder: Path, *, recheck: str = "false") -> AsyncIterator[Desk]:
    file = folder / "seen"
    handbook = load_handbook(DOOR.replace("RECHECK", f"recheck: {recheck}"))
    spec = UpstreamSpec("door", command=(*warm_python(), str(LYING), lie, str(file)))
    async with (
        asyncio.timeout(30),
        gateway_to(handbook, spec) as server,
        Client(server.protocol) as client,
    ):
        yield Desk(client, file)


@pytest.mark.parametrize("lie", ["fail", "notice", "twice, first", "twice, last"])
async def test_a_tool_that_changes_before_it_is_called_is_not(lie: str, tmp_path: Path) -> None:
    """Its list cannot be had in a row of calls, it tells of a change behind its list, or it lists
    the approved tool beside another of the same name."""
    async with desk(lie, tmp_path) as here:
        await here.prove()
        for _ in range(3):
            await here.call("note")
        await asyncio.sleep(0.02)  # what is looked at ahead
        here.lie()
        assert (await here.call("open_door")).is_error
        assert here.seen == ["look_up", "note", "note", "note"]


async def test_what_is_read_on_the_way_to_a_call_may_change_it(tmp_path: Path) -> None:
    async with desk("read", tmp_path, recheck="true") as here:
        await here.prove()
        here.lie()
        assert (await here.call("open_door")).is_error
        assert here.seen == ["look_up", "look_up"]


@pytest.mark.parametrize("name", ["open_door", "note"])
async def test_a_call_that_is_cancelled_before_it_is_sent_is_not_sent(
    name: str, tmp_path: Path
) -> None:
    async with desk("slow", tmp_path) as here:
        await here.prove()
        here.lie()  # and looks take a while
        asked = asyncio.create_task(here.call(name))
        await asyncio.sleep(0.1)
        asked.cancel()
        await asyncio.wait({asked})
        await here.call("look_up")
        assert here.seen == ["look_up", "look_up"]
