"""A connection whose tools are looked at before they are used.

A server can change what it says of a tool without a word, so nothing but looking
helps. Calls that come at once share a look, but only one that began after they came.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress

import mcp_types as types

from sopilot.integrations.mcp.call_link import CallLink
from sopilot.integrations.mcp.kept_connection import Notice, UpstreamFailed
from sopilot.integrations.mcp.upstream import Answer, Listing, McpRefused, McpUpstream, Page
from sopilot.values.json import JSON

Compare = Callable[[Sequence[types.Tool]], object]


_LONG_SECONDS = 1.0
"""A call that has waited so long for its turn is looked at once more."""


class CheckedUpstream:
    """``compare`` is given every list that differs from the one before. ``recheck_seconds``
    is how long a look holds; with 0 there is one before every call."""

    def __init__(
        self, upstream: McpUpstream, compare: Compare, *, recheck_seconds: float = 0.0
    ) -> None:
        self._upstream = upstream
        self._compare = compare
        self._recheck_seconds = recheck_seconds
        self._found: list[types.Tool] | None = None
        self._generation = -1
        """The connection on which the tools were last looked at."""
        self._looked_at = 0.0
        self._tickets = 0
        self._served = 0
        self._last_call = 0
        """The ticket of a look that begins when the last call has ended."""
        self._last_told = 0
        """The ticket of a look that begins when the server has told of a change."""
        self._closed = False
        self._failed: tuple[int, UpstreamFailed] | None = None
        self._turn = asyncio.Lock()
        self._beside: asyncio.Task[None] | None = None
        upstream.on_list_changed = self._look_soon

    async def look(self, link: CallLink | None = None) -> Sequence[types.Tool]:
        """The tools as they are now; a look that began after this call was made is enough."""
        self._tickets += 1
        await self._look_since(self._tickets, link)
        assert self._found is not None
        return self._found

    async def check(self, link: CallLink | None = None) -> None:
        """Before a call: look, unless the last look still holds."""
        unchanged = self._is_same and self._served >= self._last_told
        if not (unchanged and self._age < self._recheck_seconds):
            await self.look(link)

    async def connect(self) -> str:
        """The id of the present connection, made where there is none; empty where it can't be."""
        with suppress(UpstreamFailed):
            await self._upstream.connect()
        return self._upstream.connection_id

    @property
    def connection_id(self) -> str:
        return self._upstream.connection_id

    async def call(
        self,
        name: str,
        arguments: Mapping[str, JSON],
        link: CallLink | None = None,
        *,
        key: str,
        connection: str = "",
    ) -> types.CallToolResult:
        """On the connection that was looked at, or not at all; with a ``connection``, only if it
        is this one."""
        if connection and connection != self.connection_id:
            raise McpRefused("not called: the connection to its server was lost; call it again")
        here = self._generation
        try:
            return await self._upstream.call(name, arguments, link, key=key, generation=here)
        finally:
            self._tickets += 1
            self._last_call = self._tickets

    def holds(self, *, strictly: bool) -> bool:
        """Whether a look that was taken for a call is good for it still: no other connection was
        made, no change was told, and it is not long ago. ``strictly``: and no call has ended."""
        since = self._last_call if strictly else self._last_told
        fresh = self._age < max(self._recheck_seconds, _LONG_SECONDS)
        return fresh and self._is_same and self._served >= since

    @property
    def _is_same(self) -> bool:
        return self._upstream.connected and self._upstream.generation == self._generation

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def _age(self) -> float:
        return self._now - self._looked_at

    # --- what no look is needed for -------------------------------------------------

    async def can(self) -> types.ServerCapabilities:
        return await self._upstream.can()

    def pages(
        self, request: type[Listing], answer: type[Page], link: CallLink
    ) -> AsyncIterator[Page]:
        return self._upstream.pages(request, answer, link)

    async def ask(
        self, request: types.ClientRequest, answer: type[Answer], link: CallLink
    ) -> Answer:
        return await self._upstream.ask(request, answer, link)

    async def set_log_level(self, level: types.LoggingLevel) -> None:
        await self._upstream.set_log_level(level)

    def hear(self, notice: Notice) -> None:
        self._upstream.on_notice = notice

    async def close(self) -> None:
        self._closed = True  # nobody looks beside any more, and connects again for it
        if self._beside is not None:
            self._beside.cancel()
            await asyncio.gather(self._beside, return_exceptions=True)
        await self._upstream.close()

    async def _look_since(self, ticket: int, link: CallLink | None) -> None:
        if self._served >= ticket:
            return
        async with self._turn:
            if self._served < ticket:
                self._raise_if_failed(ticket)
                await self._look(link)

    async def _look(self, link: CallLink | None) -> None:
        covers = self._tickets
        try:
            found = await self._upstream.tools(link)
        except UpstreamFailed as problem:
            # Those who wait would only wait for the same; a client's own impatience is its own.
            if link is None or not link.cancelled.is_set():
                self._failed = covers, problem
            raise
        self._served = covers
        self._generation = self._upstream.generation
        self._looked_at = self._now
        if self._found is None or not _same(found, self._found):
            self._found = found
            self._compare(found)

    def _raise_if_failed(self, ticket: int) -> None:
        if self._failed is not None and ticket <= self._failed[0]:
            raise UpstreamFailed(str(self._failed[1]))

    def _look_soon(self) -> None:
        """As soon as it is read that something has changed: a call may be on its way."""
        self._tickets += 1
        # What was seen before holds for nobody.
        self._last_call = self._last_told = self._tickets
        if not self._closed and (self._beside is None or self._beside.done()):
            self._beside = asyncio.create_task(self._catch_up())

    async def _catch_up(self) -> None:
        # A connection that breaks now is looked at when it is made again.
        with suppress(UpstreamFailed, McpRefused):
            while self._served < self._last_told:
                await self._look_since(self._last_told, None)


def _same(found: Sequence[types.Tool], known: Sequence[types.Tool]) -> bool:
    """Whether they are spelled the same: in Python, `True` and 1 are equal."""
    if len(found) != len(known):
        return False
    return all(
        one is other or one.model_dump_json() == other.model_dump_json()
        for one, other in zip(found, known, strict=True)
    )
