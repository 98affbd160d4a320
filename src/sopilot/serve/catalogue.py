"""The tools a gateway offers: those of its upstream servers, as they were approved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import mcp_types as types

from sopilot.diagnostics import Diagnostic, UserMistake
from sopilot.serve.pins import Drift, Pins, tool_digest
from sopilot.serve.upstream import Upstream, UpstreamFailed
from sopilot.serve.upstream_spec import UpstreamSpec
from sopilot.session.protocols import ToolSchema

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Offer:
    upstream: str
    tool: types.Tool

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(self.tool.name, self.tool.description or "", self.tool.input_schema)


class Catalogue:
    """``tell`` reaches the operator. Tools seen for the first time are pinned as they are:
    whoever starts a gateway in front of a server approves what it offers then."""

    def __init__(
        self,
        specs: Sequence[UpstreamSpec],
        pins: Pins,
        tell: Told,
        *,
        reserved: frozenset[str] = frozenset(),
        approve_changes: bool = False,
        timeout_seconds: float = 300.0,
    ) -> None:
        self.specs = tuple(specs)
        self._timeout = timeout_seconds
        self.held: dict[str, Drift] = {}
        """Tools that are not what was approved, by name. They are neither listed nor called."""
        self.on_change: Callable[[], None] | None = None
        self._pins = pins
        self._tell = tell
        self._reserved = reserved
        self._approve_changes = approve_changes
        self._offers: dict[str, Offer] = {}
        self._told: set[Drift] = set()
        self._looking: set[asyncio.Task[None]] = set()
        self.spare: dict[str, Upstream] = {}
        """Connections that were made to look at the tools, for whoever needs one first."""

    async def open(self) -> None:
        """Look at every upstream once; raises if one cannot be reached or names clash."""
        for spec in self.specs:
            upstream = self.spare[spec.name] = self.connection(spec.name)
            found = await upstream.tools()
            if self._approve_changes or not self._pins.knows(spec.name):
                self._pins.approve(spec.name, _digests(found))
            for tool in found:
                self._add(spec.name, tool)
            self.compare(spec.name, found)

    def _add(self, upstream: str, tool: types.Tool) -> None:
        clash = self._offers.get(tool.name)
        if clash is not None or tool.name in self._reserved:
            other = f"`{clash.upstream}`" if clash is not None else "the runtime"
            message = f"`{tool.name}` is offered by `{upstream}` and by {other}"
            cure = "leave one of the servers out: a call must mean one tool"
            raise UserMistake([Diagnostic("tool-clash", message, help=cure)])
        self._offers[tool.name] = Offer(upstream, tool)

    def compare(self, upstream: str, found: Sequence[types.Tool]) -> tuple[Drift, ...]:
        """Hold what is not as approved; the drifts that were not known before."""
        drifts = self._pins.drifts(upstream, _digests(found))
        fresh = tuple(drift for drift in drifts if drift not in self._told)
        for drift in drifts:
            # What was held once in this process stays held: a list may be changed back.
            known = self._offers.get(drift.tool)
            if known is None or known.upstream == upstream:
                self.held.setdefault(drift.tool, drift)
        for drift in fresh:
            self._told.add(drift)
            self._tell(f"held: {drift}; approve it with --approve-tools")
        if fresh and self.on_change is not None:
            self.on_change()
        return fresh

    def offers(self) -> tuple[Offer, ...]:
        return tuple(offer for name, offer in self._offers.items() if name not in self.held)

    def offer(self, name: str) -> Offer | None:
        return None if name in self.held else self._offers.get(name)

    def connection(self, name: str) -> Upstream:
        """A connection of its own to that server; it connects when it is used."""
        spec = next(spec for spec in self.specs if spec.name == name)
        upstream = Upstream(spec, timeout_seconds=self._timeout)

        async def look() -> None:
            # A connection that breaks now is looked at when it is made again.
            with suppress(UpstreamFailed):
                self.compare(name, await upstream.tools())

        async def look_soon() -> None:
            # Not from within the connection's own reader, which must stay free to answer.
            task = asyncio.create_task(look())
            self._looking.add(task)
            task.add_done_callback(self._looking.discard)

        upstream.on_list_changed = look_soon
        return upstream

    async def close(self) -> None:
        for upstream in self.spare.values():
            await upstream.close()


def _digests(tools: Sequence[types.Tool]) -> dict[str, str]:
    return {
        tool.name: tool_digest(tool.model_dump(by_alias=True, mode="json", exclude_none=True))
        for tool in tools
    }
