"""One upstream MCP server: its connection, its verified tools, and the calls made on it."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cache
from typing import Any, TypeVar

import anyio
import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, TypeAdapter, ValidationError

from sopilot.integrations.mcp.client_call import ELICITATION, ROOTS, SAMPLING, ClientCall, no_client
from sopilot.integrations.mcp.content import KEY_META
from sopilot.integrations.mcp.options import UpstreamSpec
from sopilot.messages.errors import RunEnded
from sopilot.values.json import JSON

CONNECT_SECONDS = 60.0
_RETRY_SECONDS, _MOST_RETRY_SECONDS = 0.5, 30.0
"""Between two attempts to listen for changes."""
_NOT_DONE = frozenset({types.INVALID_PARAMS, types.METHOD_NOT_FOUND})
"""Errors by which a server says that it did nothing."""
_SESSION_GONE = ("Session terminated", "Session not found")
"""How the library words HTTP 404 for a session that the server no longer has."""
_MOST_PAGES = 100
_MOST_ROUNDS = 10
_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
_PASSED_ON = (
    types.LoggingMessageNotification,
    types.ResourceUpdatedNotification,
    types.ResourceListChangedNotification,
    types.PromptListChangedNotification,
)

Value = TypeVar("Value")
Answer = TypeVar("Answer", bound=BaseModel)
Page = TypeVar("Page", bound=types.PaginatedResult)
Listing = TypeVar(
    "Listing",
    types.ListToolsRequest,
    types.ListResourcesRequest,
    types.ListResourceTemplatesRequest,
    types.ListPromptsRequest,
)
Compare = Callable[[Sequence[types.Tool]], object]
Hear = Callable[[types.ServerNotification], Awaitable[None]]


class UpstreamFailed(RunEnded):
    """No answer arrived that can be trusted: the tool may or may not have run."""


class UpstreamRefused(RunEnded):
    """The server answered that it didn't carry the call out, or the call was never sent."""


