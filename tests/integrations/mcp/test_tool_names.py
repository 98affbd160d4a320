"""Tools whose names can't be actions, and tools that two servers have: `tool:` and prefixes."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from gateway_scenes import call, offered
from mcp.client import Client
from mcp_servers import gateway_to

from sopilot.handbook.formatter import format_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.integrations.mcp.options import UpstreamSpec
from sopilot.integrations.mcp.server import McpServer
from sopilot.messages.errors import UserMistake
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


def gateway(
    tool: str, *specs: UpstreamSpec, **options: Any
) -> AbstractAsyncContextManager[McpServer]:
    return gateway_to(load_handbook(FILES.replace("TOOL", tool)), *specs, **options)


@pytest.mark.parametrize("tool", ["get-file", "fs.read/file", "here:get-file"])
async def test_an_action_calls_the_tool_that_it_names(tool: str) -> None:
    name = tool.rpartition(":")[2]
    servers = plain("here", name), plain("there", "other")
    async with gateway(tool, *servers) as server, Client(server.protocol) as client:
        assert "read_file" in {listed.name for listed in await offered(client)}
        assert (await call(client, "read_file")).structured_content == {"tool": name}


async def test_a_tool_of_two_servers_is_chosen_by_its_server() -> None:
    servers = plain("here", "get-file"), plain("there", "get-file")
    with pytest.raises(UserMistake, match="offered by `here` and by `there`") as clash:
        async with gateway("get-file", *servers):
            pass
    assert "tool: here:get-file" in str(clash.value)
    async with gateway("there:get-file", *servers) as server, Client(server.protocol) as client:
        assert (await call(client, "read_file")).structured_content == {"tool": "get-file"}


async def test_tools_that_pass_and_clash_have_their_servers_names_in_front() -> None:
    servers = plain("here", "echo", "x"), plain("there", "echo", "answer")
    passing = {"pass_through": ["echo", "answer"]}
    async with gateway("x", *servers, **passing) as server, Client(server.protocol) as client:
        names = {"read_file", "here_echo", "there_echo", "answer"}
        assert names <= {listed.name for listed in await offered(client)}
        for name, tool in (("there_echo", "echo"), ("answer", "answer")):
            assert (await call(client, name)).structured_content == {"tool": tool}


async def test_no_tool_has_the_name_of_one_of_the_runtimes_own() -> None:
    own = ("ask_user", "confirm_with_user", "end_session", "give_values", "judge_check")
    passing = {"view": "guard", "pass_through": own}
    async with (
        gateway("x", plain("here", "x", *own), **passing) as server,
        Client(server.protocol) as client,
    ):
        names = {listed.name for listed in await offered(client)}
        assert names == {"read_file", *(f"here_{name}" for name in own)}
        for name in own:
            assert (await call(client, f"here_{name}")).structured_content == {"tool": name}
            assert (await call(client, name)).is_error


@pytest.mark.parametrize("here", [("echo", "x"), ("x", "echo")])
async def test_a_prefixed_name_is_no_action(here: tuple[str, ...]) -> None:
    """The call of the action would be a call of the tool that passes."""
    book = load_handbook(FILES.replace("TOOL", "x").replace("read_file", "here_echo"))
    servers = plain("here", *here), plain("there", "echo")
    with pytest.raises(UserMistake, match="`here_echo` would name two tools"):
        async with gateway_to(book, *servers, pass_through=("echo",)):
            pass


async def test_a_prefixed_name_is_no_other_tool() -> None:
    servers = plain("here", "echo", "here_echo", "x"), plain("there", "echo")
    with pytest.raises(UserMistake, match="`here_echo` would name two tools"):
        async with gateway("x", *servers, pass_through=("echo", "here_echo")):
            pass


def test_the_field_survives_formatting() -> None:
    text = FILES.replace("TOOL", "get-file")
    assert load_handbook(format_handbook(text)).actions["read_file"].tool == "get-file"
