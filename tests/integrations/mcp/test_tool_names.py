"""Tools whose names can't be actions, and tools that two servers have: `tool:` and prefixes."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from gateway_scenes import call, offered
from mcp.client import Client

from sopilot.handbook.formatter import format_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.integrations.mcp.options import GatewayOptions, UpstreamSpec
from sopilot.integrations.mcp.pins import Catalogue, Pins
from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.services import gateway_service
from sopilot.integrations.mcp.sessions import SessionPool
from sopilot.messages.errors import UserMistake
from sopilot.stores.memory import MemoryStore
from sopilot.views.catalogue import view_named
from warm import warm_python

PLAIN = Path(__file__).with_name("plain_upstream.py")
FILES = """\
handbook: files
actions:
  read_file:
    says: Reads a file.
    tool: TOOL
procedures:
  read_file: {}
"""


def plain(name: str, *tools: str) -> UpstreamSpec:
    return UpstreamSpec(name, command=(*warm_python(), str(PLAIN), *tools))


def catalogue(text: str, *specs: UpstreamSpec, **options: object) -> Catalogue:
    chosen = GatewayOptions(**options)  # type: ignore[arg-type]
    handbook = load_handbook(text)
    return Catalogue(specs, Pins(), lambda text: None, handbook=handbook, options=chosen)


@pytest.mark.parametrize("tool", ["get-file", "fs.read/file", "here:get-file"])
async def test_an_action_calls_the_tool_that_it_names(tool: str) -> None:
    text = FILES.replace("TOOL", tool)
    name = tool.rpartition(":")[2]
    tools = catalogue(text, plain("here", name), plain("there", "other"))
    await tools.open()
    service = gateway_service(load_handbook(text), view_named("pg"), tools)
    server = McpServer(SessionPool(MemoryStore(), service), catalogue=tools)
    async with Client(server.protocol) as client:
        assert "read_file" in {listed.name for listed in await offered(client)}
        assert (await call(client, "read_file")).structured_content == {"tool": name}
    await server.close()


async def test_a_tool_of_two_servers_is_chosen_by_its_server() -> None:
    servers = plain("here", "get-file"), plain("there", "get-file")
    with pytest.raises(UserMistake, match="offered by `here` and by `there`") as clash:
        await catalogue(FILES.replace("TOOL", "get-file"), *servers).open()
    assert "tool: here:get-file" in str(clash.value)
    chosen = catalogue(FILES.replace("TOOL", "there:get-file"), *servers)
    await chosen.open()
    assert [(offer.name, offer.upstream) for offer in chosen.offers()] == [("read_file", "there")]
    await chosen.close()


async def test_tools_that_pass_and_clash_have_their_servers_names_in_front() -> None:
    servers = plain("here", "echo", "x"), plain("there", "echo")
    both = catalogue(FILES.replace("TOOL", "x"), *servers, pass_through=["echo"])
    await both.open()
    assert {offer.name for offer in both.offers()} == {"read_file", "here_echo", "there_echo"}
    await both.close()


def test_the_field_survives_formatting() -> None:
    text = FILES.replace("TOOL", "get-file")
    assert load_handbook(format_handbook(text)).actions["read_file"].tool == "get-file"
