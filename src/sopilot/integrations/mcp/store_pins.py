"""Pins in a journal of the store: approved once for every server that shares it, and on record."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.integrations.mcp.pins import Definition, Pins, pinned
from sopilot.protocols import SystemClock
from sopilot.records.journal import Entry, folded, write
from sopilot.records.store import Store
from sopilot.values.json import JSON, plain_mapping

_JOURNAL = "pins"


_ALL, _FIRST, _ONE = "tools_approved", "tools_approved_first", "tool_approved"


class StorePins(Pins):
    """``earlier``: what a file of this host has approved, and the store does not know yet."""

    def __init__(self, store: Store, earlier: Pins) -> None:
        super().__init__()
        self._store = store
        self._earlier = earlier
        self._unwritten: list[tuple[str, dict[str, JSON]]] = []

    async def opened(self) -> StorePins:
        self._approved = await folded(self._store, _JOURNAL, _fold)
        return self

    def knows(self, upstream: str) -> bool:
        if not super().knows(upstream) and self._earlier.knows(upstream):
            self.approve_first(upstream, self._earlier.of(upstream))
        return super().knows(upstream)

    def approve(self, upstream: str, found: Mapping[str, Definition]) -> None:
        super().approve(upstream, found)
        self._note(_ALL, upstream=upstream, tools=self.of(upstream))

    def approve_first(self, upstream: str, found: Mapping[str, Definition]) -> None:
        super().approve_first(upstream, found)
        self._note(_FIRST, upstream=upstream, tools=self.of(upstream))

    def approve_one(self, upstream: str, tool: str, found: Definition | None) -> None:
        super().approve_one(upstream, tool, found)
        definition = None if found is None else pinned(found)
        self._note(_ONE, upstream=upstream, tool=tool, definition=definition)

    def _note(self, name: str, **details: JSON) -> None:
        self._unwritten.append((name, details))

    async def written(self) -> None:
        for name, details in self._unwritten:
            await write(self._store, _JOURNAL, name, plain_mapping(details), clock=SystemClock())
        self._unwritten.clear()
        await self.opened()


def _fold(entries: list[Entry]) -> dict[str, dict[str, Definition]]:
    """Of two servers that saw an upstream first at once, the one that wrote first."""
    approved: dict[str, dict[str, Definition]] = {}
    for entry in entries:
        upstream = str(entry.details["upstream"])
        if entry.name == _ONE:
            found = {str(entry.details["tool"]): entry.details["definition"]}
            approved[upstream] = _tools({**approved.get(upstream, {}), **found})
        elif entry.name == _ALL or upstream not in approved:
            approved[upstream] = _tools(entry.details["tools"])
    return approved


def _tools(found: JSON) -> dict[str, Definition]:
    """Without those that are offered no more."""
    if not isinstance(found, Mapping):
        raise TypeError("tools are named")
    return {name: pinned(one) for name, one in found.items() if isinstance(one, Mapping)}
