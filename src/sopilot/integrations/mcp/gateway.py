"""The tools of upstream servers as the tools of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import mcp_types as types

from sopilot.integrations.mcp.call_link import CURRENT_LINK, CallLink, Look
from sopilot.integrations.mcp.catalogue import Catalogue
from sopilot.integrations.mcp.checked_upstream import CheckedUpstream
from sopilot.integrations.mcp.content import recorded
from sopilot.integrations.mcp.kept_connection import UpstreamFailed
from sopilot.integrations.mcp.passing import Passing
from sopilot.integrations.mcp.pins import Drift
from sopilot.integrations.mcp.relay import Relay
from sopilot.integrations.mcp.upstream import McpRefused
from sopilot.messages.errors import RunEnded
from sopilot.protocols import ToolResult, ToolSchema, UpstreamConnection
from sopilot.tasks.task import Simulation
from sopilot.values.json import JSON


class ToolHeld(RunEnded):
    """The tool is not what was approved: nothing was called."""

    def __init__(self, drift: Drift) -> None:
        super().__init__(str(drift))


class CallLeft(RunEnded):
    """Its client gave up before it was made: nothing was called."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` was cancelled before it was made")


class GatewayTools:
    """One session's connections. Servers keep things per connection (a login, a basket), so
    sessions share none unless ``shared`` says that the servers keep nothing. ``client`` is who
    used the session last: what a server of its own tells by itself goes there."""

    def __init__(
        self, catalogue: Catalogue, shared: dict[str, CheckedUpstream] | None = None
    ) -> None:
        self._catalogue = catalogue
        self._own = shared is None
        self._upstreams: dict[str, CheckedUpstream] = {} if shared is None else shared
        self.client: Relay | None = None
        names = [spec.name for spec in catalogue.specs]
        self.passing = Passing(names, self._upstream, catalogue.tell)

    def schemas(self) -> Sequence[ToolSchema]:
        return tuple(offer.schema for offer in self._catalogue.offers())

    async def connections(self, name: str) -> Sequence[UpstreamConnection]:
        """Shared ones keep nothing: for whoever shares them, the servers are one environment."""
        if not self._own:
            return ()
        offer = self._catalogue.offer(name)
        if offer is not None:
            await self._upstream(offer.upstream).connect()
        of_upstream: dict[str, list[str]] = {}
        for one in self._catalogue.offers():
            of_upstream.setdefault(one.upstream, []).append(one.tool.name)
        return [
            UpstreamConnection(upstream, kept.connection_id, tuple(of_upstream.get(upstream, ())))
            for upstream, kept in self._upstreams.items()
            if kept.connection_id
        ]

    async def call_on(
        self, connection: str, name: str, arguments: Mapping[str, JSON], *, key: str
    ) -> ToolResult:
        return await self.call(name, arguments, key=key, connection=connection)

    async def call(
        self, name: str, arguments: Mapping[str, JSON], *, key: str, connection: str = ""
    ) -> ToolResult:
        """Whatever keeps a call from being sent is a result: only what was sent and not
        answered is unknown."""
        offer = self._catalogue.offer(name)
        if offer is None:
            return ToolResult(False, {"error": f"`{name}` is not offered"})
        link = CURRENT_LINK.get()
        upstream = self._upstream(offer.upstream)
        try:
            await self._check(upstream, link)
        except (UpstreamFailed, McpRefused) as problem:
            return ToolResult(False, {"error": f"not called: {problem}"})
        drift = self._catalogue.held.get(name)
        if drift is not None:
            if link is not None:
                link.held = drift
            return ToolResult(False, {"error": f"not called: {drift}"})
        if link is not None and link.cancelled.is_set():
            return ToolResult(False, {"error": "not called: it was cancelled before"})
        meter = self._catalogue.meter
        try:
            with meter.timing("upstream", upstream=offer.upstream):
                given = await upstream.call(name, arguments, link, key=key, connection=connection)
        except UpstreamFailed:
            meter.count("upstream_failures", upstream=offer.upstream)
            raise
        except McpRefused as refused:
            return ToolResult(False, {"error": str(refused)})
        if link is not None:
            link.given = given
        return recorded(given)

    def look(self, name: object) -> Look | None:
        """A call of it has come: it is looked at while the call is read."""
        offer = self._catalogue.offer(name) if isinstance(name, str) else None
        if offer is None:
            return None
        upstream = self._upstream(offer.upstream)
        task = asyncio.create_task(upstream.check())
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return Look(upstream, task)

    async def ready(self, name: str) -> None:
        """Raises for a tool that is held. A server that cannot be asked shows at the call. Before
        what cannot be undone the look is over: nothing that was proven is used up for a call that
        is not made. Others are put on record while it is under way."""
        link = CURRENT_LINK.get()
        if link is not None and link.irreversible:
            await self._looked(link.look, link)
            if link.cancelled.is_set():
                raise CallLeft(name)
        drift = self._catalogue.held.get(name)
        if drift is not None:
            raise ToolHeld(drift)

    async def _check(self, upstream: CheckedUpstream, link: CallLink | None) -> None:
        """What is called on the way to the call (to read once more what it rests on) may be of
        another server, may change something, and takes its time: a look is for one call."""
        if link is None:
            await upstream.check()
            return
        look, link.look = link.look, None
        mine = look is not None and look.upstream is upstream and await self._looked(look, link)
        if not mine or not upstream.holds(strictly=link.irreversible):
            await upstream.check(link)

    async def _looked(self, look: Look | None, link: CallLink) -> bool:
        """Whether it came to its end. One that failed says nothing: the next one says why."""
        if look is None:
            return False
        task = look.task
        if not task.done():
            link.cancelled.then.append(task.cancel)
            await asyncio.wait({task})
            link.cancelled.then.remove(task.cancel)
        return not task.cancelled() and task.exception() is None

    def _upstream(self, name: str) -> CheckedUpstream:
        upstream = self._upstreams.get(name)
        if upstream is None:
            upstream = self._catalogue.spare.pop(name, None) or self._catalogue.connection(name)
            self._upstreams[name] = upstream
            if self._own:
                upstream.hear(self._heard)
        return upstream

    async def _heard(self, notice: types.ServerNotification) -> None:
        if self.client is not None:
            await self.client.tell(notice, of_call=False)

    async def set_log_level(self, level: types.LoggingLevel) -> None:
        """A shared connection logs for everybody: there each client's own level chooses."""
        if self._own:
            await self.passing.set_level(level)

    async def refresh(self) -> Sequence[str]:
        """Compare every list anew, before it is shown; what cannot be reached."""
        problems = []
        for spec in self._catalogue.specs:
            try:
                await self._upstream(spec.name).look()
            except (UpstreamFailed, McpRefused) as problem:
                problems.append(str(problem))
        return problems

    async def close(self) -> None:
        if self._own:
            for upstream in self._upstreams.values():
                await upstream.close()


def gateway_simulation(
    catalogue: Catalogue, shared: dict[str, CheckedUpstream] | None = None
) -> Simulation:
    tools = GatewayTools(catalogue, shared)
    return Simulation(tools, close=tools.close)
