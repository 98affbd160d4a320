"""A server on standard streams.

A plain ``tools/call`` of a client that the library knows is answered past its message loop
(``_single_calls``); everything else is the loop's.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.transport_context import TransportContext
from mcp_types import INVALID_REQUEST, PROTOCOL_VERSION_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from sopilot.integrations.logs import LOG
from sopilot.integrations.mcp.clients import LOCAL, STDIO
from sopilot.integrations.mcp.lines import Lines
from sopilot.integrations.mcp.single_calls import CALL, Call, Coming, Exchange, answer, plain_call

_CANCELLED = "notifications/cancelled"


_DUPLEX = TransportContext(kind="jsonrpc", can_send_request=True)


_ONE_WAY = TransportContext(kind="jsonrpc", can_send_request=False)


async def serve_standard_streams(server: Server[Any], coming: Coming) -> None:
    """Until the client leaves."""
    options = server.create_initialization_options()
    if not _are_pipes():
        async with stdio_server() as (read, write):
            await server.run(read, write, options)
        return
    streams = StandardStreams(server, coming)
    server.middleware.append(streams.meet)
    with _claimed() as (incoming, outgoing):
        try:
            read, write = await streams.connect(incoming, outgoing)
            await server.run(read, write, options)
        finally:
            server.middleware.remove(streams.meet)
            await streams.close()


class StandardStreams(Lines, asyncio.Protocol):
    def __init__(self, server: Server[Any], coming: Coming) -> None:
        super().__init__()
        self._coming = coming
        self._server = server
        self._client: Connection | None = None
        """As the library last met it."""
        self._envelope: tuple[str, Any, Any] | None = None
        self._enveloped: Connection
        """The client as it says of itself with every request, since 2026-07-28."""
        self._calls: dict[str | int, asyncio.Task[None]] = {}

    async def connect(self, incoming: int, outgoing: int) -> Any:
        loop = asyncio.get_running_loop()
        reading, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(incoming, "rb", 0))
        writing, _ = await loop.connect_write_pipe(
            lambda: _Writing(self), os.fdopen(outgoing, "wb", 0)
        )
        self.incoming, self.outgoing = reading, writing
        return self.open()

    async def close(self) -> None:
        for call in tuple(self._calls.values()):
            call.cancel()
        await self.said()
        self.incoming.close()
        self.outgoing.close()

    async def meet(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Whatever the library handles comes by here."""
        self._client = getattr(ctx.session, "_connection", None)
        return await call_next(ctx)

    # --- what comes -----------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self.read(data)

    def eof_received(self) -> None:
        self.ended()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended()

    def take(self, message: Any) -> bool:
        call = plain_call(message)
        if call is not None:
            return self._answered(call)
        if type(message) is dict and message.get("method") == _CANCELLED:
            named = cancelled_request_id_from_params(_mapping(message.get("params")))
            running = self._calls.get(coerce_request_id(named)) if named is not None else None
            if running is not None:
                running.cancel()
                return True
        return False

    def take_unreadable(self, line: bytes, value: Any) -> bool:
        """The library is silent about it, and whoever asked would wait."""
        asked = _mapping(value)
        named = asked.get("id")
        if "method" not in asked or isinstance(named, bool) or not isinstance(named, int | str):
            return False
        error = {"code": INVALID_REQUEST, "message": "this is no request of MCP"}
        self.write_now({"jsonrpc": "2.0", "id": named, "error": error})
        return True

    def _answered(self, call: Call) -> bool:
        client = self._client
        if client is None:
            return False
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            route = classify_inbound_request({"method": CALL, "params": call.params})
            if isinstance(route, InboundLadderRejection):
                return False
            envelope = route.protocol_version, route.client_info, route.client_capabilities
            if envelope != self._envelope:
                # The same client says the same of itself with every request.
                self._enveloped = Connection.from_envelope(*envelope, outbound=client.outbound)
                self._envelope = envelope
            client, exchange = self._enveloped, Exchange(call, _ONE_WAY, self.write)
        else:
            enveloped = PROTOCOL_VERSION_META_KEY in _mapping(call.params.get("_meta"))
            if enveloped or not client.initialize_accepted:
                return False
            exchange = Exchange(call, _DUPLEX, self.write, client.outbound.send_raw_request)
        work = answer(self._server, exchange, client, lasting=True)
        key = coerce_request_id(call.id)
        context = copy_context()
        context.run(self._coming, LOCAL, STDIO, call.params)
        task = self._calls[key] = asyncio.create_task(self._finish(work), context=context)

        def done(task: asyncio.Task[None]) -> None:
            if self._calls.get(key) is task:
                del self._calls[key]
            if not task.cancelled() and (problem := task.exception()) is not None:
                LOG.error("a call was not answered", exc_info=problem)

        task.add_done_callback(done)
        return True

    async def _finish(self, work: Any) -> None:
        await self.write(await work)


class _Writing(asyncio.BaseProtocol):
    """The other pipe's events. A client that reads no more has left."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def connection_lost(self, exc: Exception | None) -> None:
        self._lines.ended()

    def pause_writing(self) -> None:
        self._lines.pause_writing()

    def resume_writing(self) -> None:
        self._lines.resume_writing()


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _are_pipes() -> bool:
    """A file or a terminal is not waited for as a pipe is."""
    if os.name != "posix":
        return False
    try:
        kinds = [os.fstat(one).st_mode for one in (0, 1)]
    except OSError:
        return False
    return all(stat.S_ISFIFO(one) or stat.S_ISSOCK(one) for one in kinds)


@contextmanager
def _claimed() -> Iterator[tuple[int, int]]:
    """The client's pipes, out of the way of whoever reads or prints by mistake: they have nothing
    to read, and print where people look."""
    kept = os.dup(0), os.dup(1)
    given = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield given
    finally:
        for place, one in enumerate(kept):
            os.set_blocking(one, True)
            os.dup2(one, place)
            os.close(one)
