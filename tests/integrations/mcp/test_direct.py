"""A plain tool call without a connection: answered as the library's transport would, without it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sopilot.integrations.mcp import direct as _direct
from sopilot.integrations.mcp.direct import Direct

PLAIN = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class World:
    """A server whose tools do what their names say."""

    def __init__(self) -> None:
        self.broken_off = 0
        self.go_on = asyncio.Event()
        self.server: Server[Any] = Server("toy", on_call_tool=self._call)

    async def _call(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        said = types.TextContent(
            text=f"{params.name} {params.arguments} é\n字 {ctx.request.method}"
        )
        if params.name == "refuse":
            raise MCPError(types.INVALID_REQUEST, "not here", {"why": "é"})
        if params.name == "break":
            raise ValueError("it broke")
        if params.name == "tell":
            await ctx.session.report_progress(0.5, 1.0, "half")
            await ctx.session.report_progress(1, None, None)
        if params.name == "ask":
            await ctx.session.elicit_form("Well?", {"type": "object", "properties": {}})
        if params.name == "wait":
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.broken_off += 1
                raise
        return types.CallToolResult(
            content=[said],
            is_error=params.name == "fail",
            structured_content={"a": [1, None, 2.5]} if params.name == "structured" else None,
            _meta={"x/y": "z"},
        )


class Counting:
    def __init__(self, app: ASGIApp) -> None:
        self._app, self.asked = app, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        await self._app(scope, receive, send)


@asynccontextmanager
async def apps() -> AsyncIterator[tuple[World, Counting, Direct]]:
    world = World()
    app = world.server.streamable_http_app(stateless_http=True)
    async with app.router.lifespan_context(app):
        counting = Counting(app)
        yield world, counting, Direct(counting, world.server)


class Sent(list[Message]):
    @property
    def whole(self) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        status = next(one["status"] for one in self if "status" in one)
        headers = next(sorted(one["headers"]) for one in self if "headers" in one)
        return status, headers, b"".join(one.get("body", b"") for one in self)


async def post(
    app: ASGIApp,
    body: object,
    headers: dict[str, str] | None = None,
    *,
    path: str = "/mcp",
    method: str = "POST",
    leaves: asyncio.Event | None = None,
    into: Sent | None = None,
) -> Sent:
    data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    sent = Sent() if into is None else into
    pieces = [data[: len(data) // 2], data[len(data) // 2 :]]

    async def receive() -> Message:
        if pieces:
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}
        await (leaves or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    given = {**PLAIN, "host": "127.0.0.1:8000", **(headers or {})}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"",
        "scheme": "http", "server": ("127.0.0.1", 8000), "client": ("127.0.0.1", 1),
        # A name that is spelled in capitals is one that stands there twice.
        "headers": [(name.lower().encode(), one.encode()) for name, one in given.items() if one],
    }  # fmt: skip
    await app(scope, receive, send)
    return sent


def call(name: str, number: object = 1, **more: object) -> dict[str, object]:
    params = {"name": name, "arguments": {"who": "é"}, **more}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (call("do"), {}),
        (call("do", "a text"), {"mcp-protocol-version": "2025-06-18"}),
        (call("structured"), {"mcp-protocol-version": "2025-11-25"}),
        (call("structured", -7), {"mcp-protocol-version": "2024-11-05"}),
        (call("fail", arguments=None), {}),
        (call("refuse"), {}),
        (call("break"), {}),
        (call("ask"), {}),
        (call("tell", _meta={"progressToken": "t"}), {"mcp-protocol-version": "2025-06-18"}),
        (call("tell"), {}),
        (call("do", _meta={"own": {"deep": [1]}}), {}),
        (call(7), {}),  # type: ignore[arg-type]
        (call("do", arguments="text"), {}),
        (call("do", nonsense=1), {}),
    ],
)
def test_it_is_answered_byte_for_byte_as_by_the_transport(
    body: object, headers: dict[str, str]
) -> None:
    """But that an answer alone is no stream of one event."""

    async def case() -> None:
        async with apps() as (_, transport, direct):
            own = await post(direct, body, headers)
            assert transport.asked == 0
            status, said, streamed = (await post(transport, body, headers)).whole
            if streamed.count(b"event: message") > 1:
                assert own.whole == (status, said, streamed)
                return
            message = streamed.removeprefix(b"event: message\r\ndata: ").removesuffix(b"\r\n\r\n")
            length = str(len(message)).encode()
            said = [(b"content-length", length), (b"content-type", b"application/json")]
            assert own.whole == (status, said, message)

    asyncio.run(asyncio.wait_for(case(), 20))


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {}),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}, {}),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, {}),
        ([call("do")], {}),
        (call("do", True), {}),
        (call("do", 1.5), {}),
        (call("do", None), {}),
        ({**call("do"), "jsonrpc": "1.0"}, {}),
        ({**call("do"), "more": 1}, {}),
        ({**call("do"), "params": [1]}, {}),
        (b'{"jsonrpc"', {}),
        (b"\xff\xfe", {}),
        (b"", {}),
        (call("do"), {"headers": {"accept": "application/json"}}),
        (call("do"), {"headers": {"accept": "*/*"}}),
        (call("do"), {"headers": {"accept": "xapplication/json, text/event-streamx"}}),
        (call("do"), {"headers": {"accept": "application/json text/event-stream"}}),
        (call("do"), {"headers": {"Content-Type": "text/plain"}}),
        (call("do"), {"headers": {"Accept": "text/html"}}),
        (call("do"), {"headers": {"mcp-protocol-version": "1", "Mcp-Protocol-Version": "2"}}),
        (call("do"), {"headers": {"content-type": "text/plain"}}),
        (call("do"), {"headers": {"content-type": ""}}),
        (call("do"), {"headers": {"mcp-protocol-version": "2026-07-28"}}),
        (call("do"), {"headers": {"mcp-protocol-version": "1999"}}),
        (call("do"), {"path": "/other"}),
        (call("do"), {"method": "PUT"}),
    ],
)
def test_everything_else_goes_to_the_transport(body: object, more: dict[str, Any]) -> None:
    async def case() -> None:
        async with apps() as (_, transport, direct):
            own = await post(direct, body, **more)
            assert transport.asked == 1
            assert own.whole == (await post(transport, body, **more)).whole

    asyncio.run(asyncio.wait_for(case(), 20))


def test_who_waits_is_told_that_an_answer_is_coming(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_direct, "_SOON_SECONDS", 0.02)
    monkeypatch.setattr(_direct, "_PING_SECONDS", 0.02)

    async def case() -> None:
        async with apps() as (world, _, direct):
            waiting = asyncio.create_task(post(direct, call("wait")))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            world.go_on.set()
            sent = await waiting
            _, _, body = sent.whole
            assert body.startswith(b": ping\r\n\r\n")
            assert body.endswith(b"\r\n\r\n")
            assert b'"id":1,"result"' in body
            assert sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}

    asyncio.run(asyncio.wait_for(case(), 20))


def test_the_call_of_a_client_that_leaves_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_direct, "_SOON_SECONDS", 0.02)

    async def case() -> None:
        async with apps() as (world, _, direct):
            leaves = asyncio.Event()
            asked = asyncio.create_task(post(direct, call("wait"), leaves=leaves))
            await asyncio.sleep(0.1)
            leaves.set()
            await asked
            await asyncio.sleep(0.05)
            assert world.broken_off == 1

    asyncio.run(asyncio.wait_for(case(), 20))
