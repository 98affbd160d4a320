"""A Pydantic AI agent that follows a handbook through its capability."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `frameworks`")

from hooked_desk import EXECUTED, REFUSED, HookedDesk, Talk, run_task
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from sopilot.adapters.frameworks.pydantic_ai import SLOT_MARK, SopilotCapability
from sopilot.session.protocols import Message, ToolCall, ToolSchema


def _messages(history: list[ModelMessage]) -> list[Message]:
    found: list[Message] = []
    for message in history:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, UserPromptPart):
                    found.append(Message("user", str(part.content)))
                elif isinstance(part, ToolReturnPart):
                    text, call_id = str(part.content), part.tool_call_id
                    found.append(Message("tool", text, tool_call_id=call_id, name=part.tool_name))
        else:
            text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
            calls = tuple(
                ToolCall(part.tool_call_id, part.tool_name, part.args_as_json_str())
                for part in message.parts
                if isinstance(part, ToolCallPart)
            )
            found.append(Message("assistant", text, calls))
    return found


def make_talk(hooked: HookedDesk) -> Talk:
    async def model(history: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        first, _, slot = (info.instructions or "").partition(f"\n\n{SLOT_MARK}\n")
        assert hooked.hook.step_tool.name in {tool.name for tool in info.function_tools}
        reply = await hooked.reply([Message("system", first), *_messages(history)], slot)
        parts: list[TextPart | ToolCallPart] = []
        if reply.content or not reply.tool_calls:
            parts.append(TextPart(reply.content))
        parts.extend(
            ToolCallPart(call.name, json.loads(call.arguments or "{}"), call.id)
            for call in reply.tool_calls
        )
        return ModelResponse(parts=parts)

    agent = Agent(
        FunctionModel(model),
        tools=[_tool(hooked, schema) for schema in hooked.schemas],
        capabilities=[SopilotCapability(hooked.hook)],
    )
    history: list[ModelMessage] = []

    async def talk(_: HookedDesk, text: str) -> str:
        result = await agent.run(text, message_history=list(history))
        history[:] = result.all_messages()
        return str(result.output)

    return talk


def _tool(hooked: HookedDesk, schema: ToolSchema) -> Tool[Any]:
    async def run(**arguments: Any) -> Any:
        return await hooked.perform(schema.name, arguments)

    return Tool.from_schema(
        run,
        name=schema.name,
        description=schema.description,
        json_schema=dict(schema.parameters),
    )


@pytest.mark.parametrize("case", [EXECUTED, REFUSED], ids=["executed", "refused"])
def test_a_task(case: tuple[str, str, str]) -> None:
    run_task(case, make_talk)
