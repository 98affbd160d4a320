"""A streamed completion, put together from its pieces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sopilot.adapters.model_wire import (
    arguments_text,
    call_id,
    items,
    mapping,
    provider_says,
    read_usage,
    text,
    well_formed,
)
from sopilot.runtime.agent import ProviderError
from sopilot.runtime.session.protocols import ModelReply, ToolCall, Usage

DONE = "[DONE]"


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class StreamedReply:
    """Feed it the lines of a server-sent event stream; ``finish`` when they end."""

    content: str = ""
    calls: dict[int, _Call] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    complete: bool = False

    def feed(self, line: str) -> None:
        if not line.startswith("data:"):
            return
        data = line.removeprefix("data:").strip()
        if data == DONE:
            self.complete = True
            return
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ProviderError("a piece of the stream is not JSON") from error
        if not isinstance(chunk, Mapping):
            raise ProviderError("a piece of the stream is not an object")
        broken = provider_says(chunk)
        if broken is not None:
            raise broken
        if chunk.get("usage"):
            self.usage = read_usage(chunk["usage"])
        for choice in items(chunk.get("choices"), "choices"):
            self._delta(mapping(choice.get("delta") or {}, "delta"))
            if choice.get("finish_reason"):
                self.complete = True

    def _delta(self, delta: Mapping[str, Any]) -> None:
        self.content += text(delta.get("content"), "content")
        for position, piece in enumerate(items(delta.get("tool_calls"), "tool_calls")):
            call = self.calls.setdefault(_index(piece, position), _Call())
            function = mapping(piece.get("function") or {}, "function")
            call.id = call_id(piece) or call.id
            call.name += text(function.get("name"), "name")
            call.arguments += arguments_text(function.get("arguments"))

    def finish(self) -> ModelReply:
        if not self.complete:
            raise ProviderError("the stream ended in the middle")
        calls = tuple(
            ToolCall(
                well_formed(call.id or f"call_{index}"),
                well_formed(call.name),
                well_formed(call.arguments),
            )
            for index, call in sorted(self.calls.items())
        )
        return ModelReply(well_formed(self.content), calls, self.usage)


def _index(piece: Mapping[str, Any], position: int) -> int:
    index = piece.get("index")
    if index is None:
        return position
    if not isinstance(index, int):
        raise ProviderError("`index` of the answer is not a number")
    return index
