"""The MCP server: the bookkeeping tool, the domain tools, the frame, the score card.

What a server has beside its tools: the frame, the score card, the procedures as prompts; and
of a gateway's upstreams everything else.

Clients who want to hear of changes: by connection, and by the session they watch.

Prompts with which a person starts a procedure in any MCP client.

What a client is told of what went wrong: what a model can do about it, and no more.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from logging import INFO, WARNING
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.server.subscriptions import ToolsListChanged as ToolsListChangedEvent
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from sopilot import __version__
from sopilot.handbook.model import BUILT_IN
from sopilot.integrations.logs import LOG, about
from sopilot.integrations.mcp.call_link import COMING, CURRENT_LINK, CallLink, ProgressReport
from sopilot.integrations.mcp.catalogue import Catalogue
from sopilot.integrations.mcp.clients import Asker, Context, asker
from sopilot.integrations.mcp.confirmation import eliciting
from sopilot.integrations.mcp.content import answered
from sopilot.integrations.mcp.gateway import GatewayTools, ToolHeld
from sopilot.integrations.mcp.passing import Passing
from sopilot.integrations.mcp.relay import Relay
from sopilot.integrations.mcp.sessions import Hub, Seat
from sopilot.integrations.metrics import NoMetrics
from sopilot.messages.errors import (
    LeaseHeld,
    LeaseLost,
    OutcomeUnrecorded,
    RunEnded,
    SopilotError,
    UnknownSession,
)
from sopilot.protocols import ToolSchema
from sopilot.runner.play import FINISH_TOOL, SAY_TOOL, score_play, session_report
from sopilot.values.text import quote_value
from sopilot.views.briefing import Briefing
from sopilot.views.step_tool import TOOL_NAME
from sopilot.views.view import Offer

if TYPE_CHECKING:
    from sopilot.integrations.telemetry import Telemetry


MOST_CLIENTS = 10_000
"""As many as the transport lets connect. Those that were not heard of for longest give way."""


@dataclass(slots=True)
class Listener:
    peer: ServerSession
    watched: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of a session and a URI."""
    level: types.LoggingLevel | None = None
    """Of logs, what it wants to see at least."""


class Audience:
    """``bus`` reaches those who listen in the protocol without connections, which is spoken
    on standard streams alone: everybody there is the same person."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._listeners: dict[tuple[str, str], Listener] = {}
        self._watchers: set[tuple[str, str]] = set()
        """Those of them who watch something, mostly few."""

    def heard(self, who: Asker, peer: ServerSession) -> Listener:
        """The last who asked is the last to give way."""
        listener = self._listeners.pop((who.owner, who.key), None)
        if listener is None:
            listener = Listener(peer)
            if len(self._listeners) >= MOST_CLIENTS:
                del self._listeners[next(iter(self._listeners))]
        listener.peer = peer
        self._listeners[who.owner, who.key] = listener
        return listener

    def left(self, owner: str, key: str) -> None:
        self._listeners.pop((owner, key), None)

    def watch(self, who: Asker, peer: ServerSession, session_id: str, uri: str) -> None:
        self.heard(who, peer).watched.add((session_id, uri))
        self._watchers.add((who.owner, who.key))

    async def changed(self, session_id: str, uris: Iterable[str]) -> None:
        watchers = [(one, self._listeners.get(one)) for one in self._watchers]
        for key, listener in watchers:
            if listener is None or not listener.watched:
                self._watchers.discard(key)
        for uri in uris:
            for _, listener in watchers:
                if listener is not None and (session_id, uri) in listener.watched:
                    await listener.peer.send_resource_updated(uri)
            await self.bus.publish(ResourceUpdated(uri))

    async def tools_changed(self) -> None:
        for listener in tuple(self._listeners.values()):
            await listener.peer.send_tool_list_changed()
        await self.bus.publish(ToolsListChangedEvent())


def list_prompts(briefing: Briefing) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=goal,
                description=program.functions[program.entry].says or None,
                arguments=[
                    types.PromptArgument(name=name, required=False)
                    for name in program.functions[program.entry].parameters
                ],
            )
            for goal, program in briefing.programs.items()
        ]
    )


def get_prompt(
    briefing: Briefing, params: types.GetPromptRequestParams, *, machine: bool
) -> types.GetPromptResult:
    program = briefing.programs.get(params.name)
    if program is None:
        raise MCPError(types.INVALID_PARAMS, "there is no such procedure")
    entry = program.functions[program.entry]
    given = {
        name: value for name, value in (params.arguments or {}).items() if name in entry.parameters
    }
    lines = [f"I ask for `{params.name}`." + (f" {entry.says}" if entry.says else "")]
    lines += [f"{name}: {quote_value(value)}" for name, value in given.items()]
    if machine:
        lines.append(
            f"Follow its procedure: `{TOOL_NAME}` with operation `start` and goal "
            f"`{params.name}` comes first, and every answer shows what comes next."
        )
    return types.GetPromptResult(
        description=entry.says or None,
        messages=[
            types.PromptMessage(role="user", content=types.TextContent(text="\n".join(lines)))
        ],
    )


def is_sent(problem: SopilotError) -> bool:
    """Whether a call had been sent when it went wrong: nobody can say that it was not done."""
    return isinstance(problem, OutcomeUnrecorded) or bool(
        isinstance(problem, LeaseLost) and problem.sent
    )


def told(problem: SopilotError) -> str:
    """Owners, leases and stores are operators' matters."""
    if isinstance(problem, UnknownSession):
        return "The runtime cannot do this: there is no such session."
    if is_sent(problem):
        return (
            "Outcome unknown: the call was sent, and how it ended could not be recorded. "
            "Do not call it again; operators know."
        )
    if isinstance(problem, LeaseHeld):
        return "Not done: another call of this session is under way. Try again in a moment."
    if isinstance(problem, RunEnded):
        return "Not done: the runtime cannot do this now. Try again in a moment; operators know."
    return f"The runtime cannot do this: {problem}"


