"""Everything that an upstream has beside tools goes through the gateway: in the versions with
connections, where a server asks back, and in those where it asks in rounds."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_servers import gateway_to

from everything_upstream import EVERYTHING
from mcp_conformance import HANDBOOK
from sopilot.handbook.reader import load_handbook
from sopilot.integrations.mcp.options import UpstreamSpec
from sopilot.integrations.mcp.server import McpServer
from warm import warm_python

UPSTREAM = Path(__file__).parents[3] / "benchmarks" / "everything_upstream.py"
LEGACY, MODERN = (), ("--modern",)


def gateway(*words: str) -> AbstractAsyncContextManager[McpServer]:
    spec = UpstreamSpec("every", command=(*warm_python(), str(UPSTREAM), *words))
    return gateway_to(
        load_handbook(HANDBOOK), spec, pass_through=EVERYTHING[1:], upstream_timeout=20.0
    )


class Person:
    """A client's side: what it was asked and told."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.told: list[Any] = []

    async def sampled(self, context: Any, params: Any) -> types.CreateMessageResult:
        self.asked.append(params)
        words = types.TextContent(text="the model's words")
        return types.CreateMessageResult(role="assistant", content=words, model="m")

    async def elicited(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        return types.ElicitResult(action="accept", content={"username": "ann"})

    async def roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///desk")])

    async def heard(self, message: object) -> None:
        self.told.append(message)

    def client(self, server: McpServer) -> Client:
        return Client(
            server.protocol,
            mode="legacy",
            sampling_callback=self.sampled,
            elicitation_callback=self.elicited,
            list_roots_callback=self.roots,
            message_handler=self.heard,
            cache=None,
        )

    def logged(self) -> list[Any]:
        return [one for one in self.told if isinstance(one, types.LoggingMessageNotification)]


def words_of(result: types.CallToolResult) -> str:
    return "\n".join(one.text for one in result.content if isinstance(one, types.TextContent))


async def set_level(client: Client, level: types.LoggingLevel) -> None:
    request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
    await client.session.send_request(request, types.EmptyResult)


async def what_is_listed_and_read(client: Client, person: Person) -> None:
    listed = (await client.list_resources()).resources
    uris = [one.uri for one in listed]
    assert uris[:2] == ["sopilot://frame", "sopilot://score-card"]
    assert uris.count("sopilot://frame") == 1  # nobody else's passes for it
    assert {"test://static-text", "test://static-binary"} <= set(uris)
    frame = (await client.read_resource("sopilot://frame")).contents[0]
    assert "static" not in str(frame)
    held = (await client.read_resource("test://template/7/data")).contents[0]
    assert isinstance(held, types.TextResourceContents)
    assert "Data for ID: 7" in held.text
    assert held.meta == {"own": 1}  # without the runtime's marks
    blob = (await client.read_resource("test://static-binary")).contents[0]
    assert isinstance(blob, types.BlobResourceContents)
    templates = (await client.list_resource_templates()).resource_templates
    assert [one.uri_template for one in templates] == ["test://template/{id}/data"]
    for uri in ("test://nowhere", "sopilot://other"):
        with pytest.raises(MCPError):
            await client.read_resource(uri)


async def prompts_and_completions(client: Client, person: Person) -> None:
    prompts = {one.name for one in (await client.list_prompts()).prompts}
    assert {"say_it", "test_prompt_with_image"} <= prompts
    got = await client.get_prompt("test_prompt_with_image")
    assert isinstance(got.messages[0].content, types.ImageContent)
    own = await client.get_prompt("say_it")
    assert "say_it" in str(own.messages[0].content)
    ref = types.PromptReference(name="test_prompt_with_arguments")
    found = await client.complete(ref, {"name": "arg1", "value": "par"})
    assert found.completion.values == ["paris", "park", "party"]
    ref = types.PromptReference(name="say_it")
    of_own = await client.complete(ref, {"name": "a", "value": ""})
    assert of_own.completion.values == []


async def what_an_upstream_asks(client: Client, person: Person) -> None:
    sampled = await client.call_tool("test_sampling", {"prompt": "what?"})
    assert "the model's words" in words_of(sampled)
    assert person.asked[0].messages[0].content.text == "what?"
    elicited = await client.call_tool("test_elicitation", {"message": "Who are you?"})
    assert "ann" in words_of(elicited)
    # The user sees that it is not the runtime who asks.
    assert person.asked[1].message == "`every` asks: Who are you?"
    assert "file:///desk" in words_of(await client.call_tool("roots", {}))


async def logs_from_a_level_on(client: Client, person: Person) -> None:
    await set_level(client, "info")
    await client.call_tool("test_tool_with_logging", {})
    await asyncio.sleep(0.1)
    assert [one.params.data for one in person.logged()][:1] == ["Tool execution started"]
    assert len(person.logged()) == 3
    await set_level(client, "error")
    await client.call_tool("test_tool_with_logging", {})
    await asyncio.sleep(0.1)
    assert len(person.logged()) == 3


async def structure_annotations_and_content(client: Client, person: Person) -> None:
    listed = {one.name: one for one in (await client.list_tools()).tools}
    hints = listed["structured"].annotations
    assert hints is not None
    assert hints.read_only_hint
    assert listed["json_schema_2020_12_tool"].input_schema["$defs"]
    given = await client.call_tool("structured", {})
    assert given.structured_content == {"a": 1}
    mixed = await client.call_tool("test_multiple_content_types", {})
    assert {one.type for one in mixed.content} == {"text", "image", "resource", "resource_link"}


SCENES = (
    what_is_listed_and_read,
    prompts_and_completions,
    what_an_upstream_asks,
    logs_from_a_level_on,
    structure_annotations_and_content,
)


@pytest.mark.parametrize("words", [LEGACY, MODERN])
async def test_an_upstream_is_passed_on_whole(words: tuple[str, ...]) -> None:
    """One gateway for all: starting it takes longest."""
    async with gateway(*words) as server:
        for scene in SCENES:
            person = Person()
            async with person.client(server) as client:
                await scene(client, person)
        # Who cannot be asked is not: the call fails, and the next one does not.
        async with Client(server.protocol, mode="legacy") as mute:
            given = await mute.call_tool("test_sampling", {"prompt": "what?"})
            assert given.is_error
            fine = await mute.call_tool("test_simple_text", {})
            assert "simple text response" in words_of(fine)


async def test_changes_that_an_upstream_tells_are_told_on() -> None:
    uri = "test://watched-resource"
    watch = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
    leave = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))

    person = Person()
    async with gateway() as server, person.client(server) as client:
        await client.session.send_request(watch, types.EmptyResult)
        assert uri in words_of(await client.call_tool("watched", {}))
        await asyncio.sleep(0.2)
        assert {
            types.ResourceUpdatedNotification,
            types.ResourceListChangedNotification,
            types.PromptListChangedNotification,
        } <= {type(one) for one in person.told}
        await client.session.send_request(leave, types.EmptyResult)
        assert uri not in words_of(await client.call_tool("watched", {}))
