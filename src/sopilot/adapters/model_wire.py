"""Messages, tools and replies in the shape of the Chat Completions API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sopilot.runtime.agent import ProviderError
from sopilot.runtime.session.protocols import (
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolSchema,
    Usage,
)

LONGEST_SHOWN: Final = 300
"""Characters of a provider's own words in an error."""
_LARGEST_COUNT: Final = 2**53


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
    """A completion. What is not one is the provider's failure."""
    if not isinstance(body, Mapping):
        raise ProviderError("the answer is not an object")
    choices = items(body.get("choices"), "choices")
    if not choices:
        raise provider_says(body) or ProviderError("the answer holds no choice")
    message = mapping(choices[0].get("message"), "message")
    calls = []
    for index, call in enumerate(items(message.get("tool_calls"), "tool_calls")):
        function = mapping(call.get("function"), "function")
        calls.append(
            ToolCall(
                well_formed(call_id(call) or f"call_{index}"),
                well_formed(text(function.get("name"), "name")),
                well_formed(arguments_text(function.get("arguments"))),
            )
        )
    content = well_formed(text(message.get("content"), "content"))
    return ModelReply(content, tuple(calls), read_usage(body.get("usage")))


def read_usage(usage: object) -> Usage:
    """What is no count counts as 0: an answer is not thrown away for its bill."""
    if not isinstance(usage, Mapping):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    return Usage(
        _count(usage.get("prompt_tokens")),
        _count(cached),
        _count(usage.get("completion_tokens")),
    )


def provider_says(body: Mapping[str, object]) -> ProviderError | None:
    """The error that a body carries in place of a completion."""
    error = body.get("error")
    if not error:
        return None
    said = error.get("message") if isinstance(error, Mapping) else error
    shown = said if isinstance(said, str) else json_text(error)
    return ProviderError(f"the provider says: {well_formed(shown)[:LONGEST_SHOWN]}")


# --- parts of an answer -----------------------------------------------------------------


def well_formed(value: str) -> str:
    """The text with lone surrogates replaced: no file, database or wire takes them. Halves of
    a pair that came apart are joined."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def items(value: object, name: str) -> list[Mapping[str, Any]]:
    """A list of objects; none if it is left out."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise ProviderError(f"`{name}` of the answer is not a list")
    return [mapping(item, name) for item in value]


def mapping(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ProviderError(f"`{name}` of the answer is not an object")
    return value


def text(value: object, name: str) -> str:
    """A text; empty if it is left out. Some providers send a list of parts."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "".join(_string(part.get("text", ""), name) for part in items(value, name))
    return _string(value, name)


def _string(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ProviderError(f"`{name}` of the answer is not a text")
    return value


def call_id(call: Mapping[str, object]) -> str:
    """Empty where the provider names none, or none that can be sent back."""
    found = call.get("id")
    return found if isinstance(found, str) else ""


def arguments_text(value: object) -> str:
    """The arguments of a call as JSON text, as which they should have come."""
    if value is None or isinstance(value, str):
        return value or ""
    return json_text(value)


def json_text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise ProviderError("the answer is too deep to be read") from error


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value <= _LARGEST_COUNT else 0
