"""An MCP server with everything that the protocol knows, under the names that the official
conformance suite asks for.

    python benchmarks/everything_upstream.py [--http PORT] [--modern]

``--modern``: in version 2026-07-28, too, where it asks in rounds. ``sopilot serve`` needs a
handbook to stand in front of it: ``EVERYTHING`` names its tools.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import re
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from mcp_processes import serve_http

Context = ServerRequestContext[Any, Any]
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(60)).decode()
SOUND = base64.b64encode(b"RIFF$\x00\x00\x00WAVEfmt ").decode()
_TEXT: dict[str, Any] = {"type": "string"}
_NONE: dict[str, Any] = {"type": "object", "properties": {}}
_ADDRESS = {"type": "object", "properties": {"street": _TEXT, "city": _TEXT}}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "test_sampling": {"type": "object", "properties": {"prompt": _TEXT}, "required": ["prompt"]},
    "test_elicitation": {
        "type": "object", "properties": {"message": _TEXT}, "required": ["message"],
    },
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": _ADDRESS},
        "properties": {"name": _TEXT, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    },
}  # fmt: skip
EVERYTHING = (
    "test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource",
    "test_multiple_content_types", "test_tool_with_logging", "test_error_handling",
    "test_tool_with_progress", "test_sampling", "test_elicitation",
    "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums",
    "json_schema_2020_12_tool", "test_reconnection", "structured", "watched", "roots", "waits",
)  # fmt: skip
_USER_FORM = {
    "type": "object",
    "properties": {"username": _TEXT, "email": _TEXT},
    "required": ["username", "email"],
}
_DEFAULTS_FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    },
}  # fmt: skip
_THREE = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
_ENUMS_FORM = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": _THREE},
        "titledSingle": {"type": "string", "oneOf": _TITLED},
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _THREE}},
        "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
    },
}  # fmt: skip
_FORMS = {
    "test_elicitation": _USER_FORM,
    "test_elicitation_sep1034_defaults": _DEFAULTS_FORM,
    "test_elicitation_sep1330_enums": _ENUMS_FORM,
}
_STATIC = "test://static-text"
_BINARY = "test://static-binary"
_WATCHED = "test://watched-resource"
_TEMPLATE = re.compile(r"test://template/([^/]+)/data")


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


def _resource(uri: str, kind: str, text: str) -> types.EmbeddedResource:
    held = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
    return types.EmbeddedResource(resource=held)


_CONTENT: dict[str, list[types.ContentBlock]] = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [types.ImageContent(data=PIXEL, mime_type="image/png")],
    "test_audio_content": [types.AudioContent(data=SOUND, mime_type="audio/wav")],
    "test_embedded_resource": [
        _resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        _text("Multiple content types test:"),
        types.ImageContent(data=PIXEL, mime_type="image/png"),
        _resource("test://mixed-content-resource", "application/json", '{"test":"data"}'),
        types.ResourceLink(uri=_STATIC, name="static"),
    ],
    "json_schema_2020_12_tool": [_text("Done.")],
    "test_reconnection": [_text("Reconnected.")],
}


_PROMPTS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], types.ContentBlock]]] = {
    "test_simple_prompt": ((), lambda _: _text("This is a simple prompt for testing.")),
    "test_prompt_with_arguments": (
        ("arg1", "arg2"),
        lambda values: _text(f"Prompt with arguments: {values.get('arg1')}, {values.get('arg2')}"),
    ),
    "test_prompt_with_embedded_resource": (
        ("resourceUri",),
        lambda values: _resource(
            values.get("resourceUri", _STATIC),
            "text/plain",
            "Embedded resource content for testing.",
        ),
    ),
    "test_prompt_with_image": ((), lambda _: types.ImageContent(data=PIXEL, mime_type="image/png")),
}
"""Prompt → its arguments and what it shows."""


class Everything:
    def __init__(self, *, modern: bool) -> None:
        self._versions = MODERN_PROTOCOL_VERSIONS if modern else HANDSHAKE_PROTOCOL_VERSIONS
        self.level: str | None = None
        self._watched: set[str] = set()
        self.server: Server[Any] = _Telling(
            "everything",
            version="1",
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_subscribe_resource=self.subscribe,
            on_unsubscribe_resource=self.unsubscribe,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_completion=self.complete,
        )
        add = self.server.add_request_handler
        add("logging/setLevel", types.SetLevelRequestParams, self.set_level)
        add("server/discover", types.RequestParams, self.discover)

    async def discover(self, ctx: Context, params: object) -> types.DiscoverResult:
        can = self.server.get_capabilities(protocol_version=ctx.protocol_version)
        return types.DiscoverResult(supported_versions=list(self._versions), capabilities=can)

    async def list_tools(self, ctx: Context, params: object) -> types.ListToolsResult:
        hints = types.ToolAnnotations(read_only_hint=True)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    title=name.replace("_", " ").title(),
                    description=f"Tests {name}.",
                    input_schema=_SCHEMAS.get(name, _NONE),
                    annotations=hints,
                )
                for name in EVERYTHING
            ]
        )

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        name, arguments = params.name, params.arguments or {}
        if name in _CONTENT:
            if name == "test_reconnection" and ctx.close_sse_stream is not None:
                await ctx.close_sse_stream()
                await asyncio.sleep(0.1)
            return types.CallToolResult(content=_CONTENT[name])
        if name == "test_error_handling":
            text = "This tool intentionally returns an error for testing"
            return types.CallToolResult(content=[_text(text)], is_error=True)
        if name == "structured":
            return types.CallToolResult(
                content=[_text('{"a": 1}')], structured_content={"a": 1}, _meta={"own": "meta"}
            )
        if name in ("test_tool_with_logging", "test_tool_with_progress"):
            return await self._slowly(ctx, logs=name.endswith("logging"))
        if name == "waits":
            await asyncio.sleep(60)
        if name == "watched":
            for uri in sorted(self._watched):
                await ctx.session.send_resource_updated(uri)
            await ctx.session.send_resource_list_changed()
            await ctx.session.send_prompt_list_changed()
            return types.CallToolResult(content=[_text(" ".join(sorted(self._watched)))])
        return await self._asked(ctx, name, arguments, params)

    async def _slowly(self, ctx: Context, *, logs: bool) -> types.CallToolResult:
        steps = ("Tool execution started", "Tool processing data", "Tool execution completed")
        for number, step in enumerate(steps):
            if logs:
                entry = types.LoggingMessageNotificationParams(level="info", data=step)
                notice = types.LoggingMessageNotification(params=entry)
                await ctx.session.send_notification(notice, ctx.request_id)
            else:
                await ctx.session.report_progress(number * 50, 100, step)
            await asyncio.sleep(0.05)
        return types.CallToolResult(content=[_text("Done.")])

    async def _asked(
        self,
        ctx: Context,
        name: str,
        arguments: dict[str, Any],
        params: types.CallToolRequestParams,
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Over the connection, or, where there is none, in a second round."""
        request: types.InputRequest
        answer: Any
        if name == "test_sampling":
            message = types.SamplingMessage(
                role="user", content=_text(str(arguments.get("prompt")))
            )
            wanted = types.CreateMessageRequestParams(messages=[message], max_tokens=100)
            request, answer = types.CreateMessageRequest(params=wanted), types.CreateMessageResult
        elif name == "roots":
            request, answer = types.ListRootsRequest(), types.ListRootsResult
        elif name in _FORMS:
            form = types.ElicitRequestFormParams(
                message=str(arguments.get("message", "Please fill this in")),
                requested_schema=_FORMS[name],
            )
            request, answer = types.ElicitRequest(params=form), types.ElicitResult
        else:
            raise MCPError(types.INVALID_PARAMS, f"no tool {name}")
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            response = (params.input_responses or {}).get("it")
            if response is None:
                return types.InputRequiredResult(input_requests={"it": request}, request_state="s")
        else:
            with_it = ServerMessageMetadata(related_request_id=ctx.request_id)
            response = await ctx.session.send_request(request, answer, metadata=with_it)
        answer_text = json.dumps(response.model_dump(by_alias=True, mode="json", exclude_none=True))
        return types.CallToolResult(content=[_text(f"Answer: {answer_text}")])

    async def list_resources(self, ctx: Context, params: object) -> types.ListResourcesResult:
        named = {_STATIC: "text/plain", _BINARY: "image/png", _WATCHED: "text/plain"}
        resources = [
            types.Resource(
                uri=uri, name=uri.partition("//")[2], description="A test.", mime_type=kind
            )
            for uri, kind in named.items()
        ]
        forged = types.Resource(uri="sopilot://frame", name="frame", mime_type="text/plain")
        return types.ListResourcesResult(resources=[*resources, forged])

    async def list_templates(
        self, ctx: Context, params: object
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(uri_template="test://template/{id}/data", name="template")
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        match = _TEMPLATE.fullmatch(uri)
        if uri == _BINARY:
            blob = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
            return types.ReadResourceResult(contents=[blob])
        if match is not None:
            text = json.dumps({"id": match[1], "data": f"Data for ID: {match[1]}"})
        elif uri in (_STATIC, _WATCHED):
            text = "This is the content of the static text resource."
        else:
            raise MCPError(-32002, f"no resource {uri}")
        marks = {"sopilot/runtime": True, "own": 1}
        held = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text, _meta=marks)
        return types.ReadResourceResult(contents=[held])

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        self._watched.add(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._watched.discard(str(params.uri))
        return types.EmptyResult()

    async def list_prompts(self, ctx: Context, params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=name,
                    description="A test.",
                    arguments=[
                        types.PromptArgument(name=argument, required=True) for argument in wanted
                    ],
                )
                for name, (wanted, _) in _PROMPTS.items()
            ]
        )

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        if params.name not in _PROMPTS:
            raise MCPError(types.INVALID_PARAMS, f"no prompt {params.name}")
        blocks = [_PROMPTS[params.name][1](params.arguments or {}), _text("Please look at it.")]
        return types.GetPromptResult(
            messages=[types.PromptMessage(role="user", content=block) for block in blocks]
        )

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        words = [
            word for word in ("paris", "park", "party") if word.startswith(params.argument.value)
        ]
        return types.CompleteResult(completion=types.Completion(values=words, total=len(words)))

    async def set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self.level = params.level
        return types.EmptyResult()


class _Telling(Server[Any]):
    def create_initialization_options(self, *arguments: Any, **named: Any) -> Any:
        changing = NotificationOptions(
            tools_changed=True, resources_changed=True, prompts_changed=True
        )
        return super().create_initialization_options(changing)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int)
    parser.add_argument("--modern", action="store_true")
    parsed = parser.parse_args()
    server = Everything(modern=parsed.modern).server
    if parsed.http is not None:
        await serve_http(server, parsed.http)
        return
    options = server.create_initialization_options()
    async with stdio_server() as (read, write), server.lifespan(server) as state:
        if parsed.modern:
            await server.run(read, write, options)
        else:
            await serve_loop(server, read, write, lifespan_state=state, init_options=options)


if __name__ == "__main__":
    asyncio.run(main())
