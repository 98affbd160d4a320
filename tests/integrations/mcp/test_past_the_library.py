"""Calls and lists of tools go past the library's loops and streams, to the same effect."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from opentelemetry.trace import get_current_span
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from test_direct import Counting, Sent, World, call, post

from sopilot.integrations.mcp import lines as _lines
from sopilot.integrations.mcp import upstream_http as _upstream_http
from sopilot.integrations.mcp.checked_upstream import CheckedUpstream
from sopilot.integrations.mcp.direct import Direct
from sopilot.integrations.mcp.server import _where_it_is_traced
from sopilot.integrations.mcp.standard_streams import StandardStreams
from sopilot.integrations.mcp.stateful_clients import Clients
from sopilot.integrations.mcp.upstream_http import UpstreamHttp
from sopilot.integrations.mcp.upstream_process import UpstreamProcess

LEGACY, MODERN = "2025-11-25", "2026-07-28"
INITIALIZE = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {
        "protocolVersion": LEGACY, "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "a", "version": "1"},
    },
}  # fmt: skip
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def cancelling(number: object) -> dict[str, object]:
    params = {"requestId": number}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


class Toy(World):
    """Needs no HTTP request."""

    async def _call(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name == "ask":
            nothing = {"type": "object", "properties": {}}
            given = await ctx.session.elicit_form("Well?", nothing, ctx.request_id)
            return types.CallToolResult(content=[], structured_content={"said": given.action})
        if params.name in ("wait", "tell", "refuse", "break"):
            ctx.request = ctx.request or type("Nobody", (), {"method": "POST"})
            return await super()._call(ctx, params)
        return types.CallToolResult(content=[], structured_content=params.arguments or {})


# --- standard streams -------------------------------------------------------------------


class Lines:
    def __init__(self, read: asyncio.StreamReader, write: int) -> None:
        self._read, self._write = read, write

    def say(self, *messages: object) -> None:
        os.write(self._write, b"".join(json.dumps(one).encode() + b"\n" for one in messages))

    async def hear(self) -> Any:
        return json.loads(await asyncio.wait_for(self._read.readline(), 10))

    async def ask(self, message: object) -> Any:
        self.say(message)
        return await self.hear()


@asynccontextmanager
async def on_streams(toy: Toy) -> AsyncIterator[tuple[Lines, StandardStreams, list[str]]]:
    coming: list[str] = []
    streams = StandardStreams(toy.server, lambda owner, key, params: coming.append(params["name"]))
    toy.server.middleware.append(streams.meet)
    (there, say), (hear, here) = os.pipe(), os.pipe()
    read, write = await streams.connect(there, here)
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(hear, "rb", 0)
    )
    running = asyncio.create_task(
        toy.server.run(read, write, toy.server.create_initialization_options())
    )
    try:
        yield Lines(reader, say), streams, coming
    finally:
        os.close(say)
        await asyncio.wait_for(running, 10)
        await streams.close()
        transport.close()


def run(case: Callable[[], Awaitable[None]]) -> None:
    async def timed() -> None:
        await asyncio.wait_for(case(), 30)

    asyncio.run(timed())


def test_a_client_that_has_initialized_is_answered_past_the_loop() -> None:
    async def case() -> None:
        toy = Toy()
        async with on_streams(toy) as (client, _, coming):
            early = await client.ask(call("do", 9))
            assert early["error"]["code"] == types.INVALID_PARAMS
            assert coming == []
            assert (await client.ask(INITIALIZE))["result"]["protocolVersion"] == LEGACY
            client.say(INITIALIZED)
            done = await client.ask(call("do", 1, arguments={"n": 1, "nothing": None}))
            assert done["id"] == 1
            assert done["result"]["structuredContent"] == {"n": 1, "nothing": None}
            assert coming == ["do"]
            assert (await client.ask(call("refuse", "r")))["error"]["data"] == {"why": "é"}
            assert (await client.ask(call("break", 2)))["error"] == {
                "code": 0,
                "message": "it broke",
            }
            assert "error" in await client.ask(call("do", 3, _meta=ENVELOPE))
            odd = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": []}
            refused = await client.ask(odd)
            assert (refused["id"], refused["error"]["code"]) == (7, types.INVALID_REQUEST)
            assert coming == ["do", "refuse", "break"]
            # What the server asks back goes to the library's loop, and comes back from there.
            asked = await client.ask(call("ask", 4))
            assert asked["method"] == "elicitation/create"
            said = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}
            assert (await client.ask(said))["result"]["structuredContent"] == {"said": "decline"}
            token = {"progressToken": "t"}
            assert (await client.ask(call("tell", 5, _meta=token)))["params"]["progress"] == 0.5
            assert (await client.hear())["params"]["progress"] == 1
            assert (await client.hear())["id"] == 5

    run(case)


def test_a_client_with_an_envelope_is_answered_past_the_loop() -> None:
    async def case() -> None:
        toy = Toy()
        async with on_streams(toy) as (client, _, coming):
            discover = {"method": "server/discover", "params": {"_meta": ENVELOPE}}
            await client.ask({"jsonrpc": "2.0", "id": 0, **discover})
            done = await client.ask(call("do", 1, arguments={"n": 1}, _meta=ENVELOPE))
            assert done["result"]["resultType"] == "complete"
            assert coming == ["do"]
            refused = await client.ask(call("do", 2))
            assert refused["error"]["code"] == types.INVALID_PARAMS
            nobody = await client.ask(call("ask", 3, _meta=ENVELOPE))
            assert "error" in nobody
            hidden = await client.ask(call("break", 4, _meta=ENVELOPE))
            assert hidden["error"]["code"] == types.INTERNAL_ERROR

    run(case)


@pytest.mark.parametrize("number", [7, "7", "a"])
def test_a_cancelled_call_is_broken_off_and_not_answered(number: object) -> None:
    async def case() -> None:
        toy = Toy()
        async with on_streams(toy) as (client, _, _):
            await client.ask(INITIALIZE)
            client.say(INITIALIZED, call("wait", number))
            assert (await client.ask(call("do", 8)))["id"] == 8
            client.say(cancelling(number))
            assert (await client.ask(call("do", 9)))["id"] == 9
            assert toy.broken_off == 1
            client.say(call("wait", number))  # and one that is under way when the client leaves

    run(case)


# --- over HTTP, with a connection -------------------------------------------------------


class Owned:
    """Says who asks, as the gatekeeper does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
        from mcp.server.auth.provider import AccessToken

        named = dict(scope["headers"]).get(b"authorization", b"anna").decode()
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=named, scopes=[]))
        await self._app(scope, receive, send)


