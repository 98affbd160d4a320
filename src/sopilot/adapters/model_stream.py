"""A streamed completion, put together from its pieces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sopilot.adapters.model_wire import read_usage
from sopilot.agent import ProviderError
from sopilot.session.protocols import ModelReply, ToolCall, Usage

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
        except ValueError as error:
            raise ProviderError("a piece of the stream is not JSON") from error
        if not isinstance(chunk, Mapping):
            raise ProviderError("a piece of the stream is not an object")
        if "error" in chunk:
            raise ProviderError(f"the stream broke off: {chunk['error']}")
        if chunk.get("usage"):
            self.usage = read_usage(chunk["usage"])
        for choice in chunk.get("choices") or ():
            self._delta(choice.get("delta") or {})
            if choice.get("finish_reason"):
                self.complete = True

    def _delta(self, delta: Mapping[str, Any]) -> None:
        self.content += delta.get("content") or ""
        for position, piece in enumerate(delta.get("tool_calls") or ()):
            call = self.calls.setdefault(int(piece.get("index", position)), _Call())
            function = piece.get("function") or {}
            call.id = piece.get("id") or call.id
            call.name += function.get("name") or ""
            call.arguments += function.get("arguments") or ""

    def finish(self) -> ModelReply:
        if not self.complete:
            raise ProviderError("the stream ended in the middle")
        calls = tuple(
            ToolCall(call.id or f"call_{index}", call.name, call.arguments)
            for index, call in sorted(self.calls.items())
        )
        return ModelReply(self.content, calls, self.usage)
