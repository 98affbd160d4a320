"""The edges of a session, as protocols: what adapters and simulators implement.

Where time comes from at the edge.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot.values.json import JSON


class SystemClock:
    def now(self) -> float:
        return time.time()


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as a provider sees it; ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer of a tool. ``ok``: the tool did its job (a refused login isn't ok; a balance of
    zero is). ``value`` is the answer itself. ``unknown``: the call was interrupted, but may have
    been carried out."""

    ok: bool
    value: JSON
    unknown: bool = False


def inputs_of(tool: ToolSchema) -> Mapping[str, JSON]:
    """The schema of each input, by name."""
    result = tool.parameters.get("properties")
    return result if isinstance(result, Mapping) else {}


def required_of(tool: ToolSchema) -> Sequence[str]:
    result = tool.parameters.get("required")
    return [str(name) for name in result] if isinstance(result, list | tuple) else ()


@runtime_checkable
class Tools(Protocol):
    """The tools that a session calls.

    Two more methods are optional. ``time()`` returns the clock of simulated tools, as ISO 8601 text
    with an offset. sopilot awaits ``ready(name)`` before it records or holds a call; if that
    raises, it does neither."""

    def schemas(self) -> Sequence[ToolSchema]: ...

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        """Make a call. ``key`` is unique to it, so that a tool can recognise a repetition."""
        ...


@runtime_checkable
class RecallsOutcomes(Protocol):
    """Tools that can tell what a call with this key came to; ``None`` if it was never made."""

    async def recall(self, key: str) -> ToolResult | None: ...


@dataclass(frozen=True, slots=True)
class UpstreamConnection:
    """A connection to an upstream server, and the actions that are called on it. What these
    answered and opened holds on this connection alone, unless the handbook says
    ``state: shared`` of them."""

    upstream: str
    id: str
    """Empty if there is no connection now."""
    actions: tuple[str, ...]


@runtime_checkable
class ConnectedTools(Tools, Protocol):
    """Tools behind connections that keep state of their own: a login, a basket. Plain functions
    of an application have none: whatever process runs the session, they are one environment."""

    async def connections(self, name: str) -> Sequence[UpstreamConnection]:
        """One for every upstream; first the connection for ``name`` is made, if it can be. A call
        on one upstream may rest on what another one answered."""
        ...

    async def call_on(
        self, connection: str, name: str, arguments: Mapping[str, JSON], *, key: str
    ) -> ToolResult:
        """As ``call``, on this very connection or not at all."""
        ...


def moment_of(value: object) -> str:
    """What ``time()`` of the tools told."""
    try:
        if isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None:
            return value
    except ValueError:
        pass
    raise mistake(
        "bad-time",
        f"`{value}` isn't a time",
        Place("the tools", path="time()"),
        "return ISO 8601 text with an offset: `2026-01-31T09:00:00+00:00`",
    )


@dataclass(frozen=True, slots=True, init=False)
class ToolCall:
    """A call as a model wrote it. ``arguments`` is the raw text, which may be invalid JSON. A
    mapping is converted to JSON."""

    id: str
    name: str
    arguments: str

    def __init__(self, id: str, name: str, arguments: str | Mapping[str, JSON]) -> None:
        if not isinstance(arguments, str):
            arguments = _written(name, arguments)
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "arguments", arguments)


def _written(name: str, arguments: object) -> str:
    place = Place("ToolCall", path=f"arguments of `{name}`")
    cure = "give a mapping of JSON values, or its JSON text"
    if not isinstance(arguments, Mapping):
        raise mistake("bad-tool-call", "they are neither a mapping nor text", place, cure)
    try:
        return json.dumps(dict(arguments), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as problem:
        message = f"they cannot be written as JSON: {problem}"
        raise mistake("bad-tool-call", message, place, cure) from None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a dialog, in the Chat Completions shape."""

    role: str
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    """Of the completion tokens, those that nobody was shown."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model. ``temperature``, ``seed`` and ``reply_tokens`` are left out if they
    are ``None``. ``shown`` has the same content as data, for models in this process; sopilot never
    sends it."""

    messages: Sequence[Message]
    tools: Sequence[ToolSchema] = ()
    temperature: float | None = 0.0
    timeout_seconds: float = 600.0
    seed: int | None = None
    reply_tokens: int | None = None
    shown: object = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Served:
    """What a provider tells about its answer, empty where it tells nothing."""

    finish_reason: str = ""
    model: str = ""
    fingerprint: str = ""
    response_id: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The reply of a model: text, tool calls, or both."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    served: Served = field(default_factory=Served)


class Model(Protocol):
    """A language model, or anything that answers in its place."""

    @property
    def name(self) -> str: ...

    async def complete(self, request: ModelRequest) -> ModelReply: ...


class User(Protocol):
    """The customer. ``opening`` is the request; ``reply`` answers the agent, or ends the dialog
    with ``None``."""

    def opening(self) -> str: ...

    async def reply(self, message: str) -> str | None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...