FRAME_URI = "sopilot://frame"


CARD_URI = "sopilot://score-card"


_OWN = (
    types.Resource(
        uri=FRAME_URI,
        name="frame",
        description="Where the program stands and what comes next.",
        mime_type="text/plain",
    ),
    types.Resource(
        uri=CARD_URI,
        name="score-card",
        description="The audit of this session so far.",
        mime_type="application/json",
    ),
)


class BesideTools:
    def __init__(self, hub: Hub, catalogue: Catalogue | None, session_id: str | None) -> None:
        self.hub = self._hub = hub
        self._catalogue = catalogue
        self._session_id = session_id
        self._audience = Audience()

    # --- resources ------------------------------------------------------------------

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        upstreams, link = await self._upstreams(ctx)
        passed = await upstreams.passing.resources(link) if upstreams is not None else []
        return types.ListResourcesResult(resources=[*_OWN, *passed])

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        upstreams, link = await self._upstreams(ctx)
        passed = await upstreams.passing.templates(link) if upstreams is not None else []
        return types.ListResourceTemplatesResult(resource_templates=passed)

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        if uri not in (FRAME_URI, CARD_URI):
            passing, link = await self._passing(ctx, "resource")
            return await passing.read(params, link)
        seat = await self._seat(ctx)
        try:
            async with seat.using() as player:
                if uri == FRAME_URI:
                    text, kind = player.driver.shown().slot, "text/plain"
                else:
                    report = await session_report(player, ended=False)
                    text, kind = json.dumps(report.as_json()), "application/json"
        except SopilotError as problem:
            raise MCPError(types.INVALID_REQUEST, told(problem)) from None
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, text=text, mime_type=kind)]
        )

    async def _subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        seat = await self._seat(ctx)
        uri = str(params.uri)
        if uri not in (FRAME_URI, CARD_URI):
            passing, link = await self._passing(ctx, "resource")
            await passing.subscribe(params, link)
            return types.EmptyResult()
        self._audience.watch(self._asker(ctx), ctx.session, seat.session.id, uri)
        return types.EmptyResult()

    async def _unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        seat = await self._seat(ctx)
        if str(params.uri) not in (FRAME_URI, CARD_URI):
            passing, link = await self._passing(ctx, "resource")
            await passing.unsubscribe(params, link)
            return types.EmptyResult()
        listener = self._audience.heard(self._asker(ctx), ctx.session)
        listener.watched.discard((seat.session.id, str(params.uri)))
        return types.EmptyResult()

    # --- prompts --------------------------------------------------------------------

    async def _list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        own = list_prompts(self._hub.service.briefing).prompts
        upstreams, link = await self._upstreams(ctx)
        passed = await upstreams.passing.prompts(link) if upstreams is not None else []
        known = {one.name for one in own}
        return types.ListPromptsResult(
            prompts=[*own, *(one for one in passed if one.name not in known)]
        )

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        service = self._hub.service
        if self._catalogue is not None and params.name not in service.briefing.programs:
            passing, link = await self._passing(ctx, "procedure")
            return await passing.prompt(params, link)
        return get_prompt(service.briefing, params, machine=service.view.machine)

    async def _complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """A procedure's inputs have no list to choose from."""
        ref = params.ref
        if (
            isinstance(ref, types.PromptReference)
            and ref.name in self._hub.service.briefing.programs
        ):
            return types.CompleteResult(completion=types.Completion(values=[]))
        passing, link = await self._passing(ctx, "prompt or template")
        return await passing.complete(params, link)

    async def _set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """What upstreams log below it is not passed on."""
        self._audience.heard(self._asker(ctx), ctx.session).level = params.level
        upstreams, _ = await self._upstreams(ctx)
        if upstreams is not None:
            await upstreams.set_log_level(params.level)
        return types.EmptyResult()

    # --- upstreams ------------------------------------------------------------------

    def _link(self, ctx: Context, who: Asker | None = None) -> CallLink:
        who = who or self._asker(ctx)
        level = self._audience.heard(who, ctx.session).level
        relay = Relay(ctx, (who.owner, who.key), level)
        return CallLink(progress=_progress(ctx), ask=eliciting(ctx), relay=relay)

    async def _upstreams(self, ctx: Context) -> tuple[GatewayTools | None, CallLink]:
        link = self._link(ctx)
        if self._catalogue is None:
            return None, link
        return gateway_of(await self._seat(ctx), link), link

    async def _passing(self, ctx: Context, what: str) -> tuple[Passing, CallLink]:
        upstreams, link = await self._upstreams(ctx)
        if upstreams is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no such {what}")
        return upstreams.passing, link

    # --- who asks -------------------------------------------------------------------

    def _asker(self, ctx: Context) -> Asker:
        return asker(ctx, self._session_id)

    async def _seat(self, ctx: Context) -> Seat:
        who = self._asker(ctx)
        self._audience.heard(who, ctx.session)
        try:
            return await self._hub.seat(who.owner, who.key, who.session_id)
        except SopilotError as problem:
            LOG.warning("a client was not served: %s", problem)
            raise MCPError(types.INVALID_REQUEST, told(problem)) from None


