"""A connection to one MCP server, kept by a task of its own, made again when it broke."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from sopilot.doors.mcp._call_link import CallLink
from sopilot.doors.mcp.upstream_spec import UpstreamSpec
from sopilot.language.diagnostics import RunEnded
from sopilot.runtime.session.protocols import JSON

CONNECT_SECONDS = 60.0
_DEFINITE = frozenset({types.INVALID_PARAMS, types.METHOD_NOT_FOUND})
"""Errors by which a server says that it did nothing."""
_MOST_PAGES = 100

Answer = TypeVar("Answer")
ListChanged = Callable[[], Awaitable[None]]


class UpstreamFailed(RunEnded):
    """No answer that could be trusted: nobody knows whether the tool did its work."""


class McpRefused(RunEnded):
    """The server answered that it did not carry the call out."""


class McpUpstream:
    """One client connection. ``on_list_changed`` is told when the server says so."""

    def __init__(
        self,
        spec: UpstreamSpec,
        *,
        timeout_seconds: float = 300.0,
        on_list_changed: ListChanged | None = None,
    ) -> None:
        self.spec = spec
        self.generation = 0
        """Counts the connections that were made."""
        self._timeout = timeout_seconds
        self.on_list_changed = on_list_changed
        self._client: Client | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._connecting = asyncio.Lock()
        self._asked: list[asyncio.Event] = []
        """For every request under way: its answer came, and cannot be read."""

    @property
    def connected(self) -> bool:
        return self._client is not None and self._keeper is not None and not self._keeper.done()

    # --- asking ---------------------------------------------------------------------

    async def tools(self, link: CallLink | None = None) -> list[types.Tool]:
        client = await self._connected()
        found: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._answer("tools/list", client.list_tools(cursor=cursor), link)
            found.extend(page.tools)
            cursor = page.next_cursor
            if not cursor:
                return found
        raise UpstreamFailed(f"`{self.spec.name}` lists tools without end")

    async def call(
        self,
        name: str,
        arguments: Mapping[str, JSON],
        link: CallLink | None = None,
        *,
        generation: int | None = None,
    ) -> types.CallToolResult:
        """Raises ``McpRefused`` for a call that was not carried out, ``UpstreamFailed``
        where that cannot be known: a lost connection, no answer in time, a cancellation.
        With a ``generation`` the call is made on that connection or not at all."""
        client = await self._connected()
        if generation is not None and generation != self.generation:
            raise McpRefused(f"the connection to `{self.spec.name}` was lost before the call")
        # Not the client's own `call_tool`: it keeps results back that do not fit their schema.
        params = types.CallToolRequestParams(name=name, arguments=dict(arguments))
        request = client.session.send_request(
            types.CallToolRequest(params=params),
            types.CallToolResult,
            progress_callback=link.progress if link is not None else None,
        )
        return await self._answer(name, request, link)

    async def _answer(
        self, what: str, request: Coroutine[Any, Any, Answer], link: CallLink | None
    ) -> Answer:
        """In time, unless the client gives up before."""
        asked = asyncio.ensure_future(request)
        garbled = asyncio.Event()
        spoilt = asyncio.create_task(garbled.wait())
        waits: set[asyncio.Future[Any]] = {asked, spoilt}
        stop: asyncio.Task[Any] | None = None
        self._asked.append(garbled)
        if link is not None:
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
            self._asked.remove(garbled)
            spoilt.cancel()
            if stop is not None:
                stop.cancel()
            if not asked.done():
                # Abandoning the request tells the server that it is cancelled.
                asked.cancel()
                await asyncio.wait({asked}, timeout=5)

    async def _understood(self, asked: Awaitable[Answer]) -> Answer:
        try:
            return await asked
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

    # --- the connection -------------------------------------------------------------

    async def _connected(self) -> Client:
        async with self._connecting:
            if not self.connected:
                await self._connect()
            assert self._client is not None
            return self._client

    async def _connect(self) -> None:
        """The client's scopes must be left by the task that entered them: hence a keeper."""
        self._stop = asyncio.Event()
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._keeper = asyncio.create_task(self._keep(ready, self._stop))
        try:
            self._client = await asyncio.wait_for(asyncio.shield(ready), CONNECT_SECONDS)
        except UpstreamFailed:
            self._keeper = None
            raise
        except (TimeoutError, asyncio.CancelledError) as given_up:
            self._stop.set()
            self._keeper.cancel()
            if isinstance(given_up, asyncio.CancelledError):
                raise
            raise UpstreamFailed(
                f"`{self.spec.name}` did not answer within {CONNECT_SECONDS:g} s"
            ) from None
        self.generation += 1

    async def _keep(self, ready: asyncio.Future[Client], stop: asyncio.Event) -> None:
        why = "it broke off"
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(await self._client_for(stack))
                ready.set_result(client)
                if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    await self._listen(client, stop)
                await stop.wait()
        except (OSError, ValueError, RuntimeError, MCPError, httpx2.HTTPError) as problem:
            why = str(problem)
        except BaseExceptionGroup as group:
            why = _innermost(group)
        finally:
            if self._stop is stop:
                self._client = None
            if not ready.done():
                ready.set_exception(UpstreamFailed(f"`{self.spec.name}` cannot be reached: {why}"))

    async def _listen(self, client: Client, stop: asyncio.Event) -> None:
        """Since 2026-07-28 a server tells of changes only to those who listen."""
        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return

        async def listen() -> None:
            try:
                async with client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        if self.on_list_changed is not None:
                            await self.on_list_changed()
            except (MCPError, RuntimeError, OSError):
                return  # the list is compared again at the next listing

        listening = asyncio.create_task(listen())
        try:
            await stop.wait()
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def _client_for(self, stack: AsyncExitStack) -> Client:
        spec = self.spec
        if spec.url:
            http = httpx2.AsyncClient(
                headers=dict(spec.headers),
                timeout=httpx2.Timeout(30.0, read=self._timeout),
                follow_redirects=False,
            )
            await stack.enter_async_context(http)
            return Client(
                streamable_http_client(spec.url, http_client=http, max_sse_event_size=None),
                message_handler=self._message,
                cache=None,
            )
        program, *arguments = spec.command
        return Client(
            StdioServerParameters(
                command=program,
                args=arguments,
                env={**get_default_environment(), **spec.environment},
            ),
            message_handler=self._message,
            cache=None,
        )

    async def _message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification) and self.on_list_changed:
            await self.on_list_changed()
        # Which request it answers is not known here: with several, all wait for their time.
        if isinstance(message, ValidationError) and len(self._asked) == 1 and _answers(message):
            self._asked[0].set()

    async def close(self) -> None:
        keeper, self._keeper = self._keeper, None
        self._client = None
        self._stop.set()
        if keeper is not None and keeper is not asyncio.current_task():
            await asyncio.wait({keeper}, timeout=10)
            if not keeper.done():
                keeper.cancel()


def _answers(problem: ValidationError) -> bool:
    """Whether a line that is no message was meant as an answer, and not just printed."""
    try:
        line = json.loads(str(problem.errors(include_url=False)[0]["input"]))
    except (ValueError, RecursionError):
        return False
    return isinstance(line, dict) and "id" in line and ("result" in line or "error" in line)


def _innermost(problem: BaseException) -> str:
    while isinstance(problem, BaseExceptionGroup) and problem.exceptions:
        problem = problem.exceptions[0]
    return str(problem) or type(problem).__name__
