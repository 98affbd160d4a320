"""A model with a meter: every request counted as it would be sent, token by token.

A request is its tool schemas, then its messages, which is the order in which providers
lay it out. What a prefix cache would serve is the longest beginning that the request
shares with the one before it; providers that cache in blocks serve a little less.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache

from sopilot.models.wire import wire_messages, wire_tools
from sopilot.protocols import Model, ModelReply, ModelRequest, Usage
from vocabulary import smollm2


@dataclass(frozen=True, slots=True)
class Sent:
    """Tokens of one request and its reply; ``cached`` are those a prefix cache would serve."""

    prompt: int
    cached: int
    tools: int
    resident: int
    slot: int
    completion: int


class MeteredModel:
    """Passes every request on; its replies carry the usage that was counted."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.sent: list[Sent] = []
        self._before: list[str] = []

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        parts = segments(request)
        counts = [len(_tokens(part)) for part in parts]
        last = request.messages[-1]
        slot = counts[-1] if last.role == "system" and len(request.messages) > 1 else 0
        cached = _shared(self._before, parts)
        self._before = parts
        reply = await self._model.complete(request)
        completion = len(_tokens(generated(reply)))
        self.sent.append(Sent(sum(counts), cached, counts[0], counts[1], slot, completion))
        return replace(reply, usage=Usage(sum(counts), cached, completion))


def generated(reply: ModelReply) -> str:
    """The model's own output: its text, its calls as JSON; ids are the provider's."""
    calls = [
        f'{{"name": "{call.name}", "arguments": {call.arguments or "{}"}}}'
        for call in reply.tool_calls
    ]
    return "\n".join(part for part in (reply.content, *calls) if part)


def segments(request: ModelRequest) -> list[str]:
    tools = json.dumps(wire_tools(request.tools), ensure_ascii=False)
    return [tools, *(_written(wire) for wire in wire_messages(request.messages))]


def _written(wire: dict[str, object]) -> str:
    """Write a message as chat templates do: its role, its text, its calls as JSON."""
    calls = wire.get("tool_calls")
    text = f"{wire['role']}\n{wire['content'] or ''}"
    if "tool_call_id" in wire:
        text += f"\n{wire['tool_call_id']}"
    return text + (f"\n{json.dumps(calls, ensure_ascii=False)}" if calls else "") + "\n"


def _shared(before: list[str], now: list[str]) -> int:
    shared = 0
    for old, new in zip(before, now, strict=False):
        if old == new:
            shared += len(_tokens(new))
            continue
        for left, right in zip(_tokens(old), _tokens(new), strict=False):
            if left != right:
                break
            shared += 1
        break
    return shared


@lru_cache(maxsize=65_536)
def _tokens(text: str) -> tuple[int, ...]:
    return tuple(smollm2().tokens(text))
