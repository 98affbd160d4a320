"""Upstream servers as the tools of a session, and everything else that they offer.

Resources, templates, prompts, completions and logs pass unchanged, except for the runtime's own
marks, which a server could forge. The runtime's own resources and prompts win over an upstream's
of the same name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from sopilot.integrations.mcp.client_call import CURRENT_CALL, ClientCall
from sopilot.integrations.mcp.content import recorded, without_marks
from sopilot.integrations.mcp.pins import Catalogue, Drift
from sopilot.integrations.mcp.upstream import (
    Listing,
    Page,
    Upstream,
    UpstreamFailed,
    UpstreamRefused,
)
from sopilot.messages.errors import RunEnded
from sopilot.protocols import ToolResult, ToolSchema, UpstreamConnection
from sopilot.values.json import JSON

_OWN_SCHEME = "sopilot:"
Result = TypeVar("Result", bound=BaseModel)


class ToolHeld(RunEnded):
    """The tool differs from the approved one: it wasn't called."""

    def __init__(self, drift: Drift) -> None:
        super().__init__(str(drift))


class CallCancelled(RunEnded):
    """The client gave up before the call was sent."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` was cancelled before it was sent")


class GatewayTools:
    """One session's connections to the upstream servers.

    Servers keep state per connection (a login, a basket), so sessions share none unless
    ``shared`` says that the servers keep nothing. A result of a ``guarded`` action that is marked
    as an error is unknown: server libraries mark so whatever a tool raised, also after it acted.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        shared: dict[str, Upstream] | None = None,
        *,
        guarded: Collection[str] = (),
    ) -> None:
        self._catalogue = catalogue
        self._guarded = frozenset(guarded)
        self._own = shared is None
        self._upstreams: dict[str, Upstream] = {} if shared is None else shared
        self.client: ClientCall | None = None
        """The last call of a client: what a server reports by itself goes there."""
        self._homes: dict[str, str] = {}
        """Which upstream listed a URI, a template or a prompt."""

    # --- tools ----------------------------------------------------------------------

    def schemas(self) -> Sequence[ToolSchema]:
        return tuple(offer.schema for offer in self._catalogue.offers())

    async def ready(self, name: str) -> None:
        """Raise for a held tool, before the call is recorded.

        Before an irreversible call the tools are verified anew, so that no proof is used up for
        a call that isn't made.
        """
        call, offer = CURRENT_CALL.get(), self._catalogue.offer(name)
        if call is not None and call.irreversible and offer is not None:
            with suppress(UpstreamFailed, UpstreamRefused):  # shows at the call
                await self.upstream(offer.upstream).verify(call)
            if call.cancelled:
                raise CallCancelled(name)
        drift = self._catalogue.held(name)
        if drift is not None:
            raise ToolHeld(drift)

    async def connections(self, name: str) -> Sequence[UpstreamConnection]:
        """Shared upstreams keep nothing per connection, so they have none to tell apart."""
        if not self._own:
            return ()
        offer = self._catalogue.offer(name)
        if offer is not None:
            with suppress(UpstreamFailed):
                await self.upstream(offer.upstream).connect()
        actions: dict[str, list[str]] = {}
        for offered in self._catalogue.offers():
            actions.setdefault(offered.upstream, []).append(offered.name)
        ids = {name: upstream.connection_id for name, upstream in self._upstreams.items()}
        return [
            UpstreamConnection(name, ids.get(name, ""), tuple(actions.get(name, ())))
            for name in self._names
        ]

    async def call_on(
        self, connection: str, name: str, arguments: Mapping[str, JSON], *, key: str
    ) -> ToolResult:
        return await self.call(name, arguments, key=key, connection=connection)

    async def call(
        self, name: str, arguments: Mapping[str, JSON], *, key: str, connection: str = ""
    ) -> ToolResult:
        """A call that isn't sent has a result; only one that was sent can be unknown."""
        offer = self._catalogue.offer(name)
        if offer is None:
            return ToolResult(False, {"error": f"`{name}` is not offered"})
        call = CURRENT_CALL.get()
        upstream = self.upstream(offer.upstream)
        try:
            await upstream.verify(call, fresh=call is not None and call.irreversible)
        except (UpstreamFailed, UpstreamRefused) as problem:
            return _not_called(problem)
        drift = self._catalogue.held(name)
        if drift is not None:
            if call is not None and call.tool == name:  # not a read of the runtime's own
                call.held = drift
            return _not_called(drift)
        if call is not None and call.cancelled:
            return _not_called("it was cancelled before")
        meter = self._catalogue.meter
        try:
            with meter.timing("upstream", upstream=offer.upstream):
                result = await upstream.call(
                    offer.tool.name, arguments, call, key=key, connection=connection
                )
        except UpstreamFailed:
            meter.count("upstream_failures", upstream=offer.upstream)
            raise
        except UpstreamRefused as problem:
            return _not_called(problem)
        if call is not None and call.tool == name:
            call.result = result
        answer = recorded(result)
        return replace(answer, unknown=name in self._guarded and not answer.ok)

    async def refresh(self) -> Sequence[str]:
        """Verify every list before it is shown; return which servers can't be reached."""
        problems = []
        for name in self._names:
            try:
                await self.upstream(name).verify()
            except (UpstreamFailed, UpstreamRefused) as problem:
                problems.append(str(problem))
        return problems

    def upstream(self, name: str) -> Upstream:
        upstream = self._upstreams.get(name)
        if upstream is None:
            upstream = self._catalogue.spare.pop(name, None) or self._catalogue.connection(name)
            self._upstreams[name] = upstream
            if self._own:
                upstream.hear = self._hear
        return upstream

    async def _hear(self, notice: types.ServerNotification) -> None:
        if self.client is not None:
            await self.client.notify(notice, of_call=False)

    async def close(self) -> None:
        if self._own:
            for upstream in self._upstreams.values():
                await upstream.close()

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self._catalogue.specs)

    # --- everything else ------------------------------------------------------------

    async def resources(self, call: ClientCall) -> list[types.Resource]:
        pages = self._listed(types.ListResourcesRequest, types.ListResourcesResult, call)
        listed = [(name, item) for name, page in await pages for item in page.resources]
        return [item for name, item in listed if self._is_home(name, item.uri)]

    async def templates(self, call: ClientCall) -> list[types.ResourceTemplate]:
        pages = self._listed(
            types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult, call
        )
        listed = [(name, item) for name, page in await pages for item in page.resource_templates]
        return [item for name, item in listed if self._is_home(name, item.uri_template)]

    async def prompts(self, call: ClientCall) -> list[types.Prompt]:
        pages = self._listed(types.ListPromptsRequest, types.ListPromptsResult, call)
        listed = [(name, item) for name, page in await pages for item in page.prompts]
        return [item for name, item in listed if self._is_home(name, f"prompt {item.name}")]

    async def pass_on(
        self, key: str, request: types.ClientRequest, answer: type[Result], call: ClientCall
    ) -> Result:
        """Ask the server that listed ``key``; else the first that knows it."""
        problem: Exception | None = None
        for name in self._candidates(key):
            upstream = self.upstream(name)
            try:
                if _offers(await upstream.capabilities(), request.method):
                    return without_marks(await upstream.ask(request, answer, call))
            except (UpstreamFailed, UpstreamRefused) as refused:
                problem = refused
        raise MCPError(types.INVALID_PARAMS, str(problem or f"no upstream has `{key}`"))

    async def set_log_level(self, level: types.LoggingLevel) -> None:
        """A shared connection logs for everybody: there each client's own level filters."""
        for name in self._names if self._own else ():
            try:
                await self.upstream(name).set_log_level(level)
            except (UpstreamFailed, UpstreamRefused) as problem:
                self._catalogue.tell(str(problem))

    async def _listed(
        self, request: type[Listing], answer: type[Page], call: ClientCall
    ) -> list[tuple[str, Page]]:
        """Pages by upstream, without those that can't be reached."""
        listed: list[tuple[str, Page]] = []
        for name in self._names:
            upstream = self.upstream(name)
            try:
                if _offers(await upstream.capabilities(), request(params=None).method):
                    pages = [page async for page in upstream.pages(request, answer, call)]
                    listed += [(name, without_marks(page)) for page in pages]
            except (UpstreamFailed, UpstreamRefused) as problem:
                self._catalogue.tell(str(problem))
        return listed

    def _is_home(self, upstream: str, key: str) -> bool:
        """The first server that lists a key keeps it; the runtime's own keys don't pass."""
        if key.lower().startswith(_OWN_SCHEME):
            return False
        return self._homes.setdefault(key, upstream) == upstream

    def _candidates(self, key: str) -> Iterator[str]:
        if key.lower().startswith(_OWN_SCHEME):
            return
        home = self._homes.get(key)
        yield from (home,) if home is not None else self._names


def _not_called(why: object) -> ToolResult:
    return ToolResult(False, {"error": f"not called: {why}"})


def _offers(capabilities: types.ServerCapabilities, method: str) -> bool:
    part = method.partition("/")[0]
    return getattr(capabilities, {"completion": "completions"}.get(part, part), None) is not None
