"""The MCP server of a handbook: the step tool, the domain tools, the frame and the score card.

A gateway also passes on what its upstream servers offer beside tools.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from logging import INFO, WARNING
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.server.subscriptions import ToolsListChanged as ToolsListChangedEvent
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from sopilot import __version__
from sopilot.agent.toolbox import END_SESSION
from sopilot.handbook.model import BUILT_IN
from sopilot.integrations.logs import LOG, about
from sopilot.integrations.mcp.client_call import CURRENT_CALL, Caller, ClientCall, Context, identify
from sopilot.integrations.mcp.confirmation import ParkedCall, ParkedCalls
from sopilot.integrations.mcp.content import answered, without_marks
from sopilot.integrations.mcp.gateway import GatewayTools, ToolHeld
from sopilot.integrations.mcp.pins import Catalogue
from sopilot.integrations.mcp.sessions import LiveSession, SessionPool
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
from sopilot.runner.play import FINISH_TOOL, SAY_TOOL
from sopilot.values.text import quote_value
from sopilot.views.briefing import Briefing
from sopilot.views.guard_answers import GUARD_TOOLS
from sopilot.views.step_tool import TOOL_NAME

if TYPE_CHECKING:
    from sopilot.integrations.telemetry import Telemetry

FRAME_URI = "sopilot://frame"
CARD_URI = "sopilot://score-card"
MOST_SUBSCRIBERS = 10_000
Result = TypeVar("Result", bound=BaseModel)
Paged = types.PaginatedRequestParams | None
_OWN_RESOURCES = (
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
_OWN_URIS = (FRAME_URI, CARD_URI)
_LED_BY_PROGRAM = frozenset({*BUILT_IN, END_SESSION})
"""A guard asks the user and ends the conversation without the model."""


@dataclass(slots=True)
class Subscriber:
    connection: ServerSession
    watched: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of a session and a URI."""
    log_level: types.LoggingLevel | None = None


class Subscribers:
    """Connected clients, by caller. The least recently active client is dropped first.

    ``bus`` reaches clients that listen in the protocol without connections. That protocol is
    offered on standard streams alone, where every listener is the same person.
    """

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._by_caller: dict[tuple[str, str], Subscriber] = {}

    def see(self, caller: Caller, connection: ServerSession) -> Subscriber:
        subscriber = self._by_caller.pop((caller.owner, caller.key), None)
        if subscriber is None:
            subscriber = Subscriber(connection)
            if len(self._by_caller) >= MOST_SUBSCRIBERS:
                del self._by_caller[next(iter(self._by_caller))]
        subscriber.connection = connection
        self._by_caller[caller.owner, caller.key] = subscriber
        return subscriber

    def forget(self, owner: str, key: str) -> None:
        self._by_caller.pop((owner, key), None)

    async def resources_changed(self, session_id: str, uris: Iterable[str]) -> None:
        watching = [item for item in self._by_caller.values() if item.watched]
        for uri in uris:
            for subscriber in watching:
                if (session_id, uri) in subscriber.watched:
                    await subscriber.connection.send_resource_updated(uri)
            await self.bus.publish(ResourceUpdated(uri))

    async def tools_changed(self) -> None:
        for subscriber in tuple(self._by_caller.values()):
            await subscriber.connection.send_tool_list_changed()
        await self.bus.publish(ToolsListChangedEvent())


