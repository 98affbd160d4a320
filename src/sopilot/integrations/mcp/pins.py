"""Approved tools: pinned by digest in the store, and offered as long as they match.

A server can change a tool's definition without notice, so every list is compared with the
approved definitions. A tool's behaviour can't be pinned, only its definition.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import mcp_types as types

from sopilot.agent.toolbox import END_SESSION
from sopilot.handbook.model import BUILT_IN, Handbook
from sopilot.integrations.mcp.options import GatewayOptions, UpstreamSpec, actions_by_tool
from sopilot.integrations.mcp.upstream import Upstream
from sopilot.integrations.metrics import NoMetrics
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import SopilotError, mistake
from sopilot.protocols import SystemClock, ToolSchema
from sopilot.records.journal import folded, write
from sopilot.records.log import Entry
from sopilot.records.store import Store
from sopilot.runner.hook import require_guarded_tools
from sopilot.values.json import JSON, canonical, plain_mapping
from sopilot.values.text import visible
from sopilot.views.guard_answers import GUARD_TOOLS
from sopilot.views.step_tool import TOOL_NAME

Tell = Callable[[str], None]
Definition = Mapping[str, JSON]
Approved = dict[str, dict[str, Definition]]
"""By upstream and tool."""

PINNED_FIELDS = (
    "name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution",
)  # fmt: skip
"""Everything of a tool's definition that can sway a model or a client."""
_LONGEST_SHOWN = 200
_RESERVED = frozenset({TOOL_NAME, END_SESSION, *BUILT_IN, *GUARD_TOOLS})
_JOURNAL = "pins"
_ALL, _FIRST, _SINGLE = "tools_approved", "tools_approved_first", "tool_approved"


def pinned(definition: Definition) -> dict[str, JSON]:
    """The pinned fields of a definition. Absent and null are the same."""
    return plain_mapping(
        {name: definition[name] for name in PINNED_FIELDS if definition.get(name) is not None}
    )


def tool_digest(definition: Definition) -> str:
    return hashlib.sha256(canonical(pinned(definition))).hexdigest()


@dataclass(frozen=True, slots=True)
class Drift:
    """A tool that differs from the approved one. ``approved`` is ``None`` for a new tool,
    ``current`` for one that is gone. Its text quotes nothing of the tool's definition."""

    upstream: str
    tool: str
    approved: str | None
    current: str | None
    changes: str = ""
    """Field by field, the approved and the current value, for the operator who must judge."""

    def __str__(self) -> str:
        if self.approved is None:
            what = "was added after the tools were approved"
        elif self.current is None:
            what = "is no longer offered"
        else:
            what = "has changed since it was approved"
        return f"`{one_line(self.tool)}` of `{one_line(self.upstream)}` {what}"


