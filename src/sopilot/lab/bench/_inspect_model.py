"""A model of Inspect's model layer behind our interface: ``--model inspect:openai/gpt-4o``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from httpx import HTTPError
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    get_model,
)
from inspect_ai.tool import ToolCall as InspectToolCall
from inspect_ai.tool import ToolInfo, ToolParams
from tenacity import RetryError

from sopilot.runtime.agent import ProviderError
from sopilot.runtime.session.protocols import (
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolSchema,
    Usage,
    inputs_of,
    required_of,
)


class InspectModel:
    """Retries are the loop's: Inspect's own are switched off."""

    def __init__(self, name: str) -> None:
        self._model = get_model(name)
        self.name = f"inspect:{name}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        try:
            output = await self._model.generate(
                [inspect_message(each) for each in request.messages],
                tools=[_tool(each) for each in request.tools],
                config=GenerateConfig(
                    temperature=request.temperature,
                    timeout=int(request.timeout_seconds),
                    max_retries=0,
                ),
            )
        except (OSError, RuntimeError, HTTPError, RetryError) as error:
            raise ProviderError(f"{type(error).__name__}: {error}") from error
        usage = output.usage
        return ModelReply(
            output.message.text,
            _calls(output.message.tool_calls or ()),
            Usage(
                usage.input_tokens if usage else 0,
                (usage.input_tokens_cache_read or 0) if usage else 0,
                usage.output_tokens if usage else 0,
            ),
        )


def _calls(calls: Sequence[InspectToolCall]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(call.id, call.function, json.dumps(call.arguments, ensure_ascii=False))
        for call in calls
    )


def _tool(tool: ToolSchema) -> ToolInfo:
    parameters = ToolParams.model_validate(
        {
            "type": "object",
            "properties": dict(inputs_of(tool)),
            "required": list(required_of(tool)),
        }
    )
    return ToolInfo(name=tool.name, description=tool.description, parameters=parameters)


def inspect_message(message: Message) -> ChatMessage:
    if message.role == "user":
        return ChatMessageUser(content=message.content)
    if message.role == "tool":
        return ChatMessageTool(
            content=message.content, tool_call_id=message.tool_call_id, function=message.name
        )
    if message.role == "assistant":
        calls = [
            InspectToolCall(id=call.id, function=call.name, arguments=_arguments(call.arguments))
            for call in message.tool_calls
        ]
        return ChatMessageAssistant(content=message.content, tool_calls=calls or None)
    return ChatMessageSystem(content=message.content)


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text) if text.strip() else {}
    except ValueError:
        return {"text": text}
    return value if isinstance(value, dict) else {"value": value}