class Upstream:
    """A client of one server, reconnected when its connection breaks.

    ``compare`` gets every list of tools that differs from the one before. A verified list is
    used for ``recheck_seconds``; it is verified again at once when the server reports a change,
    on another connection, and before every irreversible call. ``connection_id`` names the
    present connection, if there is one: evidence that an earlier one gave is void (P8).
    """

    def __init__(
        self,
        spec: UpstreamSpec,
        compare: Compare = lambda tools: None,
        *,
        timeout_seconds: float = 300.0,
        recheck_seconds: float = 0.0,
    ) -> None:
        self.spec = spec
        self.connection_id = ""
        self.hear: Hear | None = None
        """Gets what the server reports outside of a call."""
        self.compare = compare
        self._timeout = timeout_seconds
        self._recheck_seconds = recheck_seconds
        self._log_level: types.LoggingLevel | None = None
        self._calls: list[ClientCall] = []
        self._client: Client | None = None
        self._modern = False
        self._keeper: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._connecting = asyncio.Lock()
        self._closed = False
        self._verifying = asyncio.Lock()
        self._verified_on = ""
        self._verified_at = -1.0
        self._changed_at = -1.0
        self._tools: list[types.Tool] | None = None
        self._background: asyncio.Task[None] | None = None

    # --- requests -------------------------------------------------------------------

    async def verify(self, call: ClientCall | None = None, *, fresh: bool = True) -> None:
        """Compare the server's tools with the approved ones.

        ``fresh`` demands a list that was requested after this call; concurrent calls share it.
        """
        arrived = self._now
        if not fresh and self._is_verified_since(arrived - self._recheck_seconds):
            return
        async with self._verifying:
            if self._is_verified_since(arrived):
                return
            try:
                await self._verify(call)
            except (UpstreamFailed, UpstreamRefused):
                if self._client is not None:
                    raise
                await self._verify(call)  # the connection was lost: try another

    def _is_verified_since(self, moment: float) -> bool:
        return (
            self._client is not None
            and self._verified_on == self.connection_id
            and self._verified_at > self._changed_at
            and self._verified_at >= moment
        )

    async def _verify(self, call: ClientCall | None) -> None:
        await self.connect()
        requested_at, connection = self._now, self.connection_id
        pages = self.pages(types.ListToolsRequest, types.ListToolsResult, call)
        tools = [tool async for page in pages for tool in page.tools]
        self._verified_at, self._verified_on = requested_at, connection
        if self._tools is None or not _same_tools(tools, self._tools):
            self._tools = tools
            self.compare(tools)

    async def tools(self) -> Sequence[types.Tool]:
        await self.verify()
        return self._tools or ()

    async def call(
        self,
        name: str,
        arguments: Mapping[str, JSON],
        call: ClientCall | None = None,
        *,
        key: str = "",
        connection: str = "",
    ) -> types.CallToolResult:
        """Call a tool, on ``connection`` or not at all if one is named.

        The ``key`` travels along: operators ask the server by it how the call ended.
        """
        meta: Any = {KEY_META: key} if key else None
        params = types.CallToolRequestParams(name=name, arguments=dict(arguments), _meta=meta)
        # Not `call_tool` of the client, which keeps back results that don't fit their schema.
        request = types.CallToolRequest(params=params)
        return await self.ask(request, types.CallToolResult, call, connection=connection)

    async def pages(
        self, request: type[Listing], answer: type[Page], call: ClientCall | None = None
    ) -> AsyncIterator[Page]:
        """All pages of a listing, from one connection."""
        await self.connect()
        connection, params = self.connection_id, types.PaginatedRequestParams()
        for _ in range(_MOST_PAGES):
            page = await self.ask(request(params=params), answer, call, connection=connection)
            yield page
            if not page.next_cursor:
                return
            params = types.PaginatedRequestParams(cursor=page.next_cursor)
        raise UpstreamFailed(f"`{self.spec.name}` sends an endless list")

    async def capabilities(self) -> types.ServerCapabilities:
        return (await self.connect()).server_capabilities

    async def set_log_level(self, level: types.LoggingLevel) -> None:
        """Also for later connections."""
        self._log_level = level
        await self._send_log_level(await self.connect())

    async def ask(
        self,
        request: types.ClientRequest,
        answer: type[Answer],
        call: ClientCall | None = None,
        *,
        connection: str = "",
    ) -> Answer:
        """Send a request. Raise ``UpstreamRefused`` if it wasn't carried out for certain."""
        try:
            client = await self.connect()
        except UpstreamFailed as problem:
            raise UpstreamRefused(str(problem)) from None
        if connection and connection != self.connection_id:
            raise UpstreamRefused(
                f"the connection to `{self.spec.name}` was lost before the call; call it again"
            )
        if call is not None:
            self._calls.append(call)
        try:
            return await self._understood(self._rounds(client, request, answer, call))
        finally:
            if call is not None:
                self._calls.remove(call)

    async def _rounds(
        self,
        client: Client,
        request: types.ClientRequest,
        answer: type[Answer],
        call: ClientCall | None,
    ) -> Answer:
        """Since 2026-07-28 a server that needs something first says so, and is asked again."""
        params: Any = request.params
        if self._modern and self._log_level is not None:
            params.meta = {**(params.meta or {}), _LOG_LEVEL: self._log_level}
        shape = _or_input_required(answer) if self._modern else TypeAdapter(answer)
        progress = call.report_progress if call is not None else None
        connection = self.connection_id
        for _ in range(_MOST_ROUNDS):
            sending = client.session.send_request(
                request, shape, self._timeout, progress_callback=progress
            )
            result = await self._unless_cancelled(sending, call)
            if not isinstance(result, types.InputRequiredResult):
                complete: Answer = result
                return complete
            responses = {}
            for key, question in (result.input_requests or {}).items():
                context = ClientRequestContext(session=client.session, request_id=key)
                asking = client.session.dispatch_input_request(context, question)
                response = await self._unless_cancelled(asking, call)
                if isinstance(response, types.ErrorData):
                    raise UpstreamRefused(f"`{self.spec.name}` needs more: {response.message}")
                responses[key] = response
            if self.connection_id != connection:
                raise UpstreamRefused(f"the connection to `{self.spec.name}` was lost in the call")
            params = params.model_copy(
                update={"input_responses": responses or None, "request_state": result.request_state}
            )
            request = request.model_copy(update={"params": params})
        raise UpstreamRefused(f"`{self.spec.name}` never stops asking")

    async def _unless_cancelled(
        self, work: Coroutine[Any, Any, Value], call: ClientCall | None
    ) -> Value:
        """Stop waiting when the client gives up, unless the call can't be undone."""
        if call is None or call.irreversible:
            return await work
        task = asyncio.ensure_future(work)
        with call.on_cancel(task.cancel):
            if call.cancelled:
                task.cancel()
            try:
                return await task
            except asyncio.CancelledError:
                if call.cancelled and task.cancelled():
                    raise UpstreamFailed(f"`{self.spec.name}`: the call was cancelled") from None
                raise
            finally:
                task.cancel()

    async def _understood(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        name = self.spec.name
        try:
            return await work
        except MCPError as problem:
            code, message = problem.error.code, problem.error.message
            if code in _NOT_DONE:
                raise UpstreamRefused(message) from None
            if code == types.CONNECTION_CLOSED:
                await self._drop()
            if code == types.INVALID_REQUEST and message in _SESSION_GONE:
                await self._drop()
                raise UpstreamRefused(f"`{name}` has ended this connection; call again") from None
            raise UpstreamFailed(f"`{name}`: {message}") from None
        except ValidationError as problem:
            first = problem.errors()[0]["msg"]
            raise UpstreamFailed(f"`{name}` sent an invalid answer: {first}") from None
        except (OSError, httpx2.HTTPError, RuntimeError) as problem:
            if isinstance(problem, UpstreamFailed | UpstreamRefused):
                raise
            await self._drop()
            raise UpstreamFailed(f"`{name}`: {problem}") from None

    # --- connection -----------------------------------------------------------------

    async def connect(self) -> Client:
        if self._client is not None:
            return self._client
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect()
                self._renew()
            return self._client

    async def _connect(self) -> Client:
        """The client's scopes must be left by the task that entered them: the keeper."""
        stop = self._stop = asyncio.Event()
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        keeper = self._keeper = asyncio.create_task(self._keep(ready, stop))
        try:
            return await asyncio.wait_for(asyncio.shield(ready), CONNECT_SECONDS)
        except TimeoutError:
            message = f"`{self.spec.name}` did not answer within {CONNECT_SECONDS:g} s"
            raise UpstreamFailed(message) from None
        finally:
            if not ready.done() or ready.cancelled() or ready.exception() is not None:
                stop.set()
                keeper.cancel()

    def _renew(self) -> None:
        self.connection_id = secrets.token_hex(8)

    def _forget(self) -> None:
        self._client, self.connection_id = None, ""

    async def _keep(self, ready: asyncio.Future[Client], stop: asyncio.Event) -> None:
        problem: object = "it was interrupted"
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._new_client(stack, stop))
                self._modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
                await self._send_log_level(client)
                if not ready.done():
                    ready.set_result(client)
                if self._modern:
                    await self._listen(client, stop)
                await stop.wait()
        except (OSError, ValueError, RuntimeError, MCPError, httpx2.HTTPError) as raised:
            problem = raised
        except BaseExceptionGroup as group:
            problem = _innermost(group)
        finally:
            if self._stop is stop:
                self._forget()
            if not ready.done():
                message = f"`{self.spec.name}` cannot be reached: {problem}"
                ready.set_exception(UpstreamFailed(message))

    def _new_client(self, stack: AsyncExitStack, stop: asyncio.Event) -> Client:
        if self.spec.url:
            http = httpx2.AsyncClient(
                headers=dict(self.spec.headers),
                timeout=httpx2.Timeout(30.0, read=self._timeout),
                follow_redirects=False,
            )
            stack.push_async_exit(http)
            transport: Any = streamable_http_client(
                self.spec.url, http_client=http, max_sse_event_size=None
            )
        else:
            program, *arguments = self.spec.command
            parameters = StdioServerParameters(
                command=program,
                args=arguments,
                env=dict(self.spec.environment),
                encoding_error_handler="replace",  # else one bad byte ends the connection
            )
            transport = _watched(stdio_client(parameters), lambda: self._lose(stop))
        return Client(
            transport,
            message_handler=self._on_message,
            sampling_callback=self._on_sampling,
            elicitation_callback=self._on_elicitation,
            list_roots_callback=self._on_roots,
            cache=None,
        )

    def _lose(self, stop: asyncio.Event) -> None:
        """The process has ended: forget its connection at once."""
        if self._stop is stop:
            self._forget()
        stop.set()

    async def _drop(self) -> None:
        """Close the connection; the next request makes another."""
        keeper, self._keeper = self._keeper, None
        self._forget()
        self._stop.set()
        if keeper is not None and keeper is not asyncio.current_task():
            await asyncio.wait({keeper}, timeout=10)
            keeper.cancel()

    async def close(self) -> None:
        self._closed = True
        if self._background is not None:
            self._background.cancel()
            await asyncio.gather(self._background, return_exceptions=True)
        await self._drop()

    async def _send_log_level(self, client: Client) -> None:
        if self._log_level is None or self._modern or not client.server_capabilities.logging:
            return
        params = types.SetLevelRequestParams(level=self._log_level)
        await client.session.send_request(types.SetLevelRequest(params=params), types.EmptyResult)

    async def _listen(self, client: Client, stop: asyncio.Event) -> None:
        """Since 2026-07-28 a server reports changes only to clients that listen."""
        offers = client.server_capabilities
        tools, prompts, resources = (
            part is not None and bool(part.list_changed)
            for part in (offers.tools, offers.prompts, offers.resources)
        )
        if not (tools or prompts or resources):
            return

        async def listen() -> None:
            pause, connected = _RETRY_SECONDS, False
            while True:
                with suppress(MCPError, RuntimeError, OSError):
                    async with client.listen(
                        tools_list_changed=tools,
                        prompts_list_changed=prompts,
                        resources_list_changed=resources,
                    ) as events:
                        pause, connected = _RETRY_SECONDS, True
                        async for _ in events:  # each also reaches `_on_message`
                            pass
                if not (connected and self.spec.url):
                    return
                # This protocol has no connection over HTTP: only the end of the stream shows
                # that the server was restarted.
                self._renew()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MOST_RETRY_SECONDS)

        listening = asyncio.create_task(listen())
        try:
            await stop.wait()
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    # --- what the server asks and reports -------------------------------------------

    @property
    def _asking_call(self) -> ClientCall | None:
        """The call under way, if all calls under way are one client's."""
        callers = {call.caller for call in self._calls}
        return self._calls[-1] if len(callers) == 1 else None

    async def _put(
        self, request: types.InputRequest, answer: type[Answer], needs: types.ClientCapabilities
    ) -> Answer | types.ErrorData:
        """Put the server's question to the client whose call is under way."""
        call = self._asking_call
        if call is None:
            return no_client(request.method)
        return await call.ask(request, answer, needs)

    async def _on_sampling(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        request = types.CreateMessageRequest(params=params)
        if params.tools:
            return await self._put(request, types.CreateMessageResultWithTools, SAMPLING)
        return await self._put(request, types.CreateMessageResult, SAMPLING)

    async def _on_elicitation(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Tell the user who asks: it isn't the runtime."""
        message = f"`{self.spec.name}` asks: {params.message}"
        request = types.ElicitRequest(params=params.model_copy(update={"message": message}))
        return await self._put(request, types.ElicitResult, ELICITATION)

    async def _on_roots(
        self, context: ClientRequestContext
    ) -> types.ListRootsResult | types.ErrorData:
        return await self._put(types.ListRootsRequest(), types.ListRootsResult, ROOTS)

    async def _on_message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._verify_soon()
        elif isinstance(message, _PASSED_ON):
            call = self._asking_call
            if isinstance(message, types.LoggingMessageNotification) and call is not None:
                await call.notify(message, of_call=True)
            elif self.hear is not None:
                await self.hear(message)
        elif isinstance(message, Exception) and _is_unreadable_answer(message):
            # The library doesn't know which request it answers, so no caller would get it.
            self._stop.set()

    def _verify_soon(self) -> None:
        """Compare at once, so that operators and clients hear of it before the next call."""
        self._changed_at = self._now
        if not self._closed and (self._background is None or self._background.done()):
            self._background = asyncio.create_task(self._verify_changes())

    async def _verify_changes(self) -> None:
        with suppress(UpstreamFailed, UpstreamRefused):
            while self._verified_at <= self._changed_at:
                await self.verify()

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()


@asynccontextmanager
async def _watched(transport: Any, on_end: Callable[[], None]) -> AsyncIterator[Any]:
    """The transport; ``on_end`` is called when its server ends, which the client doesn't report."""
    async with transport as (read, write):
        send, receive = anyio.create_memory_object_stream[Any](0)

        async def pass_on() -> None:
            async with read, send:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    async for message in read:
                        await send.send(message)
            on_end()

        async with send, receive, anyio.create_task_group() as group:
            group.start_soon(pass_on)
            yield receive, write
            group.cancel_scope.cancel()


def _is_unreadable_answer(problem: Exception) -> bool:
    """Whether a line that isn't a message was meant as an answer, and not just printed."""
    if not isinstance(problem, ValidationError):
        return False
    return any(_is_answer(error["input"]) for error in problem.errors(include_url=False))


def _is_answer(line: object) -> bool:
    """``line`` is the text, or what was read from it if it is JSON."""
    try:
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        message = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return False
    except RecursionError:
        return '"id"' in str(line)  # too deep to parse
    return isinstance(message, dict) and "id" in message and bool({"result", "error"} & {*message})


def _same_tools(tools: Sequence[types.Tool], known: Sequence[types.Tool]) -> bool:
    """Compare spellings: in Python, `True` and 1 are equal."""
    return len(tools) == len(known) and all(
        tool.model_dump_json() == other.model_dump_json()
        for tool, other in zip(tools, known, strict=True)
    )


def _innermost(problem: BaseException) -> str:
    while isinstance(problem, BaseExceptionGroup) and problem.exceptions:
        problem = problem.exceptions[0]
    return str(problem) or type(problem).__name__


@cache
def _or_input_required(answer: type[Answer]) -> TypeAdapter[Any]:
    shape: Any = answer | types.InputRequiredResult
    return TypeAdapter(shape)
