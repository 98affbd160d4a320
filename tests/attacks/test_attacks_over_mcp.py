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
from sopilot.tasks.task import Simulation
from sopilot.views.catalogue import VIEWS

Door = Callable[[Case, RecordingTools, str], AbstractAsyncContextManager[Client]]


def _serving(case: Case, tools: RecordingTools, view: str) -> McpServer:
    async def open_simulation() -> Simulation:
        return Simulation(tools)

    return McpServer(
        SessionPool(MemoryStore(), Service(case.briefing(), VIEWS[view], open_simulation))
    )


@asynccontextmanager
async def streams(case: Case, tools: RecordingTools, view: str) -> AsyncIterator[Client]:
    server = _serving(case, tools, view)
    async with Client(server.protocol) as client:
        yield client
    await server.close()


@asynccontextmanager
async def http(case: Case, tools: RecordingTools, view: str) -> AsyncIterator[Client]:
    async with over_http(_serving(case, tools, view)) as client:
        yield client


@asynccontextmanager
async def gateway(case: Case, tools: RecordingTools, view: str) -> AsyncIterator[Client]:
    """Whatever the upstream has passes, so that the guard alone stands in the way."""
    unnamed = {one.name for one in tools.schemas()} - case.briefing().handbook.actions.keys()
    async with guarding_gateway(case, tools, view, pass_through=unnamed) as client:
        yield client


@asynccontextmanager
async def guarding_gateway(
    case: Case, tools: RecordingTools, view: str, *, pass_through: Collection[str] = ()
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
        service = gateway_service(handbook, VIEWS[view], catalogue)
        server = McpServer(SessionPool(MemoryStore(), service), catalogue=catalogue)
        async with Client(server.protocol) as client:
            yield client
        await server.close()


# Whoever listens on a port takes his time: there, one case of each class.
PLACES = [
    *((streams, view, case) for view in ("pg", "fused", "chunk") for case in CASES),
    *((http, "full-cursor", case) for case in ONE_OF_EACH_CLASS),
    *((gateway, "pg", case) for case in (*ONE_OF_EACH_CLASS, READ_AGAIN)),
]
EVERYWHERE = pytest.mark.parametrize(
    ("door", "view", "case"),
    PLACES,
    ids=[f"{door.__name__} {view} {case.id}" for door, view, case in PLACES],
)


def sent(case: Case, script: Script, door: Door, view: str) -> RecordingTools:
    tools = RecordingTools(case)

    async def run() -> None:
        async with door(case, tools, view) as client:
            await send(client, script)

    asyncio.run(run())
    return tools


@EVERYWHERE
def test_an_attack_is_held(door: Door, view: str, case: Case) -> None:
    script = Script(case.attack)
    assert_held(case, VIEWS[view], script, sent(case, script, door, view))


@EVERYWHERE
def test_its_honest_twin_goes_through(door: Door, view: str, case: Case) -> None:
    script = Script(case.twin)
    assert_done(case, script, sent(case, script, door, view))
