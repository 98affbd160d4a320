"""Messages, tools and replies in the shape of the Chat Completions API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sopilot.agent import ProviderError
from sopilot.session.protocols import Message, ModelReply, ModelRequest, ToolCall, ToolSchema, Usage


def wire_messages(
    messages: Sequence[Message], *, late_role: str = "system"
) -> list[dict[str, Any]]:
    """``late_role`` is the role of system messages that do not come first: some chat
    templates accept only one at the beginning."""
    return [
        _message(message, message.role if index == 0 or message.role != "system" else late_role)
        for index, message in enumerate(messages)
    ]


def _message(message: Message, role: str) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": role, "content": message.content}
    if message.tool_calls:
        wire["content"] = message.content or None
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def wire_tools(tools: Sequence[ToolSchema]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in tools
    ]


def wire_request(request: ModelRequest, model: str, *, late_role: str = "system") -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "messages": wire_messages(request.messages, late_role=late_role),
        "temperature": request.temperature,
    }
    if request.tools:
        body["tools"] = wire_tools(request.tools)
    return body


def read_reply(body: object) -> ModelReply:
    """A plain (not streamed) completion. What is not one is the provider's failure."""
    if not isinstance(body, Mapping) or not body.get("choices"):
        raise ProviderError("the answer holds no choice")
    choice = body["choices"][0]
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        raise ProviderError("the answer holds no message")
    calls = []
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call.get("function") or {}
        calls.append(
            ToolCall(
                str(call.get("id") or f"call_{index}"),
                str(function.get("name") or ""),
                str(function.get("arguments") or ""),
            )
        )
    return ModelReply(
        str(message.get("content") or ""), tuple(calls), read_usage(body.get("usage"))
    )


def read_usage(usage: object) -> Usage:
    if not isinstance(usage, Mapping):
        return Usage()
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    return Usage(
        int(usage.get("prompt_tokens") or 0),
        int(cached or 0),
        int(usage.get("completion_tokens") or 0),
    )
