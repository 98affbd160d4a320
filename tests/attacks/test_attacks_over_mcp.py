"""Every attack by a client that speaks MCP: to a server of procedures, and to a gateway in
front of somebody else's server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from attack_table import CASES, ONE_OF_EACH_CLASS, assert_done, assert_held
from attacks_on_evidence import READ_AGAIN
from mcp.client import Client
from over_http import over_http
from over_mcp import send, upstream_url
from scripted_moves import Case, RecordingTools, Script

from sopilot.integrations.mcp.options import UpstreamSpec
from sopilot.integrations.mcp.pins import Catalogue, CatalogueOptions, Pins
from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.services import gateway_service
from sopilot.integrations.mcp.sessions import Service, SessionPool
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.task import World
from sopilot.views.catalogue import ARMS

Door = Callable[[Case, RecordingTools, str], AbstractAsyncContextManager[Client]]


def _serving(case: Case, tools: RecordingTools, arm: str) -> McpServer:
    async def open_world() -> World:
        return World(tools)

    return McpServer(SessionPool(MemoryStore(), Service(case.briefing(), ARMS[arm], open_world)))


@asynccontextmanager
async def streams(case: Case, tools: RecordingTools, arm: str) -> AsyncIterator[Client]:
    server = _serving(case, tools, arm)
    async with Client(server.protocol) as client:
        yield client
    await server.close()


@asynccontextmanager
async def http(case: Case, tools: RecordingTools, arm: str) -> AsyncIterator[Client]:
    async with over_http(_serving(case, tools, arm)) as client:
        yield client


@asynccontextmanager
async def gateway(case: Case, tools: RecordingTools, arm: str) -> AsyncIterator[Client]:
    """Whatever the upstream has passes, so that the guard alone stands in the way."""
    unnamed = {one.name for one in tools.schemas()} - case.briefing().handbook.actions.keys()
    async with guarding_gateway(case, tools, arm, pass_through=unnamed) as client:
        yield client


@asynccontextmanager
async def guarding_gateway(
    case: Case, tools: RecordingTools, arm: str, *, pass_through: Collection[str] = ()
) -> AsyncIterator[Client]:
    async with upstream_url(tools) as url:
        handbook = case.briefing().handbook
        catalogue = Catalogue(
            [UpstreamSpec("other", url=url)],
            Pins(),
            lambda text: None,
            handbook=handbook,
            options=CatalogueOptions(pass_through=pass_through),
        )
        await catalogue.open()
        service = gateway_service(handbook, ARMS[arm], catalogue)
        server = McpServer(SessionPool(MemoryStore(), service), catalogue=catalogue)
        async with Client(server.protocol) as client:
            yield client
        await server.close()


# Whoever listens on a port takes his time: there, one case of each class.
PLACES = [
    *((streams, arm, case) for arm in ("pg", "fused", "chunk") for case in CASES),
    *((http, "full-cursor", case) for case in ONE_OF_EACH_CLASS),
    *((gateway, "pg", case) for case in (*ONE_OF_EACH_CLASS, READ_AGAIN)),
]
EVERYWHERE = pytest.mark.parametrize(
    ("door", "arm", "case"),
    PLACES,
    ids=[f"{door.__name__} {arm} {case.id}" for door, arm, case in PLACES],
)


def sent(case: Case, script: Script, door: Door, arm: str) -> RecordingTools:
    tools = RecordingTools(case)

    async def run() -> None:
        async with door(case, tools, arm) as client:
            await send(client, script)

    asyncio.run(run())
    return tools


@EVERYWHERE
def test_an_attack_is_held(door: Door, arm: str, case: Case) -> None:
    script = Script(case.attack)
    assert_held(case, ARMS[arm], script, sent(case, script, door, arm))


@EVERYWHERE
def test_its_honest_twin_goes_through(door: Door, arm: str, case: Case) -> None:
    script = Script(case.twin)
    assert_done(case, script, sent(case, script, door, arm))