class Pins:
    """Approved definitions by upstream and tool, in a journal of the store. Servers that share
    the store share approvals."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._approved: Approved = {}

    async def load(self) -> Pins:
        self._approved = await folded(self._store, _JOURNAL, _fold)
        return self

    def knows(self, upstream: str) -> bool:
        return upstream in self._approved

    def of(self, upstream: str) -> Mapping[str, Definition]:
        return self._approved.get(upstream, {})

    async def approve(
        self, upstream: str, tools: Mapping[str, Definition], *, first: bool = False
    ) -> None:
        """Approve all that the server offers, and nothing else of it. ``first``: unless another
        process has approved the server by now; the process that wrote first wins."""
        definitions = {name: pinned(tool) for name, tool in tools.items()}
        await self._record(_FIRST if first else _ALL, {"upstream": upstream, "tools": definitions})

    async def approve_one(self, upstream: str, name: str, tool: Definition | None) -> None:
        """``None`` for a tool that is no longer offered."""
        definition = None if tool is None else pinned(tool)
        await self._record(_SINGLE, {"upstream": upstream, "tool": name, "definition": definition})

    def drifts(self, upstream: str, tools: Mapping[str, Definition]) -> tuple[Drift, ...]:
        approved = self.of(upstream)
        return tuple(
            drift
            for name in sorted({*approved, *tools})
            if (drift := _drift(upstream, name, approved.get(name), tools.get(name))) is not None
        )

    async def _record(self, kind: str, details: Mapping[str, JSON]) -> None:
        await write(self._store, _JOURNAL, kind, plain_mapping(details), clock=SystemClock())
        await self.load()


def _fold(entries: list[Entry]) -> Approved:
    approved: Approved = {}
    for entry in entries:
        details: Mapping[str, Any] = entry.details
        upstream = str(details["upstream"])
        if entry.name == _SINGLE:
            name, definition = str(details["tool"]), details["definition"]
            tools = approved.setdefault(upstream, {})
            if definition is None:
                tools.pop(name, None)
            else:
                tools[name] = pinned(definition)
        elif entry.name == _ALL or upstream not in approved:
            approved[upstream] = {name: pinned(tool) for name, tool in details["tools"].items()}
    return approved


def _drift(
    upstream: str, name: str, approved: Definition | None, current: Definition | None
) -> Drift | None:
    before = tool_digest(approved) if approved is not None else None
    after = tool_digest(current) if current is not None else None
    if before == after:
        return None
    old, new = approved or {}, pinned(current or {})
    changes = "; ".join(
        f"{field}: {_shown(old.get(field))} -> {_shown(new.get(field))}"
        for field in PINNED_FIELDS
        if old.get(field) != new.get(field)
    )
    return Drift(upstream, name, before, after, changes if before and after else "")


def _shown(value: JSON) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def one_line(text: str) -> str:
    """A name that a server chose, without line breaks and control characters."""
    return visible(text)[:_LONGEST_SHOWN]


# --- what a gateway offers ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """``name`` is what models call it: the handbook's action, or the tool's own name."""

    name: str
    upstream: str
    tool: types.Tool

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(self.name, self.tool.description or "", self.tool.input_schema)

    @property
    def listed(self) -> types.Tool:
        return self.tool.model_copy(update={"name": self.name})


class Catalogue:
    """The upstream tools that a gateway offers: those that the handbook or ``pass_through``
    names, while they match their pins. A server seen for the first time is approved as it is,
    unless pins are required. ``tell`` reaches the operator.

    ``pass_reads`` also offers tools that are marked as read-only, except those behind actions
    with ``offered: false``. Nothing else that the handbook doesn't name may be called: it would
    be an unguarded way to do what can't be undone.
    """

    def __init__(
        self,
        specs: Sequence[UpstreamSpec],
        pins: Pins,
        tell: Tell,
        *,
        handbook: Handbook,
        options: GatewayOptions | None = None,
        pass_reads: bool = False,
        meter: NoMetrics | None = None,
    ) -> None:
        self.specs = tuple(specs)
        self.tell = tell
        self.meter = meter or NoMetrics()
        for spec in self.specs:
            self.meter.count("upstream_failures", 0, upstream=spec.name)
        self.on_change: Callable[[], None] | None = None
        self.spare: dict[str, Upstream] = {}
        """Connections made to list the tools, for the first session that needs one."""
        self._pins = pins
        self._options = options or GatewayOptions()
        self._pass_reads = pass_reads
        self._actions = actions_by_tool(handbook, self._options.pass_through)
        self._handbook = handbook
        self._named = frozenset(handbook.actions)
        self._hidden = frozenset(
            action.tool or name for name, action in handbook.actions.items() if not action.offered
        )
        self._reads: set[tuple[str, str]] = set()
        """Tools by upstream that pass because they are marked as read-only."""
        self._offers: dict[str, OfferedTool] = {}
        self._held: dict[tuple[str, str], Drift] = {}
        self._reported: set[Drift] = set()

    async def open(self) -> None:
        """List every upstream's tools; raise if one can't be reached or names clash."""
        try:
            await self._open()
        except SopilotError:
            await self.close()
            raise

    async def _open(self) -> None:
        options, known = self._options, set[str]()
        wanted: dict[str, list[tuple[str, types.Tool]]] = {}
        not_offered: list[str] = []
        for spec in self.specs:
            upstream = self.spare[spec.name] = self._connect(spec)
            tools = await upstream.tools()
            definitions = _definitions(tools)
            if options.approve_tools:
                await self._pins.approve(spec.name, definitions)
            elif not self._pins.knows(spec.name):
                await self._approve_first(spec.name, definitions)
            known.update(definitions, (f"{spec.name}:{name}" for name in definitions))
            for drift in self._pins.drifts(spec.name, definitions):
                known.add(drift.tool)
                if drift.tool in options.approve:
                    current = definitions.get(drift.tool)
                    await self._pins.approve_one(spec.name, drift.tool, current)
            for tool in {tool.name: tool for tool in reversed(tools)}.values():
                if self._pass_reads and tool.annotations and tool.annotations.read_only_hint:
                    self._reads.add((spec.name, tool.name))
                names = self._names(spec.name, tool.name)
                for name in names:
                    wanted.setdefault(name, []).append((spec.name, tool))
                if not names:
                    not_offered.append(one_line(tool.name))
            self.compare(spec.name, tools)
            upstream.compare = partial(self.compare, spec.name)
        for name in sorted({*options.approve, *options.pass_through} - known):
            cure = did_you_mean(name, known)
            raise mistake("unknown-tool", f"no upstream has a tool `{name}`", help=cure)
        for name, offers in wanted.items():
            self._add(name, offers, wanted)
        unguarded = [name for name in self._offers if name not in self._named]
        if unguarded:
            actions = self._handbook.actions.items()
            named = [name for name, action in actions if (action.tool or name) in known]
            require_guarded_tools(self._handbook, [*unguarded, *named])
            self.tell(
                f"recorded but not guarded, since the handbook doesn't name them: "
                f"{', '.join(map(one_line, unguarded))}"
            )
        if not_offered:
            kind = " and they aren't marked as read-only" if self._pass_reads else ""
            self.tell(
                f"not offered, since the handbook doesn't name them{kind}: "
                f"{', '.join(not_offered)}; offer them anyway with --pass-through NAME"
            )

    def _names(self, upstream: str, tool: str) -> set[str]:
        """The names under which a tool is offered."""
        actions, own = self._actions, f"{upstream}:{tool}"
        names = {*actions.get(own, ()), *actions.get(tool, ())}
        passes = (upstream, tool) in self._reads and not {own, tool} & (self._hidden | self._named)
        return names or ({tool} if passes else names)

    async def _approve_first(self, upstream: str, tools: Mapping[str, Definition]) -> None:
        if self._options.require_pins:
            message = f"the tools of `{upstream}` haven't been approved yet"
            cure = "review them, and start once with --approve-tools"
            raise mistake("no-pins", message, help=cure)
        await self._pins.approve(upstream, tools, first=True)
        self.tell(
            f"`{one_line(upstream)}` is new: its tools were approved without a review: "
            f"{', '.join(map(one_line, tools))}"
        )

    def _add(
        self, name: str, offers: Sequence[tuple[str, types.Tool]], wanted: Collection[str]
    ) -> None:
        """A tool that is passed through and clashes gets its server's name as a prefix."""
        reserved = name in _RESERVED
        if len(offers) == 1 and not reserved:
            ((upstream, tool),) = offers
            self._offers[name] = OfferedTool(name, upstream, tool)
        elif name in self._options.pass_through or name not in self._named:
            for upstream, tool in offers:
                prefixed = f"{upstream}_{name}"
                if prefixed in self._named or prefixed in wanted:
                    message = f"`{one_line(prefixed)}` would name two tools: `{one_line(name)}` of"
                    message += f" `{one_line(upstream)}` has its server's name in front"
                    cure = f"give the server another name than `{upstream}`"
                    raise mistake("tool-clash", message, help=cure)
                self._offers[prefixed] = OfferedTool(prefixed, upstream, tool)
        else:
            servers = [f"`{upstream}`" for upstream, _ in offers] + ["the runtime"] * reserved
            message = f"`{one_line(name)}` is offered by {' and by '.join(servers)}"
            upstream, tool = offers[0]
            cure = f"name the server in the handbook's action: `tool: {upstream}:{tool.name}`"
            raise mistake("tool-clash", message, help=cure)

    def compare(self, upstream: str, tools: Sequence[types.Tool]) -> None:
        """Hold tools that differ from the approved ones; report each difference once.

        A tool stays held until a restart: a list may be changed back.
        """
        drifts = [
            drift
            for drift in self._pins.drifts(upstream, _definitions(tools, self._pins.of(upstream)))
            if self._names(upstream, drift.tool)
        ]
        fresh = [drift for drift in drifts if drift not in self._reported]
        for drift in drifts:
            self._held.setdefault((upstream, drift.tool), drift)
        for drift in fresh:
            self._reported.add(drift)
            changes = f" ({drift.changes})" if drift.changes else ""
            self.tell(
                f"held: {drift}{changes}; if that is right, start again with "
                f"--approve-tool {one_line(drift.tool)}"
            )
        if fresh and self.on_change is not None:
            self.on_change()

    def held(self, name: str) -> Drift | None:
        """Why a tool is held, by the name under which it is offered."""
        offer = self._offers.get(name)
        return None if offer is None else self._held.get((offer.upstream, offer.tool.name))

    def offers(self) -> tuple[OfferedTool, ...]:
        return tuple(offer for name, offer in self._offers.items() if self.held(name) is None)

    def offer(self, name: str) -> OfferedTool | None:
        return None if self.held(name) is not None else self._offers.get(name)

    def connection(self, name: str) -> Upstream:
        """Another connection to that server; it connects on first use."""
        upstream = self._connect(next(spec for spec in self.specs if spec.name == name))
        upstream.compare = partial(self.compare, name)
        return upstream

    def _connect(self, spec: UpstreamSpec) -> Upstream:
        timeout, recheck = self._options.upstream_timeout, self._options.recheck_tools
        return Upstream(spec, timeout_seconds=timeout, recheck_seconds=recheck)

    async def close(self) -> None:
        for upstream in self.spare.values():
            await upstream.close()


def _definitions(
    tools: Sequence[types.Tool], approved: Mapping[str, Definition] = MappingProxyType({})
) -> Mapping[str, Definition]:
    """If a name is listed more than once, the first definition that isn't the approved one."""
    definitions: dict[str, Definition] = {}
    for tool in tools:
        earlier, known = definitions.get(tool.name), approved.get(tool.name)
        if earlier is None or (known is not None and tool_digest(earlier) == tool_digest(known)):
            definitions[tool.name] = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
    return definitions
