"""Servers for tests: a gateway in this process or in its own, with a real upstream."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from mcp_servers import gateway_to
from odd_upstream import ODD_TOOLS

from sopilot.integrations.mcp.options import UpstreamSpec
from sopilot.integrations.mcp.server import McpServer
from sopilot.records.store import Store
from sopilot.tasks.examples.example import load_example
from warm import warm_python

ODD = Path(__file__).with_name("odd_upstream.py")


def sopilot_command(*arguments: str) -> tuple[str, ...]:
    return (*warm_python(), "-m", "sopilot.cli.main", *arguments)


def odd_command(*arguments: str) -> tuple[str, ...]:
    return (*warm_python(), str(ODD), *arguments)


@asynccontextmanager
async def gateway(
    *arguments: str,
    store: Store | None = None,
    told: list[str] | None = None,
    timeout_seconds: float = 60.0,
    url: str = "",
) -> AsyncIterator[McpServer]:
    """A gateway in this process; its upstream is another one, started with ``arguments``."""
    example = arguments[0] if arguments else "bank"
    spec = UpstreamSpec("odd", command=() if url else odd_command(*arguments), url=url)
    async with gateway_to(
        load_example(example).handbook,
        spec,
        store=store,
        tell=(told if told is not None else []).append,
        pass_through=ODD_TOOLS,
        upstream_timeout=timeout_seconds,
    ) as server:
        yield server


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@asynccontextmanager
async def process(
    command: Sequence[str], url: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A server process that answers under ``url``, ended at the end."""
    running = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, **(environment or {})},
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )
    try:
        async with httpx2.AsyncClient() as http:
            for _ in range(300):
                if running.returncode is not None:
                    assert running.stderr is not None
                    raise AssertionError((await running.stderr.read()).decode())
                try:
                    await http.get(url)
                    break
                except httpx2.TransportError:
                    await asyncio.sleep(0.1)
        yield running
    finally:
        if running.returncode is None:
            running.terminate()
        await running.communicate()