def gateway_of(seat: Seat, link: CallLink) -> GatewayTools | None:
    """The session's upstreams, which now hear of this client."""
    tools = seat.player.session.tools
    if not isinstance(tools, GatewayTools):
        return None
    tools.client = link.relay
    return tools


def _progress(ctx: Context) -> ProgressReport:
    async def report(progress: float, total: float | None, message: str | None) -> None:
        # A client that is gone wants no progress.
        with suppress(OSError, MCPError):
            await ctx.session.report_progress(progress, total, message)

    return report


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
        for outcome in ("ok", "not_done", "unknown", "failed"):
            self._meter.count("calls", 0, outcome=outcome)
        self._telemetry = telemetry
        self._listen_on_streams = ListenHandler(self._audience.bus)
        self._running: set[asyncio.Task[Any]] = set()
        service = hub.service
        self.server: Server[Any] = _Server(
            f"sopilot-{service.briefing.handbook.name}",
            version=__version__,
            instructions=service.view.first_message(service.briefing),
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
        every = seat.player.driver.view.offer is Offer.ALL
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
            outcome = "unknown" if is_sent(problem) else "failed"
            self._logged(who, params.name, session_id, outcome, begun)
            return answered(told(problem), "", ok=False, session_id=session_id)
        outcome = "not_done" if result.is_error else "ok"
        if link.unknown:
            outcome = "unknown"
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
        level = WARNING if outcome == "unknown" else INFO
        if LOG.isEnabledFor(level):
            ms = round((time.perf_counter() - begun) * 1000, 2)
            fields = {"session": session_id, "owner": who.owner, "tool": name, "outcome": outcome}
            LOG.log(level, "call", extra={"fields": {**fields, "ms": ms}})

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
            text, link.unknown = turn.answer, turn.unknown
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
