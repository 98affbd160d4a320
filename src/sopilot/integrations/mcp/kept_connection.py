"""A connection to one MCP server, kept by a task of its own, made again when it broke."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from sopilot.integrations.mcp.asking import Wire
from sopilot.integrations.mcp.relay import Relay, nobody
from sopilot.integrations.mcp.upstream_http import UpstreamHttp, speaks_plainly
from sopilot.integrations.mcp.upstream_process import UpstreamProcess
from sopilot.integrations.mcp.upstream_spec import UpstreamSpec
from sopilot.messages.errors import RunEnded

CONNECT_SECONDS = 60.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 30.0
"""Between two attempts to listen again."""


PASSED_ON = (
    types.LoggingMessageNotification,
    types.ResourceUpdatedNotification,
    types.ResourceListChangedNotification,
    types.PromptListChangedNotification,
)


_NOTICES: Mapping[str, type[BaseModel]] = {
    "notifications/message": types.LoggingMessageNotification,
    "notifications/resources/updated": types.ResourceUpdatedNotification,
    "notifications/resources/list_changed": types.ResourceListChangedNotification,
    "notifications/prompts/list_changed": types.PromptListChangedNotification,
}


ListChanged = Callable[[], None]


Notice = Callable[[types.ServerNotification], Awaitable[None]]


class UpstreamFailed(RunEnded):
    """No answer that could be trusted: nobody knows whether the tool did its work."""


class KeptConnection:
    """One client connection. ``on_list_changed`` is told when the server's tools change, and
    ``on_notice`` everything else that it tells."""

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
        self.connection_id = ""
        """Of the latest connection, unlike any other's of whatever process."""
        self._timeout = timeout_seconds
        self.on_list_changed = on_list_changed
        self.on_notice: Notice | None = None
        self.log_level: types.LoggingLevel | None = None
        self._under_way: list[Relay] = []
        self._client: Client | None = None
        self._wire: Wire | None = None
        """The connection itself, where it can be asked past the client."""
        self._version = ""
        self._modern = False
        """What is spoken on it; since 2026-07-28 without a handshake."""
        self._keeper: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._connecting = asyncio.Lock()
        self._asked: list[Callable[[], object]] = []
        """For every request under way: what is done when its answer came and cannot be read."""

    @property
    def connected(self) -> bool:
        return self._client is not None and self._keeper is not None and not self._keeper.done()

    # --- the connection -------------------------------------------------------------

    async def connect(self) -> None:
        await self._connected()

    async def _connected(self) -> Client:
        if self._client is not None and self.connected:
            return self._client
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
        self._renew()

    def _renew(self) -> None:
        """Count another connection: what the server kept for the last one may be gone (P8)."""
        self.generation += 1
        self.connection_id = secrets.token_hex(8)

    async def _keep(self, ready: asyncio.Future[Client], stop: asyncio.Event) -> None:
        why = "it broke off"
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(await self._client_for(stack))
                self._version = client.protocol_version
                self._modern = self._version in MODERN_PROTOCOL_VERSIONS
                if not hasattr(client.session, "_stamp"):
                    self._wire = None
                await self._same_level(client)
                ready.set_result(client)
                if self._modern:
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

    async def _same_level(self, client: Client) -> None:
        if self.log_level is not None and client.server_capabilities.logging and not self._modern:
            params = types.SetLevelRequestParams(level=self.log_level)
            await client.session.send_request(
                types.SetLevelRequest(params=params), types.EmptyResult
            )

    async def _listen(self, client: Client, stop: asyncio.Event) -> None:
        """Since 2026-07-28 a server tells of changes only to those who listen."""
        can = client.server_capabilities
        tools, prompts, resources = (
            one is not None and bool(one.list_changed)
            for one in (can.tools, can.prompts, can.resources)
        )
        if not (tools or prompts or resources):
            return

        async def listen() -> None:
            pause, begun = _FIRST_PAUSE_SECONDS, False
            while True:
                try:
                    async with client.listen(
                        tools_list_changed=tools,
                        prompts_list_changed=prompts,
                        resources_list_changed=resources,
                    ) as events:
                        pause, begun = _FIRST_PAUSE_SECONDS, True
                        async for _ in events:  # each comes as a message, too
                            pass
                except (MCPError, RuntimeError, OSError):
                    pass  # the list is compared again at the next listing
                if not (begun and self.spec.url):
                    return
                # Over HTTP there is no connection to lose. A stream that ends is the only sign
                # of a server that was started anew.
                self._renew()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

        listening = asyncio.create_task(listen())
        try:
            await stop.wait()
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def _client_for(self, stack: AsyncExitStack) -> Client:
        spec = self.spec
        self._wire = None
        if spec.url:
            http = httpx2.AsyncClient(
                headers=dict(spec.headers),
                timeout=httpx2.Timeout(30.0, read=self._timeout),
                follow_redirects=False,
            )
            await stack.enter_async_context(http)
            if speaks_plainly(spec.url):
                wire = UpstreamHttp(
                    spec.url,
                    spec.headers,
                    self._timeout,
                    self._told_raw,
                    self._changed,
                    self._renew,
                )
                stack.callback(wire.close)
                self._wire = wire
            return Client(
                streamable_http_client(spec.url, http_client=http, max_sse_event_size=None),
                **self._callbacks(),
            )
        environment = {**get_default_environment(), **spec.environment}
        if os.name == "posix":
            process = self._wire = UpstreamProcess(spec.command, environment, self._changed)
            return Client(process, **self._callbacks())
        program, *arguments = spec.command
        started = StdioServerParameters(command=program, args=arguments, env=environment)
        return Client(started, **self._callbacks())

    def _callbacks(self) -> dict[str, Any]:
        """Clients come and go: whether the present one can be asked shows when it is."""
        return {
            "message_handler": self._message,
            "sampling_callback": self._sampled,
            "elicitation_callback": self._elicited,
            "list_roots_callback": self._roots,
            "cache": None,
        }

    # --- what the server asks and tells ---------------------------------------------

    @property
    def _client_asked(self) -> Relay | None:
        """The client of the calls under way, if all are one client's."""
        relays = self._under_way
        return relays[-1] if len({one.key for one in relays}) == 1 else None

    async def _sampled(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        relay = self._client_asked
        return nobody("sampling") if relay is None else await relay.sampled(params)

    async def _elicited(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        relay = self._client_asked
        if relay is None:
            return nobody("elicitation")
        return await relay.elicited(self.spec.name, params)

    async def _roots(
        self, context: ClientRequestContext
    ) -> types.ListRootsResult | types.ErrorData:
        relay = self._client_asked
        return nobody("roots") if relay is None else await relay.roots()

    async def _told(self, notice: types.ServerNotification) -> None:
        """A log entry belongs to the call under way; the rest to whoever uses the connection."""
        relay = self._client_asked
        if isinstance(notice, types.LoggingMessageNotification) and relay is not None:
            await relay.tell(notice, of_call=True)
        elif self.on_notice is not None:
            await self.on_notice(notice)

    def _changed(self) -> None:
        if self.on_list_changed is not None:
            self.on_list_changed()

    async def _message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed()
        elif isinstance(message, PASSED_ON):
            await self._told(message)
        # Which request it answers is not known here: with several, all wait for their time.
        if len(self._asked) == 1 and isinstance(message, ValidationError) and _answers(message):
            self._asked[0]()

    async def _told_raw(self, message: dict[str, Any]) -> None:
        kind = _NOTICES.get(message["method"])
        if kind is not None:
            with suppress(ValidationError):
                await self._message(kind.model_validate(message, by_name=False))

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
    return any(_is_answer(one["input"]) for one in problem.errors(include_url=False))


def _is_answer(found: object) -> bool:
    """``found`` is the line, or what was read from it where it is JSON."""
    try:
        text = found.decode("utf-8", "replace") if isinstance(found, bytes) else found
        line = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return False
    except RecursionError:
        return '"id"' in str(text)  # nobody prints that deep
    return isinstance(line, dict) and "id" in line and ("result" in line or "error" in line)


def _innermost(problem: BaseException) -> str:
    while isinstance(problem, BaseExceptionGroup) and problem.exceptions:
        problem = problem.exceptions[0]
    return str(problem) or type(problem).__name__