@asynccontextmanager
async def connected(
    toy: Toy, *, listening: bool = True
) -> AsyncIterator[tuple[ASGIApp, Counting, dict[str, str]]]:
    app = toy.server.streamable_http_app()
    async with app.router.lifespan_context(app):
        counting = Counting(app)
        clients = Clients(counting)
        toy.server.middleware.append(clients.meet)
        direct = Owned(Direct(clients, toy.server, clients=clients))
        _, headers, _ = (await post(direct, INITIALIZE)).whole
        session = {"mcp-session-id": dict(headers)[b"mcp-session-id"].decode()}
        session["mcp-protocol-version"] = LEGACY
        await post(direct, INITIALIZED, session)
        leaves = asyncio.Event()
        stream = asyncio.create_task(
            post(direct, b"", {**session, "accept": "text/event-stream"}, method="GET",
                 leaves=leaves)
        )  # fmt: skip
        if not listening:
            leaves.set()
        await asyncio.sleep(0.1)
        counting.asked = 0
        try:
            yield direct, counting, session
        finally:
            leaves.set()
            await asyncio.wait({stream}, timeout=5)


def said(sent: Sent) -> Any:
    return json.loads(sent.whole[2].rpartition(b"data: ")[2])


def test_a_client_that_listens_is_answered_past_the_transport() -> None:
    async def case() -> None:
        async with connected(Toy()) as (app, counting, session):
            sent = await post(app, call("do", 1, arguments={"n": 1}), session)
            assert said(sent)["result"]["structuredContent"] == {"n": 1}
            assert (b"mcp-session-id", session["mcp-session-id"].encode()) in sent.whole[1]
            assert counting.asked == 0
            other = {**session, "authorization": "bert"}
            assert (await post(app, call("do", 2), other)).whole[0] == 404
            assert (await post(app, call("do", 2), {**session, "mcp-session-id": "x"})).whole[
                0
            ] == 404
            assert counting.asked == 2

    run(case)


def test_a_client_that_does_not_listen_is_the_transport_s() -> None:
    """It would be taken for idle."""

    async def case() -> None:
        async with connected(Toy(), listening=False) as (app, counting, session):
            assert said(await post(app, call("do", 1), session))["id"] == 1
            assert counting.asked == 1

    run(case)


