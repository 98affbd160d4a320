"""Upstream servers that do not speak well."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types

from sopilot.integrations.mcp.call_link import CallLink
from sopilot.integrations.mcp.kept_connection import UpstreamFailed
from sopilot.integrations.mcp.upstream import McpRefused, McpUpstream
from sopilot.integrations.mcp.upstream_spec import UpstreamSpec
from warm import warm_python

GARBLED = Path(__file__).with_name("garbled_upstream.py")


def test_an_answer_that_cannot_be_read_is_not_waited_for() -> None:
    async def run() -> None:
        spec = UpstreamSpec("it", command=(*warm_python(), str(GARBLED)))
        upstream = McpUpstream(spec, timeout_seconds=300)
        async with asyncio.timeout(60):
            with pytest.raises(UpstreamFailed, match="its answer cannot be read"):
                await upstream.call("garbled", {})
            # What a server merely prints spoils nothing, and the connection goes on.
            for _ in range(3):
                assert (await upstream.call("plain", {})).content[0].model_dump()["text"] == "fine"
            assert upstream.generation == 1
        await upstream.close()

    asyncio.run(run())


class Played(McpUpstream):
    """Gives these answers; after each there is another connection, if ``breaks`` says so."""

    def __init__(self, *answers: Any, breaks: bool = False) -> None:
        super().__init__(UpstreamSpec("it", command=("it",)), timeout_seconds=5)
        self._answers, self._breaks = list(answers), breaks
        self.asked: list[Any] = []
        self.never = asyncio.Event()

    async def _connected(self) -> Any:
        async def dispatch(about: object, one: object) -> types.ElicitResult:
            await self.never.wait()
            return types.ElicitResult(action="decline")

        session = SimpleNamespace(dispatch_input_request=dispatch)
        return SimpleNamespace(protocol_version="2026-07-28", session=session)

    async def _sent(self, client: Any, request: Any, answer: Any, link: Any) -> Any:
        self.asked.append(request.params)
        if self._breaks:
            self.generation += 1
            self._wire = SimpleNamespace(off=True)  # type: ignore[assignment]
        return self._answers.pop(0)


def test_the_pages_of_a_list_are_of_one_connection() -> None:
    page = types.ListToolsResult(tools=[], next_cursor="2")

    async def run() -> None:
        upstream = Played(page, types.ListToolsResult(tools=[]), breaks=True)
        with pytest.raises(McpRefused, match="was lost"):
            await upstream.tools()
        assert upstream.asked == [{}]

    asyncio.run(run())


QUESTION = types.InputRequiredResult(
    input_requests={
        "q": types.ElicitRequest(
            params=types.ElicitRequestFormParams(
                message="Well?", requested_schema={"type": "object", "properties": {}}
            )
        )
    }
)


def test_a_question_that_nobody_answers_is_not_waited_for_once_its_call_is_cancelled() -> None:
    async def run() -> None:
        upstream, link = Played(QUESTION), CallLink()
        asked = asyncio.create_task(upstream.call("do", {}, link))
        await asyncio.sleep(0.05)
        link.cancelled.set()
        async with asyncio.timeout(2):
            with pytest.raises(UpstreamFailed, match="cancelled"):
                await asked

    asyncio.run(run())


def test_a_call_goes_on_after_a_question_on_the_same_connection_or_not_at_all() -> None:
    async def run() -> None:
        upstream = Played(QUESTION, types.CallToolResult(content=[]), breaks=True)
        upstream.never.set()
        with pytest.raises(McpRefused, match="was lost"):
            await upstream.call("do", {})
        assert len(upstream.asked) == 1

    asyncio.run(run())
