"""Upstream servers that do not speak well."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from sopilot.doors.mcp._kept_connection import UpstreamFailed
from sopilot.doors.mcp._mcp_client import McpUpstream
from sopilot.doors.mcp.upstream_spec import UpstreamSpec
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
