"""Answers that are none: whoever waits for one is told so at once, and nobody else is."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from mcp.shared.exceptions import MCPError
from test_past_the_library import JSON_ANSWER, ask, upstream

from sopilot.integrations.mcp import asking as _asking
from sopilot.integrations.mcp import upstream_http as _upstream_http
from sopilot.integrations.mcp.asking import Waiting
from sopilot.integrations.mcp.upstream_http import UpstreamHttp
from sopilot.integrations.mcp.upstream_process import UpstreamProcess

Case = Callable[[], Awaitable[None]]


def run(case: Case) -> None:
    async def timed() -> None:
        async with asyncio.timeout(20):
            await case()

    asyncio.run(timed())


SPOILT = {
    "both": b'{"jsonrpc":"2.0","id":"ID","result":{},"error":{"code":1,"message":"x"}}',
    "neither": b'{"jsonrpc":"2.0","id":"ID"}',
    "a list": b'{"jsonrpc":"2.0","id":"ID","result":[]}',
    "no error": b'{"jsonrpc":"2.0","id":"ID","error":null}',
    "an odd error": b'{"jsonrpc":"2.0","id":"ID","error":{"code":"x"}}',
    "another protocol": b'{"jsonrpc":"1.0","id":"ID","result":{}}',
    "many digits": b'{"jsonrpc":"2.0","id": "ID","result":{"n":' + b"9" * 5000 + b"}}",
    "a mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","id":"ID","result":{}}',
    "no text": b'{"jsonrpc":"2.0","id":"ID","result":{"a":"\xff"}}',
    "half a pair": b'{"jsonrpc":"2.0","id":"ID","result":{"a":"\\ud800"}}',
    "depth": b'{"jsonrpc":"2.0","id":"ID","result":' + b'{"a":' * 3000 + b"1" + b"}" * 3001,
}


class Fed(UpstreamProcess):
    """Two requests under way, and what comes is given by hand."""

    def __init__(self) -> None:
        super().__init__((), {})
        self.first = self._waiting.begin({}, None)[1]
        self.second = self._waiting.begin({}, None)[1]


@pytest.mark.parametrize("what", SPOILT)
def test_who_waits_for_it_is_told_though_others_wait_too(what: str) -> None:
    async def case() -> None:
        fed = Fed()
        fed.read(SPOILT[what].replace(b"ID", b"sopilot-2") + b"\n")
        assert not fed.first.done()
        with pytest.raises(MCPError, match="cannot be read"):
            await fed.second
        fed.read(b'{"jsonrpc":"2.0","id":"sopilot-1","result":{"a":1}}\n')
        assert await fed.first == {"a": 1}

    run(case)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\\ud800","of":'
        b'"sopilot-1"}}',
        b'"id":"sopilot-1" and "id":"sopilot-2"',
        b'{"jsonrpc":"2.0","id":"sopilot-1","method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":["sopilot-1"],"result":{}}',
    ],
)
def test_what_is_nobody_s_answer_spoils_none(line: bytes) -> None:
    async def case() -> None:
        fed = Fed()
        fed.read(line + b"\n")
        assert not fed.first.done()
        assert not fed.second.done()

    run(case)


def test_a_client_that_reads_no_progress_costs_no_memory() -> None:
    async def case() -> None:
        waiting, stuck, told = Waiting(), asyncio.Event(), list[float]()

        async def report(progress: float, total: float | None, message: str | None) -> None:
            await stuck.wait()
            told.append(progress)

        own_id, _ = waiting.begin({}, report)
        for number in (*range(1000), 10**400, float("nan")):
            params = {"progressToken": own_id, "progress": number}
            assert waiting.take({"method": "notifications/progress", "params": params})
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 2
        stuck.set()
        await asyncio.sleep(0.05)
        assert told[-_asking._MOST_REPORTS :] == [*range(900, 1000)]

    run(case)


def test_without_a_connection_nothing_is_sent_and_that_is_known() -> None:
    async def case() -> None:
        process = UpstreamProcess([sys.executable, "-c", ""], {})
        async with process as (read, write), read, write:
            for _ in range(200):
                if process._waiting.closed:
                    break
                await asyncio.sleep(0.02)
            with pytest.raises(_asking.NotSent):
                process.ask("tools/list", {}, {}, None)

    run(case)


# --- over HTTP --------------------------------------------------------------------------


@asynccontextmanager
async def raw(*answers: bytes) -> AsyncIterator[tuple[UpstreamHttp, list[asyncio.StreamReader]]]:
    """A server that sends these bytes, each on a request, and ends nothing by itself. Those that
    were hung up on are at their end."""
    left, peers = list(answers), list[asyncio.StreamReader]()
    writers = list[asyncio.StreamWriter]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(reader)
        writers.append(writer)
        while left:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(left.pop(0))

    async def tell(message: dict[str, Any]) -> None: ...

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    wire = UpstreamHttp(f"http://127.0.0.1:{port}/mcp", {}, 5.0, tell)
    try:
        yield wire, peers
    finally:
        wire.close()
        server.close()
        for writer in writers:
            writer.close()


def response(own_id: str) -> bytes:
    body = b'{"jsonrpc":"2.0","id":"%s","result":{"n":1}}' % own_id.encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


OPEN_EVENTS = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    b'data: {"jsonrpc":"2.0","id":"sopilot-1","result":{"n":1}}\n\n'
)


def test_word_that_an_answer_is_coming_is_none() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"

    async def case() -> None:
        async with raw(early * 2 + response("sopilot-1")) as (wire, _):
            assert await ask(wire) == {"n": 1}

    run(case)


def test_a_stream_that_does_not_end_after_the_answer_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_upstream_http, "_END_SECONDS", 0.05)

    async def case() -> None:
        async with raw(OPEN_EVENTS) as (wire, peers):
            assert await ask(wire) == {"n": 1}
            await _hung_up(peers[0])

    run(case)


def test_what_is_under_way_ends_with_the_connection() -> None:
    async def case() -> None:
        async with raw(b"") as (wire, peers):
            asked = ask(wire)
            while not peers:
                await asyncio.sleep(0.01)
            wire.close()
            with pytest.raises(MCPError):
                await asked
            await _hung_up(peers[0])

    run(case)


def test_a_header_without_an_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_upstream_http, "_LONGEST_HEADER", 1000)

    async def case() -> None:
        async with raw(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 5000) as (wire, _):
            with pytest.raises(MCPError, match="header without an end"):
                await ask(wire)

    run(case)


def test_an_answer_to_another_request_is_none() -> None:
    async def case() -> None:
        async with raw(b"", response("sopilot-1")) as (wire, _):
            first = ask(wire)
            await asyncio.sleep(0.1)
            with pytest.raises(MCPError, match="without a response"):
                await ask(wire)
            assert not first.done()
            first.cancel()

    run(case)


def test_a_connection_that_was_lost_before_it_was_used_is_not_used() -> None:
    async def case() -> None:
        async with upstream(JSON_ANSWER) as (wire, _, _):
            lost = _upstream_http._Exchange()
            await asyncio.get_running_loop().create_connection(lambda: lost, wire._host, wire._port)
            wire.keep(lost)  # who wanted it has left
            lost._transport.abort()
            await asyncio.sleep(0.01)
            assert await asyncio.wait_for(ask(wire), 3) == {"n": 1}

    run(case)


async def _hung_up(peer: asyncio.StreamReader) -> None:
    with suppress(ConnectionResetError):
        while await peer.read(100):
            pass
