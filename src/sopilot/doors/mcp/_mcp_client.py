"""What is asked of one upstream server, and how its answers are understood."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine, Mapping
from functools import cache
from typing import Any, TypeVar

import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, TypeAdapter, ValidationError

from sopilot.doors.mcp._call_link import CallLink
from sopilot.doors.mcp._content import KEY_META
from sopilot.doors.mcp._kept_connection import KeptConnection, UpstreamFailed
from sopilot.language.diagnostics import RunEnded
from sopilot.runtime.session.protocols import JSON

_DEFINITE = frozenset({types.INVALID_PARAMS, types.METHOD_NOT_FOUND})
"""Errors by which a server says that it did nothing."""
_MOST_PAGES = 100
_MOST_ROUNDS = 10
"""In which a server may ask for something before it does what it was asked for."""
_LOG_LEVEL = "io.modelcontextprotocol/logLevel"

Answer = TypeVar("Answer", bound=BaseModel)
Page = TypeVar("Page", bound=types.PaginatedResult)
Listing = TypeVar(
    "Listing",
    types.ListToolsRequest,
    types.ListResourcesRequest,
    types.ListResourceTemplatesRequest,
    types.ListPromptsRequest,
)


class McpRefused(RunEnded):
    """The server answered that it did not carry the call out."""


class McpUpstream(KeptConnection):
    async def tools(self, link: CallLink | None = None) -> list[types.Tool]:
        pages = self.pages(types.ListToolsRequest, types.ListToolsResult, link)
        return [tool async for page in pages for tool in page.tools]

    async def pages(
        self, request: type[Listing], answer: type[Page], link: CallLink | None = None
    ) -> AsyncIterator[Page]:
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor)
            page = await self.ask(request(params=params), answer, link)
            yield page
            cursor = page.next_cursor
            if not cursor:
                return
        raise UpstreamFailed(f"`{self.spec.name}` lists without end")

    async def can(self) -> types.ServerCapabilities:
        return (await self._connected()).server_capabilities

    async def call(
        self,
        name: str,
        arguments: Mapping[str, JSON],
        link: CallLink | None = None,
        *,
        key: str = "",
        generation: int | None = None,
    ) -> types.CallToolResult:
        """Raises ``McpRefused`` for a call that was not carried out, ``UpstreamFailed``
        where that cannot be known: a lost connection, no answer in time, a cancellation.
        With a ``generation`` the call is made on that connection or not at all. The ``key``
        goes with it: people ask the server by it how the call ended."""
        # Not the client's own `call_tool`: it keeps results back that do not fit their schema.
        meta: Any = {KEY_META: key} if key else None
        params = types.CallToolRequestParams(name=name, arguments=dict(arguments), _meta=meta)
        request = types.CallToolRequest(params=params)
        return await self.ask(request, types.CallToolResult, link, generation=generation)

    async def ask(
        self,
        request: types.ClientRequest,
        answer: type[Answer],
        link: CallLink | None = None,
        *,
        generation: int | None = None,
    ) -> Answer:
        client = await self._connected()
        if generation is not None and generation != self.generation:
            raise McpRefused(f"the connection to `{self.spec.name}` was lost before the call")
        relay = link.relay if link is not None else None
        if relay is not None:
            self._under_way.append(relay)
        what = getattr(request.params, "name", None) or request.method
        try:
            return await self._answer(what, self._rounds(client, request, answer, link), link)
        finally:
            if relay is not None:
                self._under_way.remove(relay)

    async def _rounds(
        self,
        client: Client,
        request: types.ClientRequest,
        answer: type[Answer],
        link: CallLink | None,
    ) -> Answer:
        """Since 2026-07-28 a server that needs something first says so, and is asked again."""
        progress = link.progress if link is not None else None
        modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
        if modern and self.log_level is not None and request.params is not None:
            meta = {**(request.params.meta or {}), _LOG_LEVEL: self.log_level}
            request = _changed(request, meta=meta)
        wanted = _or_more_asked(answer) if modern else answer
        for _ in range(_MOST_ROUNDS):
            found = await client.session.send_request(request, wanted, progress_callback=progress)
            if not isinstance(found, types.InputRequiredResult):
                given: Answer = found
                return given
            responses = {}
            for key, one in (found.input_requests or {}).items():
                about = ClientRequestContext(session=client.session, request_id=key)
                said = await client.session.dispatch_input_request(about, one)
                if isinstance(said, types.ErrorData):
                    raise McpRefused(f"`{self.spec.name}` needs more: {said.message}")
                responses[key] = said
            request = _changed(
                request, input_responses=responses or None, request_state=found.request_state
            )
        raise McpRefused(f"`{self.spec.name}` asks without end")

    async def set_log_level(self, level: types.LoggingLevel) -> None:
        """Also of connections that are made later."""
        self.log_level = level
        client = await self._connected()
        if client.server_capabilities.logging is None:
            return
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            params = types.SetLevelRequestParams(level=level)
            await self.ask(types.SetLevelRequest(params=params), types.EmptyResult)

    async def _answer(
        self, what: str, request: Coroutine[Any, Any, Answer], link: CallLink | None
    ) -> Answer:
        """In time, unless the client gives up before, where that does no harm."""
        asked = asyncio.ensure_future(request)
        spoilt = asyncio.get_running_loop().create_future()
        waits: set[asyncio.Future[Any]] = {asked, spoilt}
        stop: asyncio.Task[Any] | None = None
        self._asked.append(spoilt)
        if link is not None and not link.irreversible:
            stop = asyncio.create_task(link.cancelled.wait())
            waits.add(stop)
        try:
            await asyncio.wait(waits, timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                why = f"there was no answer within {self._timeout:g} s"
                if stop is not None and stop.done():
                    why = "it was cancelled"
                elif spoilt.done():
                    why = "its answer cannot be read"
                raise UpstreamFailed(f"`{what}` of `{self.spec.name}`: {why}")
            return await self._understood(asked)
        finally:
            self._asked.remove(spoilt)
            if stop is not None:
                stop.cancel()
            if not asked.done():
                # Abandoning the request tells the server that it is cancelled.
                asked.cancel()
                await asyncio.wait({asked}, timeout=5)

    async def _understood(self, asked: Awaitable[Answer]) -> Answer:
        try:
            return await asked
        except McpRefused:
            raise
        except MCPError as problem:
            if problem.error.code in _DEFINITE:
                raise McpRefused(problem.error.message) from None
            if problem.error.code == types.CONNECTION_CLOSED:
                await self.close()
            raise UpstreamFailed(f"`{self.spec.name}`: {problem.error.message}") from None
        except ValidationError as problem:
            first = problem.errors()[0]["msg"]
            raise UpstreamFailed(f"`{self.spec.name}` gave no answer of MCP: {first}") from None
        except (OSError, httpx2.HTTPError, RuntimeError) as problem:
            await self.close()
            raise UpstreamFailed(f"`{self.spec.name}`: {problem}") from None


@cache
def _or_more_asked(answer: type[Answer]) -> TypeAdapter[Any]:
    shape: Any = answer | types.InputRequiredResult
    return TypeAdapter(shape)


def _changed(request: types.ClientRequest, **fields: object) -> types.ClientRequest:
    assert request.params is not None
    params = request.params.model_copy(update=fields)
    return request.model_copy(update={"params": params})
