"""Clients who want to hear of changes: by connection, and by the session they watch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import mcp_types as types
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.server.subscriptions import ToolsListChanged as ToolsListChangedEvent

from sopilot.doors.mcp._clients import Asker

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
