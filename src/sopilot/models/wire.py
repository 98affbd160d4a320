"""Messages, tools and replies in the shape of the Chat Completions API."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sopilot.agent.retries import CONTEXT, EMPTY, ProviderError
from sopilot.protocols import Message, ModelReply, ModelRequest, Served, ToolCall, ToolSchema, Usage

LONGEST_SHOWN: Final = 300
"""Characters of a provider's own words in an error."""

SHAPE: Final = "wrong-schema"
FILTER: Final = "content-filter"

FILTERED: Final = "content_filter"
"""As providers write it."""

_LARGEST_COUNT: Final = 2**53
_LONGEST_NAME: Final = 200
_IS_PATH: Final = re.compile(r"[/~.\\]|[A-Za-z]:[\\/]")
_VERSION: Final = re.compile(r"[-@:](?:v?\d{3,}[\d.-]*|latest|preview|beta|free)$")


def wire_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [_message(message) for message in messages]


def _message(message: Message) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
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


def wire_request(request: ModelRequest, model: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "messages": wire_messages(request.messages),
        **wire_sampling(request),
    }
    if request.tools:
        body["tools"] = wire_tools(request.tools)
    return body


def wire_sampling(request: ModelRequest) -> dict[str, Any]:
    """Leave out unset values: the provider decides about them."""
    values = {
        "temperature": request.temperature,
        "seed": request.seed,
        "max_tokens": request.reply_tokens,
    }
    return {name: value for name, value in values.items() if value is not None}


def read_reply(body: object) -> ModelReply:
    """Read a completion. Anything else is the provider's failure. So is an empty completion, or
    one that a filter cut."""
    if not isinstance(body, Mapping):
        raise ProviderError("the answer is not an object", kind=SHAPE)
    choices = items(body.get("choices"), "choices")
    if not choices:
        raise provider_says(body) or ProviderError("the answer contains no choice", kind=SHAPE)
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
    content = text(message.get("content"), "content") or text(message.get("refusal"), "refusal")
    reply = ModelReply(
        well_formed(content), tuple(calls), read_usage(body.get("usage")), read_served(body)
    )
    return usable(reply)


def usable(reply: ModelReply) -> ModelReply:
    """Return the reply, unless a filter cut it or it is empty."""
    reason = reply.served.finish_reason
    if reason == FILTERED:
        raise ProviderError(
            "the provider's content filter cut off the answer",
            kind=FILTER,
            retryable=False,
            usage=reply.usage,
        )
    if not reply.content.strip() and not reply.tool_calls:
        # A budget of reply tokens that is spent on reasoning is spent again.
        message = f" (finish reason `{reason}`)" if reason else ""
        raise ProviderError(
            f"the answer is empty{message}",
            kind=EMPTY,
            retryable=reason != "length",
            usage=reply.usage,
        )
    return reply


def read_served(body: Mapping[str, object]) -> Served:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    reason = first.get("finish_reason") if isinstance(first, Mapping) else None
    message = (reason, body.get("model"), body.get("system_fingerprint"), body.get("id"))
    finish, model, fingerprint, response = (
        well_formed(item)[:_LONGEST_NAME] if isinstance(item, str) else "" for item in message
    )
    # A server of a local file names it by its path, which stays private.
    model = re.split(r"[/\\]", model)[-1] if _IS_PATH.match(model) else model
    return Served(finish, model, fingerprint, response)


def check_served(reply: ModelReply, expected: str | None) -> ModelReply:
    """Return the reply if it is by the expected model. A date, a number of at least three digits
    or `latest` behind a name is a version of the same model."""
    served = reply.served.model
    if expected and served and _family(served) != _family(expected):
        raise ProviderError(
            f"`{served}` answered in place of `{expected}`", kind="wrong-model", usage=reply.usage
        )
    return reply


def _family(model: str) -> str:
    name = model.rpartition("/")[2].lower()
    while (shorter := _VERSION.sub("", name)) != name:
        name = shorter
    return name


def read_usage(usage: object) -> Usage:
    """Read invalid counts as 0: a wrong bill doesn't invalidate the answer."""
    if not isinstance(usage, Mapping):
        return Usage()
    return Usage(
        _count(usage.get("prompt_tokens")),
        _count(_detail(usage, "prompt_tokens_details", "cached_tokens")),
        _count(usage.get("completion_tokens")),
        _count(_detail(usage, "completion_tokens_details", "reasoning_tokens")),
    )


def _detail(usage: Mapping[str, object], group: str, name: str) -> object:
    details = usage.get(group)
    return details.get(name) if isinstance(details, Mapping) else 0


def provider_says(body: Mapping[str, object]) -> ProviderError | None:
    """Read the error in a body without a completion."""
    error = body.get("error")
    if not error:
        return None
    reply = error.get("message") if isinstance(error, Mapping) else error
    shown = reply if isinstance(reply, str) else json_text(error)
    kind = kind_of_refusal(body)
    return ProviderError(
        f"the provider says: {well_formed(shown)[:LONGEST_SHOWN]}",
        kind=kind or "provider",
        retryable=not kind,
    )


def kind_of_refusal(body: object) -> str:
    """Classify an error by the codes that providers share: too long, or stopped by a filter."""
    error = body.get("error") if isinstance(body, Mapping) else None
    code = error.get("code") if isinstance(error, Mapping) else None
    return {"context_length_exceeded": CONTEXT, FILTERED: FILTER}.get(str(code), "")


def well_formed(value: str) -> str:
    """Replace lone surrogates, which no file, database or wire accepts; join separated pairs."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def items(value: object, name: str) -> list[Mapping[str, Any]]:
    """A list of objects; empty if it is missing."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise ProviderError(f"`{name}` of the answer is not a list", kind=SHAPE)
    return [mapping(item, name) for item in value]


def mapping(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ProviderError(f"`{name}` of the answer is not an object", kind=SHAPE)
    return value


def text(value: object, name: str) -> str:
    """A text; empty if it is missing. Some providers send a list of parts."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "".join(_string(part.get("text", ""), name) for part in items(value, name))
    return _string(value, name)


def _string(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ProviderError(f"`{name}` of the answer is not a string", kind=SHAPE)
    return value


def call_id(call: Mapping[str, object]) -> str:
    """The call's id; empty if it is missing or isn't text."""
    result = call.get("id")
    return result if isinstance(result, str) else ""


def arguments_text(value: object) -> str:
    """The arguments of a call as JSON text."""
    if value is None or isinstance(value, str):
        return value or ""
    return json_text(value)


def json_text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise ProviderError("the answer is nested too deeply", kind=SHAPE) from error


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value <= _LARGEST_COUNT else 0