class McpServer:
    """MCP handlers over a pool of sessions.

    ``catalogue`` makes it a gateway. ``session_id`` is the session that a client on standard
    streams resumes. ``tell`` reaches the operator.
    """

    def __init__(
        self,
        pool: SessionPool,
        *,
        catalogue: Catalogue | None = None,
        session_id: str | None = None,
        tell: Callable[[str], None] = lambda text: None,
        meter: NoMetrics | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.pool = pool
        self._catalogue = catalogue
        self._session_id = session_id
        self._tell = tell
        self._meter = meter or NoMetrics()
        for outcome in ("ok", "not_done", "unknown", "failed"):
            self._meter.count("calls", 0, outcome=outcome)
        self._telemetry = telemetry
        self._subscribers = Subscribers()
        self._parked = ParkedCalls()
        self._listen_on_streams = ListenHandler(self._subscribers.bus)
        self._running: set[asyncio.Task[Any]] = set()
        service = pool.service
        self._silent = bool(service.view.guard) and not service.played
        """Under a guard view clients see the tools and nothing else."""
        instructions = None if self._silent else service.view.first_message(service.briefing)
        self.protocol: Server[Any] = _ProtocolServer(
            f"sopilot-{service.briefing.handbook.name}",
            version=__version__,
            instructions=instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_subscribe_resource=partial(self._watch, types.SubscribeRequest),
            on_unsubscribe_resource=partial(self._watch, types.UnsubscribeRequest),
            on_subscriptions_listen=self._listen,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )
        add = self.protocol.add_request_handler
        add("server/discover", types.RequestParams, self._discover)
        if telemetry is None:
            self.protocol.middleware.clear()  # the library's own spans
        if catalogue is not None:
            catalogue.on_change = lambda: self._soon(self._subscribers.tools_changed())
            add("resources/templates/list", types.PaginatedRequestParams, self._list_templates)
            add("completion/complete", types.CompleteRequestParams, self._complete)
            add("logging/setLevel", types.SetLevelRequestParams, self._set_level)

    # --- tools ----------------------------------------------------------------------

    async def _list_tools(self, ctx: Context, params: Paged) -> types.ListToolsResult:
        live = await self._live(ctx)
        try:
            async with live.using() as player:
                shown = self._shown_tools(player.driver.toolbox.schemas)
        except SopilotError as problem:
            raise MCPError(types.INVALID_REQUEST, problem_text(problem)) from None
        if self._catalogue is None:
            extra = (SAY_TOOL, FINISH_TOOL) if self.pool.service.played else ()
            return types.ListToolsResult(tools=[_tool(schema) for schema in (*shown, *extra)])
        tools = live.session.tools
        if isinstance(tools, GatewayTools):
            for unreachable in await tools.refresh():
                self._tell(unreachable)
        offered = [offer.listed for offer in self._catalogue.offers()]
        own = [*shown[:1], *(schema for schema in shown[1:] if schema.name in BUILT_IN)]
        if self._silent:
            own = [schema for schema in shown if schema.name in GUARD_TOOLS]
        return types.ListToolsResult(tools=[*map(_tool, own[:1]), *offered, *map(_tool, own[1:])])

    def _shown_tools(self, tools: Sequence[ToolSchema]) -> Sequence[ToolSchema]:
        if not self._silent:
            return tools
        return [tool for tool in tools if tool.name not in _LED_BY_PROGRAM]

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Run the call in its own task: it is recorded to its end even if the client leaves."""
        if params.request_state is not None:
            parked = self._parked.resume(self._caller(ctx), params, ctx)
            return await self._parked.answer(parked)
        call = self._client_call(ctx)
        token = CURRENT_CALL.set(call)
        task = asyncio.create_task(self._handle(call, params))
        CURRENT_CALL.reset(token)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        if call.in_rounds:
            return await self._parked.answer(ParkedCall(call, params, task))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            call.cancel()
            raise

    async def _handle(
        self, call: ClientCall, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        caller, started = call.caller, time.perf_counter()
        session_id = caller.session_id or ""
        try:
            live = await self.pool.get(caller.owner, caller.key, caller.session_id)
            session_id = live.session.id
            _gateway(live, call)
            with self._span(params.name, session_id), about(session=session_id):
                async with live.using() as player:
                    result = await self._perform(live, params, call)
                    if player.session.held_calls:
                        self._tell(f"session {session_id} waits for a decision: sopilot approvals")
        except SopilotError as problem:
            with about(session=session_id):
                self._tell(f"a call of `{params.name}` was not handled: {problem}")
            outcome = "unknown" if _was_sent(problem) else "failed"
            self._log_call(caller, params.name, session_id, outcome, started)
            return answered(problem_text(problem), "", ok=False, session_id=session_id)
        outcome = "unknown" if call.unknown else "not_done" if result.is_error else "ok"
        self._log_call(caller, params.name, session_id, outcome, started)
        self._soon(self._report_changes(live))
        return result

    async def _perform(
        self, live: LiveSession, params: types.CallToolRequestParams, call: ClientCall
    ) -> types.CallToolResult:
        player, name, arguments = live.player, params.name, params.arguments or {}
        session = player.session
        played = self.pool.service.played
        if played and name == FINISH_TOOL.name:
            text = f"Done: {json.dumps((await player.finish()).as_json())}"
            return answered(text, "", ok=True, session_id=session.id)
        if played and name == SAY_TOOL.name:
            turn = await player.say(str(arguments.get("text", "")))
            # The user's words stand as one line of JSON, as a tool's result does.
            text = f"The user: {json.dumps(turn.answer)}" if turn.ending is None else turn.answer
            return answered(text, turn.frame_text, ok=turn.ok, session_id=session.id)
        if self._silent and name in _LED_BY_PROGRAM:
            return answered(f"There is no tool `{name}`.", "", ok=False, session_id=session.id)
        call.tool = name
        call.irreversible = name in session.programs.guarded
        try:
            async with session.keep_alive():
                turn = await player.call(name, arguments)
        except ToolHeld as held:
            call.held = held
        if call.held is not None:
            await session.note("held_tool", {"tool": name, "why": str(call.held)})
            text = f"Not called: {call.held}; an operator was told."
            frame = player.driver.shown().frame_text
            return answered(text, frame, ok=False, session_id=session.id)
        call.unknown = turn.unknown
        if self._silent and call.result is not None and not turn.unknown:
            return without_marks(call.result)
        return answered(
            turn.answer, turn.frame_text, ok=turn.ok, session_id=session.id, upstream=call.result
        )

    def _span(self, name: str, session_id: str) -> AbstractContextManager[object]:
        if self._telemetry is None:
            return nullcontext()
        return self._telemetry.tool(name, f"{session_id}:")

    def _log_call(
        self, caller: Caller, name: str, session_id: str, outcome: str, started: float
    ) -> None:
        self._meter.count("calls", outcome=outcome)
        if name == TOOL_NAME:
            self._meter.count("steps")
        level, text = INFO, "call"
        if outcome == "unknown":
            level = WARNING
            text = f"`{name}` has an unknown outcome: sopilot approvals list {session_id}"
        if LOG.isEnabledFor(level):
            ms = round((time.perf_counter() - started) * 1000, 2)
            fields = {"session": session_id, "owner": caller.owner, "tool": name}
            LOG.log(level, "%s", text, extra={"fields": {**fields, "outcome": outcome, "ms": ms}})

    # --- resources ------------------------------------------------------------------

    async def _list_resources(self, ctx: Context, params: Paged) -> types.ListResourcesResult:
        upstreams, call = await self._upstreams(ctx)
        passed = await upstreams.resources(call) if upstreams is not None else []
        own = () if self._silent else _OWN_RESOURCES
        return types.ListResourcesResult(resources=[*own, *passed])

    async def _list_templates(
        self, ctx: Context, params: Paged
    ) -> types.ListResourceTemplatesResult:
        upstreams, call = await self._upstreams(ctx)
        passed = await upstreams.templates(call) if upstreams is not None else []
        return types.ListResourceTemplatesResult(resource_templates=passed)

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = params.uri
        if uri not in _OWN_URIS:
            request = types.ReadResourceRequest(params=params)
            return await self._pass_on(ctx, uri, request, types.ReadResourceResult)
        live = await self._live(ctx)
        try:
            async with live.using() as player:
                if uri == FRAME_URI:
                    text, kind = player.driver.shown().frame_text, "text/plain"
                else:
                    report = await player.report(ended=False)
                    text, kind = json.dumps(report.as_json()), "application/json"
        except SopilotError as problem:
            raise MCPError(types.INVALID_REQUEST, problem_text(problem)) from None
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, text=text, mime_type=kind)]
        )

    async def _watch(self, kind: type[Any], ctx: Context, params: Any) -> types.EmptyResult:
        """Subscribe or unsubscribe."""
        uri = params.uri
        if uri not in _OWN_URIS:
            return await self._pass_on(ctx, uri, kind(params=params), types.EmptyResult)
        live = await self._live(ctx)
        watched = self._subscriber(ctx).watched
        if kind is types.SubscribeRequest:
            watched.add((live.session.id, uri))
        else:
            watched.discard((live.session.id, uri))
        return types.EmptyResult()

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        if ctx.request is not None:
            # Events reach all listeners: on standard streams that is one person.
            raise MCPError(types.INVALID_REQUEST, "connect with `initialize` and subscribe")
        return await self._listen_on_streams(ctx, params)

    async def _report_changes(self, live: LiveSession) -> None:
        """The score card changes with every call, the frame when its text does."""
        uris = [CARD_URI]
        shown = live.player.shown()
        if shown.frame_text != live.shown:
            live.shown = shown.frame_text
            uris.insert(0, FRAME_URI)
        await self._subscribers.resources_changed(live.session.id, uris)

    # --- prompts and the rest -------------------------------------------------------

    async def _list_prompts(self, ctx: Context, params: Paged) -> types.ListPromptsResult:
        own = [] if self._silent else procedure_prompts(self.pool.service.briefing)
        upstreams, call = await self._upstreams(ctx)
        passed = await upstreams.prompts(call) if upstreams is not None else []
        names = {prompt.name for prompt in own}
        return types.ListPromptsResult(
            prompts=[*own, *(prompt for prompt in passed if prompt.name not in names)]
        )

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        service = self.pool.service
        if self._catalogue is not None and params.name not in service.briefing.programs:
            request = types.GetPromptRequest(params=params)
            key = f"prompt {params.name}"
            return await self._pass_on(ctx, key, request, types.GetPromptResult)
        return procedure_prompt(service.briefing, params, machine=service.view.machine)

    async def _complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """A procedure's inputs have no list to choose from."""
        ref = params.ref
        if isinstance(ref, types.PromptReference):
            if ref.name in self.pool.service.briefing.programs:
                return types.CompleteResult(completion=types.Completion(values=[]))
            key = f"prompt {ref.name}"
        else:
            key = ref.uri
        request = types.CompleteRequest(params=params)
        return await self._pass_on(ctx, key, request, types.CompleteResult)

    async def _set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._subscriber(ctx).log_level = params.level
        upstreams, _ = await self._upstreams(ctx)
        if upstreams is not None:
            await upstreams.set_log_level(params.level)
        return types.EmptyResult()

    async def _discover(
        self, ctx: Context, params: types.RequestParams | None
    ) -> types.DiscoverResult:
        """Sessions need connections: over HTTP, offer only the versions that have them.

        Clients then fall back to the handshake.
        """
        versions = MODERN_PROTOCOL_VERSIONS if ctx.request is None else HANDSHAKE_PROTOCOL_VERSIONS
        return types.DiscoverResult(
            supported_versions=list(versions),
            capabilities=self.protocol.get_capabilities(protocol_version=ctx.protocol_version),
            instructions=self.protocol.instructions,
        )

    # --- who asks -------------------------------------------------------------------

    def _caller(self, ctx: Context) -> Caller:
        return identify(ctx, self._session_id)

    def _subscriber(self, ctx: Context) -> Subscriber:
        return self._subscribers.see(self._caller(ctx), ctx.session)

    def _client_call(self, ctx: Context) -> ClientCall:
        return ClientCall(ctx, self._caller(ctx), self._subscriber(ctx).log_level)

    async def _live(self, ctx: Context) -> LiveSession:
        caller = self._caller(ctx)
        self._subscriber(ctx)
        try:
            return await self.pool.get(caller.owner, caller.key, caller.session_id)
        except SopilotError as problem:
            LOG.warning("a client was not served: %s", problem)
            raise MCPError(types.INVALID_REQUEST, problem_text(problem)) from None

    async def _upstreams(self, ctx: Context) -> tuple[GatewayTools | None, ClientCall]:
        call = self._client_call(ctx)
        call.in_rounds = False  # only calls of tools are parked
        if self._catalogue is None:
            return None, call
        return _gateway(await self._live(ctx), call), call

    async def _pass_on(
        self, ctx: Context, key: str, request: types.ClientRequest, answer: type[Result]
    ) -> Result:
        upstreams, call = await self._upstreams(ctx)
        if upstreams is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no `{key}`")
        return await upstreams.pass_on(key, request, answer, call)

    # --- end ------------------------------------------------------------------------

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._reported)

    def _reported(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            LOG.warning("a change was not reported to all clients: %s", problem)

    async def leave(self, owner: str, key: str) -> None:
        """A client has closed its connection."""
        self._subscribers.forget(owner, key)
        await self.pool.leave(owner, key)

    async def close(self) -> None:
        """Let calls under way end first, within reason."""
        self._parked.close()
        if self._running:
            await asyncio.wait(tuple(self._running), timeout=5)
        await self.pool.close()
        if self._catalogue is not None:
            await self._catalogue.close()


def _gateway(live: LiveSession, call: ClientCall) -> GatewayTools | None:
    """The session's upstreams, which now report to this client."""
    tools = live.session.tools
    if not isinstance(tools, GatewayTools):
        return None
    tools.client = call
    return tools


def _tool(schema: ToolSchema) -> types.Tool:
    return types.Tool(
        name=schema.name,
        description=schema.description,
        input_schema=dict(schema.parameters),
    )


def procedure_prompts(briefing: Briefing) -> list[types.Prompt]:
    """Prompts with which a person starts a procedure in any MCP client."""
    return [
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


def procedure_prompt(
    briefing: Briefing, params: types.GetPromptRequestParams, *, machine: bool
) -> types.GetPromptResult:
    program = briefing.programs.get(params.name)
    if program is None:
        raise MCPError(types.INVALID_PARAMS, "there is no such procedure")
    entry = program.functions[program.entry]
    lines = [f"I ask for `{params.name}`." + (f" {entry.says}" if entry.says else "")]
    lines += [
        f"{name}: {quote_value(value)}"
        for name, value in (params.arguments or {}).items()
        if name in entry.parameters
    ]
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


def _was_sent(problem: SopilotError) -> bool:
    """Whether the call had been sent when it failed, so that its outcome isn't known."""
    return isinstance(problem, OutcomeUnrecorded) or bool(
        isinstance(problem, LeaseLost) and problem.sent
    )


def problem_text(problem: SopilotError) -> str:
    """Tell a model what it can do about a problem. Owners, leases and stores are for operators."""
    if isinstance(problem, UnknownSession):
        return "The runtime cannot do this: there is no such session."
    if _was_sent(problem):
        return (
            "Outcome unknown: the call was sent, but its outcome could not be recorded. "
            "Do not call it again; operators know."
        )
    if isinstance(problem, LeaseHeld):
        return "Not done: another call of this session is under way. Try again in a moment."
    if isinstance(problem, RunEnded):
        return "Not done: the runtime cannot do this now. Try again in a moment; operators know."
    return f"The runtime cannot do this: {problem}"


class _ProtocolServer(Server[Any]):
    """Declares on every transport that it reports changes; the library would on none."""

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
            notification_options or self._changing, experimental_capabilities, extensions
        )