def test_what_the_server_asks_is_answered_by_whom_it_asked() -> None:
    async def case() -> None:
        async with connected(Toy()) as (app, _, session):
            heard: asyncio.Queue[Any] = asyncio.Queue()

            async def asking() -> Sent:
                sent = Watched(heard)
                return await post(app, call("ask", 1), session, into=sent)

            asked = asyncio.create_task(asking())
            question = await heard.get()
            reply = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
            forged = await post(app, reply, {**session, "authorization": "bert"})
            assert forged.whole[0] == 404
            assert not asked.done()
            assert (await post(app, reply, session)).whole[0] == 202
            assert said(await asked)["result"]["structuredContent"] == {"said": "decline"}

    run(case)


def test_a_call_that_is_cancelled_over_http_ends_without_an_answer() -> None:
    async def case() -> None:
        toy = Toy()
        async with connected(toy) as (app, _, session):
            waiting = asyncio.create_task(post(app, call("wait", 5), session))
            await asyncio.sleep(0.05)
            await post(app, cancelling(5), session)
            assert (await waiting).whole[2] == b""
            assert toy.broken_off == 1

    run(case)


class Watched(Sent):
    def __init__(self, heard: asyncio.Queue[Any]) -> None:
        super().__init__()
        self._heard = heard

    def append(self, message: Message) -> None:
        super().append(message)
        if b"data: " in message.get("body", b""):
            self._heard.put_nowait(json.loads(message["body"].partition(b"data: ")[2]))


# --- upstream over HTTP -----------------------------------------------------------------


