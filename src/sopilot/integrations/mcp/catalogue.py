"""The tools a gateway offers: those of its upstream servers, as they were approved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import mcp_types as types

from sopilot.handbook.model import Handbook
from sopilot.integrations.mcp.checked_upstream import CheckedUpstream
from sopilot.integrations.mcp.pins import Definition, Drift, Pins, one_line, tool_digest
from sopilot.integrations.mcp.upstream import McpUpstream
from sopilot.integrations.mcp.upstream_spec import UpstreamSpec
from sopilot.integrations.metrics import NoMetrics
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import SopilotError, mistake
from sopilot.protocols import ToolSchema

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    upstream: str
    tool: types.Tool

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(self.tool.name, self.tool.description or "", self.tool.input_schema)


class Catalogue:
    """What ``handbook`` does not offer is neither listed nor called, unless ``pass_through``
    names it. ``tell`` reaches the operator. Tools seen for the first time are pinned as they are:
    whoever starts a gateway in front of a server approves what it offers then. ``approve``
    names tools that are approved anew at the start; ``approve_all`` approves every one."""

    def __init__(
        self,
        specs: Sequence[UpstreamSpec],
        pins: Pins,
        tell: Told,
        *,
        handbook: Handbook,
        pass_through: Collection[str] = (),
        reserved: frozenset[str] = frozenset(),
        approve_all: bool = False,
        approve: Collection[str] = (),
        timeout_seconds: float = 300.0,
        recheck_seconds: float = 0.0,
        require_pins: bool = False,
        meter: NoMetrics | None = None,
    ) -> None:
        self.specs = tuple(specs)
        self._timeout = timeout_seconds
        self._recheck_seconds = recheck_seconds
        self._require_pins = require_pins
        self.meter = meter or NoMetrics()
        for spec in self.specs:
            self.meter.count("upstream_failures", 0, upstream=spec.name)
        self.held: dict[str, Drift] = {}
        """Tools that are not what was approved, by name. They are neither listed nor called."""
        self.on_change: Callable[[], None] | None = None
        self._pins = pins
        self.tell = tell
        self._pass_through = frozenset(pass_through)
        self._permitted = _permitted(handbook, self._pass_through)
        self._reserved = reserved
        self._approve_all = approve_all
        self._approve = frozenset(approve)
        self._offers: dict[str, OfferedTool] = {}
        self._told: set[Drift] = set()
        self.spare: dict[str, CheckedUpstream] = {}
        """Connections that were made to look at the tools, for whoever needs one first."""

    async def open(self) -> None:
        """Look at every upstream once; raises if one cannot be reached or names clash."""
        try:
            await self._open()
        except SopilotError:
            await self.close()
            raise

    async def _open(self) -> None:
        known: set[str] = set()
        kept_back: list[str] = []
        for spec in self.specs:
            upstream = McpUpstream(spec, timeout_seconds=self._timeout)
            self.spare[spec.name] = self._checked(upstream)
            found = await upstream.tools()
            definitions = _definitions(found)
            if self._approve_all:
                self._pins.approve(spec.name, definitions)
            elif not self._pins.knows(spec.name):
                self._approve_first(spec.name, definitions)
            known.update(definitions)
            for drift in self._pins.drifts(spec.name, definitions):
                known.add(drift.tool)
                if drift.tool in self._approve:
                    self._pins.approve_one(spec.name, drift.tool, definitions.get(drift.tool))
            for tool in found:
                if tool.name in self._permitted:
                    self._add(spec.name, tool)
                else:
                    kept_back.append(one_line(tool.name))
            await self._pins.written()
            self.compare(spec.name, found)
        for name in sorted((self._approve | self._pass_through) - known):
            cure = did_you_mean(name, known)
            raise mistake("unknown-tool", f"no upstream has a tool `{name}`", help=cure)
        if kept_back:
            self.tell(
                f"not offered, since the handbook does not: {', '.join(kept_back)}; "
                "what it does not name passes with --pass-through NAME"
            )

    def _approve_first(self, upstream: str, found: Mapping[str, Definition]) -> None:
        if self._require_pins:
            message = f"nobody has approved the tools of `{upstream}` yet"
            cure = "look at them and start once with --approve-tools, and keep --pins"
            raise mistake("no-pins", message, help=cure)
        self._pins.approve_first(upstream, found)
        self.tell(
            f"the tools of `{one_line(upstream)}` are approved as they are, for the first time: "
            f"{', '.join(map(one_line, found))}"
        )

    def _add(self, upstream: str, tool: types.Tool) -> None:
        clash = self._offers.get(tool.name)
        if clash is not None or tool.name in self._reserved:
            other = f"`{clash.upstream}`" if clash is not None else "the runtime"
            message = f"`{one_line(tool.name)}` is offered by `{upstream}` and by {other}"
            cure = "leave one of the servers out: a call must mean one tool"
            raise mistake("tool-clash", message, help=cure)
        self._offers[tool.name] = OfferedTool(upstream, tool)

    def compare(self, upstream: str, found: Sequence[types.Tool]) -> None:
        """Hold what is not as approved, and tell what was not told before."""
        drifts = [
            drift
            for drift in self._pins.drifts(upstream, _definitions(found, self._pins.of(upstream)))
            if drift.tool in self._permitted
        ]
        fresh = [drift for drift in drifts if drift not in self._told]
        for drift in drifts:
            # What was held once in this process stays held: a list may be changed back.
            known = self._offers.get(drift.tool)
            if known is None or known.upstream == upstream:
                self.held.setdefault(drift.tool, drift)
        for drift in fresh:
            self._told.add(drift)
            what = f"held: {drift}"
            if drift.changes:
                what += f" ({drift.changes})"
            self.tell(
                f"{what}; if that is right, start again with --approve-tool {one_line(drift.tool)}"
            )
        if fresh and self.on_change is not None:
            self.on_change()

    def offers(self) -> tuple[OfferedTool, ...]:
        return tuple(offer for name, offer in self._offers.items() if name not in self.held)

    def offer(self, name: str) -> OfferedTool | None:
        return None if name in self.held else self._offers.get(name)

    def connection(self, name: str) -> CheckedUpstream:
        """A connection of its own to that server; it connects when it is used."""
        spec = next(spec for spec in self.specs if spec.name == name)
        return self._checked(McpUpstream(spec, timeout_seconds=self._timeout))

    def _checked(self, upstream: McpUpstream) -> CheckedUpstream:
        compare = partial(self.compare, upstream.spec.name)
        return CheckedUpstream(upstream, compare, recheck_seconds=self._recheck_seconds)

    async def close(self) -> None:
        for upstream in self.spare.values():
            await upstream.close()


def _permitted(handbook: Handbook, pass_through: frozenset[str]) -> frozenset[str]:
    for name in sorted(pass_through & handbook.actions.keys()):
        if not handbook.actions[name].offered:
            message = f"the handbook says that `{name}` is not offered"
            cure = f"leave out --pass-through {name}, or change the handbook"
            raise mistake("not-offered", message, help=cure)
    return pass_through.union(name for name, one in handbook.actions.items() if one.offered)


def _definitions(
    tools: Sequence[types.Tool], approved: Mapping[str, Definition] = MappingProxyType({})
) -> Mapping[str, Definition]:
    """Of a name that is listed more than once, the first that is not as approved."""
    found: dict[str, Definition] = {}
    for tool in tools:
        earlier, known = found.get(tool.name), approved.get(tool.name)
        if earlier is None or (known is not None and tool_digest(earlier) == tool_digest(known)):
            found[tool.name] = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
    return found
