"""An agent of the OpenAI Agents SDK that follows a handbook through its hooks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("agents", reason="needs the extra `frameworks`")

from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    Usage,
)
from hooked_desk import EXECUTED, REFUSED, HookedDesk, Talk, run_task
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from sopilot.adapters.frameworks.openai_agents import hooked_config, hooked_tools
from sopilot.session.protocols import Message, ToolCall, ToolSchema


class ReferenceModel(Model):
    def __init__(self, hooked: HookedDesk) -> None:
        self._hooked = hooked
        self._answers = 0

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        *dialog, slot = input
        messages = [Message("system", system_instructions or "")]
        for item in dialog:
            _add(messages, item)
        assert slot["role"] == "system"
        reply = await self._hooked.reply(messages, slot["content"])
        self._answers += 1
        output: list[Any] = []
        if reply.content or not reply.tool_calls:
            text = ResponseOutputText(text=reply.content, type="output_text", annotations=[])
            output.append(
                ResponseOutputMessage(
                    id=f"m{self._answers}",
                    content=[text],
                    role="assistant",
                    status="completed",
                    type="message",
                )
            )
        output.extend(
            ResponseFunctionToolCall(
                # The library wants ids that are never used twice.
                call_id=call.id if call.id == "hasty" else f"{call.id}-{self._answers}",
                name=call.name,
                arguments=call.arguments,
                type="function_call",
            )
            for call in reply.tool_calls
        )
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise AssertionError("not streamed here")


def _add(messages: list[Message], item: Any) -> None:
    kind = item.get("type", "message")
    if kind == "function_call":
        call = ToolCall(item["call_id"], item["name"], item["arguments"])
        last = messages[-1]
        if last.role == "assistant":
            messages[-1] = Message("assistant", last.content, (*last.tool_calls, call))
        else:
            messages.append(Message("assistant", tool_calls=(call,)))
    elif kind == "function_call_output":
        names = {c.id: c.name for m in messages for c in m.tool_calls}
        call_id = item["call_id"]
        text = item["output"]
        messages.append(Message("tool", text, tool_call_id=call_id, name=names[call_id]))
    else:
        content = item["content"]
        text = content if isinstance(content, str) else "".join(p["text"] for p in content)
        messages.append(Message(item["role"], text))


def _tool(hooked: HookedDesk, schema: ToolSchema) -> FunctionTool:
    async def run(context: Any, arguments: str) -> str:
        return json.dumps(await hooked.perform(schema.name, json.loads(arguments)))

    return FunctionTool(
        name=schema.name,
        description=schema.description,
        params_json_schema=dict(schema.parameters),
        on_invoke_tool=run,
        strict_json_schema=False,
    )


def make_talk(hooked: HookedDesk) -> Talk:
    tools = [_tool(hooked, schema) for schema in hooked.schemas]
    agent = Agent(name="desk", model=ReferenceModel(hooked), tools=hooked_tools(hooked.hook, tools))
    config = hooked_config(hooked.hook, RunConfig(tracing_disabled=True))
    history: list[Any] = []

    async def talk(_: HookedDesk, text: str) -> str:
        given = [*history, {"role": "user", "content": text}]
        result = await Runner.run(agent, given, run_config=config, max_turns=200)
        history[:] = result.to_input_list()
        return str(result.final_output)

    return talk


@pytest.mark.parametrize("case", [EXECUTED, REFUSED], ids=["executed", "refused"])
def test_a_task(case: tuple[str, str, str]) -> None:
    run_task(case, make_talk)
