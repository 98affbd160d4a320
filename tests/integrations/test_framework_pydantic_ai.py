"""A Pydantic AI agent that follows a handbook through its capability."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import date
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `frameworks`")

from hooked_desk import (
    EXECUTED,
    REFUSED,
    BlockingTalk,
    HookedDesk,
    Talk,
    bare_hook,
    last_result,
    run_task,
    run_task_blocking,
)
from pydantic import BaseModel
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from sopilot.integrations.pydantic_ai import SLOT_MARK, SopilotCapability
from sopilot.protocols import Message, ModelReply, ToolCall, ToolSchema


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


async def _reply(hooked: HookedDesk, history: list[ModelMessage], info: AgentInfo) -> ModelReply:
    first, _, slot = (info.instructions or "").partition(f"\n\n{SLOT_MARK}\n")
    assert hooked.hook.own_tools[0].name in {tool.name for tool in info.function_tools}
    return await hooked.reply([Message("system", first), *_messages(history)], slot)


def _agent(hooked: HookedDesk) -> Agent[None, str]:
    async def model(history: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        reply = await _reply(hooked, history, info)
        parts: list[TextPart | ToolCallPart] = []
        if reply.content or not reply.tool_calls:
            parts.append(TextPart(reply.content))
        parts.extend(
            ToolCallPart(call.name, json.loads(call.arguments or "{}"), call.id)
            for call in reply.tool_calls
        )
        return ModelResponse(parts=parts)

    async def stream(
        history: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        reply = await _reply(hooked, history, info)
        if reply.content and not reply.tool_calls:
            yield reply.content
        for place, call in enumerate(reply.tool_calls):
            delta = DeltaToolCall(call.name, call.arguments or "{}", tool_call_id=call.id)
            yield {place: delta}

    return Agent(
        FunctionModel(model, stream_function=stream),
        tools=[_tool(hooked, schema) for schema in hooked.schemas],
        capabilities=[SopilotCapability(hooked.hook)],
    )


def make_talk(hooked: HookedDesk) -> Talk:
    agent, history = _agent(hooked), list[ModelMessage]()

    async def talk(_: HookedDesk, text: str) -> str:
        result = await agent.run(text, message_history=list(history))
        history[:] = result.all_messages()
        return str(result.output)

    return talk


def make_streamed_talk(hooked: HookedDesk) -> Talk:
    agent, history = _agent(hooked), list[ModelMessage]()

    async def talk(_: HookedDesk, text: str) -> str:
        async with agent.run_stream(text, message_history=list(history)) as result:
            said = await result.get_output()
            history[:] = result.all_messages()
        return str(said)

    return talk


def make_blocking_talk(hooked: HookedDesk) -> BlockingTalk:
    agent, history = _agent(hooked), list[ModelMessage]()

    def talk(_: HookedDesk, text: str) -> str:
        result = agent.run_sync(text, message_history=list(history))
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


def test_a_stream() -> None:
    run_task(REFUSED, make_streamed_talk)


@pytest.mark.parametrize("case", [EXECUTED, REFUSED], ids=["executed", "refused"])
def test_an_agent_that_is_not_asynchronous(case: tuple[str, str, str]) -> None:
    run_task_blocking(case, make_blocking_talk)


class Order(BaseModel):
    day: date


async def test_objects_of_the_agents_own_reach_its_tool_and_plain_values_the_trace() -> None:
    seen: list[object] = []

    async def read_ledger(order: Order) -> ToolReturn:
        seen.append(order)
        picture = BinaryContent(b"\x89PNG", media_type="image/png")
        return ToolReturn({"day": order.day}, content=[picture])

    hook = await bare_hook()
    turns = iter(
        [
            ModelResponse([ToolCallPart("read_ledger", {"order": {"day": "2026-01-02"}}, "c1")]),
            ModelResponse([TextPart("done")]),
        ]
    )

    async def model(history: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return next(turns)

    agent = Agent(FunctionModel(model), tools=[read_ledger], capabilities=[SopilotCapability(hook)])
    result = await agent.run("hello")
    assert seen == [Order(day=date(2026, 1, 2))]
    assert last_result(hook) == (True, {"day": "2026-01-02"})
    assert "PNG" in repr(result.all_messages()), "the picture is still there"
    await hook.close()
