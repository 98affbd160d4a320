"""What a server has beside its tools: the frame, the score card, the procedures as prompts; and
of a gateway's upstreams everything else.
"""

from __future__ import annotations

import json
from contextlib import suppress

import mcp_types as types
from mcp.shared.exceptions import MCPError

from sopilot.adapters.logs import LOG
from sopilot.doors.mcp._audience import Audience
from sopilot.doors.mcp._call_link import CallLink, ProgressReport
from sopilot.doors.mcp._clients import Asker, Context, asker
from sopilot.doors.mcp._eliciting import eliciting
from sopilot.doors.mcp._gateway import GatewayTools
from sopilot.doors.mcp._passing import Passing
from sopilot.doors.mcp._procedure_prompts import get_prompt, list_prompts
from sopilot.doors.mcp._relay import Relay
from sopilot.doors.mcp._telling import told
from sopilot.doors.mcp.catalogue import Catalogue
from sopilot.doors.mcp.hub import Hub, Seat
from sopilot.doors.mcp.playing import session_report
from sopilot.language.diagnostics import SopilotError

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
        return get_prompt(service.briefing, params, machine=service.arm.machine)

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