class Script:
    """A server that answers each request with the next of its lines, ``{id}`` filled in."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.connections = 0
        self.pieces = 0
        """How many bytes are sent at once; 0: all."""
        self.left = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self._answers:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
                asked = json.loads(await reader.readexactly(length))
                answer = self._answers.pop(0).replace("{id}", asked["id"])
                if answer in ("hang", "close"):
                    await (reader.read() if answer == "hang" else asyncio.sleep(0))
                    return
                status, _, rest = answer.partition("|")
                kind, _, body = rest.partition("|")
                said = (
                    f"HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\n"
                    f"content-length: {len(body.encode())}\r\n\r\n{body}"
                ).encode()
                size = self.pieces or len(said)
                for begin in range(0, len(said), size):
                    writer.write(said[begin : begin + size])
                    await asyncio.sleep(0.001 if self.pieces else 0)
            await reader.read()
        except asyncio.IncompleteReadError:
            pass
        finally:
            self.left.set()
            writer.close()


JSON_ANSWER = '200|application/json|{"jsonrpc":"2.0","id":"{id}","result":{"n":1}}'
EVENTS = (
    '200|text/event-stream|event: message\r\ndata: {"jsonrpc":"2.0",'
    '"method":"notifications/message","params":{"level":"info","data":1}}\r\n\r\nid: 3\ndata:\n\n'
    'data: {"jsonrpc":"2.0","id":"{id}",\r\ndata: "result":{"n":2}}\r\n\r\n'
)


@asynccontextmanager
async def upstream(*answers: str) -> AsyncIterator[tuple[UpstreamHttp, Script, list[Any]]]:
    script, told = Script(*answers), list[Any]()
    server = await asyncio.start_server(script, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def tell(message: dict[str, Any]) -> None:
        told.append(message)

    wire = UpstreamHttp(f"http://127.0.0.1:{port}/mcp?a=b", {"X-Key": "k"}, 5.0, tell)
    try:
        yield wire, script, told
    finally:
        wire.close()
        server.close()


def ask(wire: UpstreamHttp) -> asyncio.Future[dict[str, Any]]:
    return wire.ask("tools/call", {"name": "do"}, {"mcp-method": "tools/call"}, None)


def test_answers_come_as_json_or_as_events_on_one_connection() -> None:
    async def case() -> None:
        async with upstream(JSON_ANSWER, EVENTS, JSON_ANSWER) as (wire, script, told):
            assert [await ask(wire) for _ in range(3)] == [{"n": 1}, {"n": 2}, {"n": 1}]
            assert script.connections == 1
            await asyncio.sleep(0)
            assert [one["method"] for one in told] == ["notifications/message"]
            assert not wire.off

    run(case)


@pytest.mark.parametrize(
    ("answer", "code", "off"),
    [
        ('400|application/json|{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no"}}',
         types.INVALID_PARAMS, False),
        ("404|text/plain|no", types.METHOD_NOT_FOUND, False),
        ("500|text/plain|no", types.INTERNAL_ERROR, False),
        ("307|text/plain|", types.INVALID_REQUEST, True),
        ("202|text/plain|", types.INVALID_REQUEST, False),
        ("200|application/json|{", types.PARSE_ERROR, False),
        ('200|application/json|{"jsonrpc":"2.0","id":"else","result":{}}',
         types.CONNECTION_CLOSED, False),
        ("200|text/event-stream|data: \n\n", types.CONNECTION_CLOSED, False),
        ("close", types.CONNECTION_CLOSED, False),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_an_error(answer: str, code: int, off: bool) -> None:
    async def case() -> None:
        async with upstream(answer) as (wire, _, _):
            with pytest.raises(MCPError) as raised:
                await ask(wire)
            assert raised.value.error.code == code
            assert wire.off is off

    run(case)


def test_events_may_come_in_any_pieces() -> None:
    async def case() -> None:
        async with upstream(EVENTS) as (wire, script, told):
            script.pieces = 1
            assert await ask(wire) == {"n": 2}
            assert len(told) == 1

    run(case)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_an_answer_without_an_end_is_none(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_upstream_http, "LONGEST", 1000)

    async def case() -> None:
        async with upstream(f"200|{kind}|{'x' * 5000}", JSON_ANSWER) as (wire, _, _):
            with pytest.raises(MCPError, match="without an end"):
                await ask(wire)
            assert await ask(wire) == {"n": 1}

    run(case)


def test_a_server_whose_line_has_no_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lines, "LONGEST", 1000)
    endless = "import sys, time; sys.stdout.write('x' * 5000); sys.stdout.flush(); time.sleep(60)"

    async def case() -> None:
        process = UpstreamProcess([sys.executable, "-c", endless], os.environ)
        async with process as (read, write), read, write:
            with pytest.raises(MCPError, match="closed"):
                await asyncio.wait_for(process.ask("tools/list", {}, {}, None), 20)

    run(case)


def test_to_cancel_is_to_hang_up() -> None:
    async def case() -> None:
        async with upstream("hang", JSON_ANSWER) as (wire, script, _):
            asked = ask(wire)
            await asyncio.sleep(0.1)
            asked.cancel()
            await asyncio.wait_for(script.left.wait(), 5)
            assert await ask(wire) == {"n": 1}
            assert script.connections == 2

    run(case)


def test_a_header_that_would_be_two_is_not_sent() -> None:
    async def case() -> None:
        async with upstream() as (wire, script, _):
            with pytest.raises(MCPError):
                wire.ask("tools/call", {}, {"mcp-name": "a\r\nx: y"}, None)
            assert script.connections == 0

    run(case)


# --- what a look compares ---------------------------------------------------------------


def test_true_and_1_are_not_the_same_in_a_schema() -> None:
    class Listed:
        connected, generation = True, 1
        found: Any = True

        async def tools(self, link: object = None) -> list[types.Tool]:
            return [types.Tool(name="t", input_schema={"type": "object", "const": self.found})]

    async def case() -> None:
        listed, compared = Listed(), list[Any]()
        checked = CheckedUpstream(listed, lambda found: compared.append(found))  # type: ignore[arg-type]
        for found in (True, True, 1, 1.0):
            listed.found = found
            await checked.check()
        assert len(compared) == 3

    run(case)


def test_the_library_still_has_what_is_taken_from_it() -> None:
    """Without these two private names nothing goes past it any more, and calls are slow again."""
    from mcp.client.session import ClientSession
    from mcp.server.connection import Connection
    from mcp.server.session import ServerSession

    read, write = anyio.create_memory_object_stream[Any](0)
    assert callable(getattr(ClientSession(write, read), "_stamp", None))
    connection = Connection.from_envelope(LEGACY, None, None)
    assert ServerSession(None, connection)._connection is connection  # type: ignore[arg-type]
    read.close()
    write.close()


def test_spans_are_made_for_requests_that_are_part_of_a_trace() -> None:
    (spans,) = Server[Any]("x").middleware
    traced = _where_it_is_traced(spans)
    assert traced is not spans
    assert _where_it_is_traced(traced) is traced

    async def span_of(meta: dict[str, Any] | None) -> str:
        async def call_next(ctx: Any) -> Any:
            return f"{get_current_span().get_span_context().trace_id:032x}"

        about = SimpleNamespace(
            meta=meta, params={}, method="tools/call", protocol_version="x", request_id=1
        )
        return str(await traced(about, call_next))

    trace = "0af7651916cd43dd8448eb211c80319c"
    told = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    assert asyncio.run(span_of(told)) == trace
    assert asyncio.run(span_of({"other": 1})) == asyncio.run(span_of(None)) == "0" * 32
