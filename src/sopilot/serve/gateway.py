"""The tools of upstream servers as the tools of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from sopilot.serve.call_link import CURRENT_LINK
from sopilot.serve.catalogue import Catalogue
from sopilot.serve.content import recorded
from sopilot.serve.upstream import Upstream, UpstreamRefused
from sopilot.serve.world import World
from sopilot.session.protocols import JSON, ToolResult, ToolSchema


class GatewayTools:
    """One session's connections. Servers keep things per connection (a login, a basket), so
    sessions share none unless ``shared`` says that the servers keep nothing."""

    def __init__(self, catalogue: Catalogue, shared: dict[str, Upstream] | None = None) -> None:
        self._catalogue = catalogue
        self._own = shared is None
        self._upstreams: dict[str, Upstream] = {} if shared is None else shared
        self._seen: dict[str, int] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def schemas(self) -> Sequence[ToolSchema]:
        return tuple(offer.schema for offer in self._catalogue.offers())

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        offer = self._catalogue.offer(name)
        if offer is None:
            return ToolResult(False, {"error": f"`{name}` is not offered"})
        upstream = await self._checked(offer.upstream)
        if self._catalogue.offer(name) is None:
            held = self._catalogue.held.get(name)
            return ToolResult(False, {"error": f"not called: {held}"})
        link = CURRENT_LINK.get()
        try:
            given = await upstream.call(name, arguments, link)
        except UpstreamRefused as refused:
            return ToolResult(False, {"error": str(refused)})
        if link is not None:
            link.given = given
        return recorded(given)

    async def _checked(self, name: str) -> Upstream:
        """Connected, and the tools compared since: a server may come back as another one."""
        upstream = self._upstreams.get(name)
        if upstream is None:
            upstream = self._catalogue.spare.pop(name, None) or self._catalogue.connection(name)
            self._upstreams[name] = upstream
        if self._seen.get(name) != upstream.generation or not upstream.connected:
            async with self._locks.setdefault(name, asyncio.Lock()):
                if self._seen.get(name) != upstream.generation or not upstream.connected:
                    self._catalogue.compare(name, await upstream.tools())
                    self._seen[name] = upstream.generation
        return upstream

    async def refresh(self) -> None:
        """Compare every list anew, before it is shown."""
        for spec in self._catalogue.specs:
            upstream = await self._checked(spec.name)
            self._catalogue.compare(spec.name, await upstream.tools())

    async def close(self) -> None:
        if self._own:
            for upstream in self._upstreams.values():
                await upstream.close()


def gateway_world(catalogue: Catalogue, shared: dict[str, Upstream] | None = None) -> World:
    tools = GatewayTools(catalogue, shared)
    return World(tools, close=tools.close)
