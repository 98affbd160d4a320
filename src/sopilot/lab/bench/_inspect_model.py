"""A model of Inspect's model layer behind our interface: ``--model inspect:openai/gpt-4o``."""

from __future__ import annotations

import json
from collections.abc import Sequence

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.tool import ToolCall as InspectToolCall
from inspect_ai.tool import ToolInfo, ToolParams
from tenacity import RetryError

from sopilot.adapters.model_http import RETRYABLE
from sopilot.adapters.model_wire import FILTERED, LONGEST_SHOWN, check_served, usable
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.agent import CONTEXT, ProviderError
from sopilot.runtime.session.protocols import (
    JSON,
    Message,
    ModelReply,
    ModelRequest,
    Served,
    ToolCall,
    ToolSchema,
    Usage,
    inputs_of,
    required_of,
)

_STOPPED = {"content_filter": FILTERED, "max_tokens": "length", "model_length": CONTEXT}


class InspectModel:
    """Retries are the loop's: Inspect's own are switched off. Given ``served``, an answer of
    any other model is a failure of the provider."""

    def __init__(self, name: str, *, served: str | None = None) -> None:
        try:
            self._model = get_model(name)
        except Exception as error:  # a key, a library or a provider that is not there
            told = getattr(error, "message", None) or error
            raise UserMistake(f"`inspect:{name}` cannot be used: {told}") from error
        self._served = served
        self.name = f"inspect:{name}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        try:
            output = await self._model.generate(
                [inspect_message(each) for each in request.messages],
                tools=[_tool(each) for each in request.tools],
                config=GenerateConfig(
                    temperature=request.temperature,
                    seed=request.seed,
                    max_tokens=request.reply_tokens,
                    timeout=max(1, int(request.timeout_seconds)),
                    max_retries=0,
                ),
            )
            return self._read(output)
        except ProviderError:
            raise
        except Exception as error:  # a page of HTML fails in a library's inside, anyhow
            raise _failure(error) from error

    def _read(self, output: ModelOutput) -> ModelReply:
        usage = output.usage
        reason = _STOPPED.get(output.stop_reason, output.stop_reason)
        reply = ModelReply(
            output.message.text,
            _calls(output.message.tool_calls or ()),
            Usage(
                usage.input_tokens if usage else 0,
                (usage.input_tokens_cache_read or 0) if usage else 0,
                usage.output_tokens if usage else 0,
                (usage.reasoning_tokens or 0) if usage else 0,
            ),
            Served(finish_reason=reason, model=output.model),
        )
        if reason == CONTEXT:
            raise ProviderError("the request is too long", kind=CONTEXT, retryable=False)
        return check_served(usable(reply), self._served)


def _failure(error: Exception) -> ProviderError:
    """As the endpoint's own status tells it, where the library kept one."""
    whole = error.last_attempt.exception() if isinstance(error, RetryError) else error
    status = getattr(whole, "status_code", None)
    told = f"{type(whole).__name__}: {str(whole)[:LONGEST_SHOWN]}"
    if isinstance(status, int) and status >= 400:
        passing = status >= 500 or status in RETRYABLE
        return ProviderError(told, kind=f"http-{status}", retryable=passing)
    late = "timeout" in type(whole).__name__.lower()
    return ProviderError(told, kind="timeout" if late else "provider")


def _arguments(text: str) -> dict[str, JSON]:
    """What the model wrote; Inspect takes objects alone, and models write other things."""
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return {"text": text}
    return value if isinstance(value, dict) else {"value": value}


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
