"""The MCP server: the bookkeeping tool, the domain tools, the frame, the score card."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from logging import INFO
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from sopilot import __version__
from sopilot.adapters.logs import LOG, about
from sopilot.adapters.metrics import NoMetrics
from sopilot.doors.mcp._beside_tools import CARD_URI, FRAME_URI, BesideTools, gateway_of
from sopilot.doors.mcp._call_link import COMING, CURRENT_LINK, CallLink
from sopilot.doors.mcp._clients import Asker, Context
from sopilot.doors.mcp._content import answered
from sopilot.doors.mcp._gateway import GatewayTools, ToolHeld
from sopilot.doors.mcp._telling import told
from sopilot.doors.mcp.catalogue import Catalogue
from sopilot.doors.mcp.hub import Hub, Seat
from sopilot.doors.mcp.playing import FINISH_TOOL, SAY_TOOL, score_play
from sopilot.language.diagnostics import SopilotError
from sopilot.language.handbook import BUILT_IN
from sopilot.runtime.agent import Offer
from sopilot.runtime.session.protocols import ToolSchema
from sopilot.runtime.vm import TOOL_NAME

if TYPE_CHECKING:
    from sopilot.adapters.telemetry import Telemetry

Answer = TypeVar("Answer")
_TRACE_WORDS = frozenset({"traceparent", "tracestate", "baggage"})


class ProcedureServer(BesideTools):
    """Handlers over a hub. ``catalogue`` makes it a gateway; ``session_id`` is the session
    that a client on standard streams goes on with. ``tell`` reaches the operator."""

    def __init__(
        self,
        hub: Hub,
        *,
        catalogue: Catalogue | None = None,
        session_id: str | None = None,
        tell: Callable[[str], None] = lambda text: None,
        meter: NoMetrics | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        super().__init__(hub, catalogue, session_id)
        self._tell = tell
        self._meter = meter or NoMetrics()
        for outcome in ("ok", "not_done", "failed"):
            self._meter.count("calls", 0, outcome=outcome)
        self._telemetry = telemetry
        self._listen_on_streams = ListenHandler(self._audience.bus)
        self._running: set[asyncio.Task[Any]] = set()
        service = hub.service
        self.server: Server[Any] = _Server(
            f"sopilot-{service.briefing.handbook.name}",
            version=__version__,
            instructions=service.arm.first_message(service.briefing),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )
        self.server.add_request_handler("server/discover", types.RequestParams, self._discover)
        if telemetry is None:
            self.server.middleware[:] = map(_where_it_is_traced, self.server.middleware)
        if catalogue is not None:
            catalogue.on_change = self._tools_changed
            add = self.server.add_request_handler
            add("resources/templates/list", types.PaginatedRequestParams, self._list_templates)
            add("completion/complete", types.CompleteRequestParams, self._complete)
            add("logging/setLevel", types.SetLevelRequestParams, self._set_level)

    # --- tools ----------------------------------------------------------------------

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        seat = await self._seat(ctx)
        try:
            async with seat.using() as player:
                shown = player.driver.shown().tools
        except SopilotError as problem:
            raise MCPError(types.INVALID_REQUEST, told(problem)) from None
        seat.offered = [tool.name for tool in shown]
        if self._catalogue is None:
            extra = (SAY_TOOL, FINISH_TOOL) if self._hub.service.played else ()
            return types.ListToolsResult(tools=[_tool(one) for one in (*shown, *extra)])
        tools = seat.player.session.tools
        if isinstance(tools, GatewayTools):
            for one in await tools.refresh():
                self._tell(one)
        every = seat.player.driver.arm.offer is Offer.ALL
        offered = [
            offer.tool
            for offer in self._catalogue.offers()
            if every or offer.tool.name in seat.offered
        ]
        asking = [_tool(one) for one in shown if one.name in BUILT_IN]
        return types.ListToolsResult(tools=[_tool(shown[0]), *offered, *asking])

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        who = self._asker(ctx)
        link = self._link(ctx, who)
        return await self._carried_out(self._handle(who, params, link), link)

    def coming(self, owner: str, key: str, params: Mapping[str, object]) -> None:
        """A call has arrived, of which nothing is read yet. Inside its context."""
        seat = self._hub.seated(owner, key)
        tools = seat.session.tools if seat is not None else None
        if isinstance(tools, GatewayTools):
            COMING.set((tools, tools.look(params.get("name"))))

    async def _carried_out(self, work: Coroutine[Any, Any, Answer], link: CallLink) -> Answer:
        """A client that gives up does not leave a call without a word in the trace: the work
        goes on by itself until it is on record how it ended."""
        token = CURRENT_LINK.set(link)
        task = asyncio.create_task(work)
        CURRENT_LINK.reset(token)
        self._running.add(task)
        answer = asyncio.shield(task)
        task.add_done_callback(partial(self._carry_on, link))  # behind the shield's: it goes first
        try:
            return await answer
        except asyncio.CancelledError:
            link.cancelled.set()
            raise

    def _carry_on(self, link: CallLink, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        for one in link.afterwards:
            asyncio.get_running_loop().call_soon(one)

    async def _handle(
        self, who: Asker, params: types.CallToolRequestParams, link: CallLink
    ) -> types.CallToolResult:
        session_id = who.session_id or ""
        begun = time.perf_counter()
        try:
            seat = await self._hub.seat(who.owner, who.key, who.session_id)
            session_id = seat.session.id
            tools = gateway_of(seat, link)
            if tools is not None:
                looked, link.look = COMING.get()
                if looked is not tools:
                    link.look = tools.look(params.name)
            with self._spanned(params.name, session_id), about(session=session_id):
                async with seat.using() as player:
                    result = await self._move(seat, params, link)
                    if player.session.held_calls:
                        self._tell(f"session {session_id} waits for a decision: sopilot approve")
        except SopilotError as problem:
            with about(session=session_id):
                self._tell(f"a call of `{params.name}` was not handled: {problem}")
            self._logged(who, params.name, session_id, "failed", begun)
            return answered(told(problem), "", ok=False, session_id=session_id)
        outcome = "not_done" if result.is_error else "ok"
        self._logged(who, params.name, session_id, outcome, begun)
        link.afterwards.append(lambda: self._soon(self._changed(seat)))
        return result

    def _spanned(self, name: str, session_id: str) -> AbstractContextManager[object]:
        if self._telemetry is None:
            return nullcontext()
        return self._telemetry.tool(name, f"{session_id}:")

    def _logged(self, who: Asker, name: str, session_id: str, outcome: str, begun: float) -> None:
        self._meter.count("calls", outcome=outcome)
        if name == TOOL_NAME:
            self._meter.count("steps")
        if LOG.isEnabledFor(INFO):
            ms = round((time.perf_counter() - begun) * 1000, 2)
            fields = {"session": session_id, "owner": who.owner, "tool": name, "outcome": outcome}
            LOG.info("call", extra={"fields": {**fields, "ms": ms}})

    async def _move(
        self, seat: Seat, params: types.CallToolRequestParams, link: CallLink
    ) -> types.CallToolResult:
        player, name = seat.player, params.name
        arguments = params.arguments or {}
        session = player.session
        if self._hub.service.played and name == SAY_TOOL.name:
            turn = await player.say(str(arguments.get("text", "")))
            # The user's words stand as one line of JSON, as a tool's do.
            spoken = turn.ending is None
            text = f"The user: {json.dumps(turn.answer)}" if spoken else turn.answer
        elif self._hub.service.played and name == FINISH_TOOL.name:
            score = await score_play(player)
            text = f"Done: {json.dumps(score.as_json())}"
            return answered(text, "", ok=True, session_id=session.id)
        else:
            link.irreversible = name in session.programs.guarded
            try:
                async with session.keep_alive():
                    turn = await player.call(name, arguments)
            except ToolHeld as held:
                link.held = held
            if link.held is not None:
                await session.note("held_tool", {"tool": name, "why": str(link.held)})
                text = f"Not called: {link.held}; an operator was told."
                slot = player.driver.shown().slot
                return answered(text, slot, ok=False, session_id=session.id)
            text = turn.answer
        return answered(text, turn.slot, ok=turn.ok, session_id=session.id, given=link.given)

    # --- what changes ---------------------------------------------------------------

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        if ctx.request is not None:
            # Events go to all who listen: on standard streams that is one person.
            raise MCPError(types.INVALID_REQUEST, "connect with `initialize` and subscribe")
        return await self._listen_on_streams(ctx, params)

    async def _changed(self, seat: Seat) -> None:
        """The card changes with everything that is done, the frame with what fits."""
        uris = [CARD_URI]
        shown = seat.player.shown()
        if shown.slot != seat.shown:
            seat.shown = shown.slot
            uris.insert(0, FRAME_URI)
        if seat.offered and seat.offered != [tool.name for tool in shown.tools]:
            await self._audience.tools_changed()
        await self._audience.changed(seat.session.id, uris)

    # --- the rest -------------------------------------------------------------------

    async def _discover(
        self, ctx: Context, params: types.RequestParams | None
    ) -> types.DiscoverResult:
        """Sessions need connections: over HTTP only the versions that have them are offered,
        and clients fall back to the handshake."""
        versions = MODERN_PROTOCOL_VERSIONS if ctx.request is None else HANDSHAKE_PROTOCOL_VERSIONS
        return types.DiscoverResult(
            supported_versions=list(versions),
            capabilities=self.server.get_capabilities(protocol_version=ctx.protocol_version),
            instructions=self.server.instructions,
        )

    def _tools_changed(self) -> None:
        self._soon(self._audience.tools_changed())

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._told_all)

    def _told_all(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            LOG.warning("not everybody was told of a change: %s", problem)

    async def left(self, owner: str, key: str) -> None:
        """A client has closed its connection."""
        self._audience.left(owner, key)
        await self._hub.leave(owner, key)

    async def close(self) -> None:
        """What is under way is brought to its end first, within reason."""
        if self._running:
            await asyncio.wait(tuple(self._running), timeout=5)
        await self._hub.close()
        if self._catalogue is not None:
            await self._catalogue.close()


def _tool(schema: ToolSchema) -> types.Tool:
    return types.Tool(
        name=schema.name,
        description=schema.description,
        input_schema=dict(schema.parameters),
    )


def _where_it_is_traced(middleware: ServerMiddleware[Any]) -> ServerMiddleware[Any]:
    """The library's spans, only for requests that are part of somebody's trace: where nothing is
    sent anywhere, they do nothing but hand it on."""
    if type(middleware).__name__ != "OpenTelemetryMiddleware":
        return middleware

    async def traced(ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.meta and not _TRACE_WORDS.isdisjoint(ctx.meta):
            return await middleware(ctx, call_next)
        return await call_next(ctx)

    return traced


class _Server(Server[Any]):
    """Says over every transport that it tells of changes; by itself it would over none."""

    _changing = NotificationOptions(
        tools_changed=True, resources_changed=True, prompts_changed=True
    )

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        return super().create_initialization_options(
            notification_options or self._changing,
            experimental_capabilities,
            extensions,
        )
