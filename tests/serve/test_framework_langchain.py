"""A LangChain agent that follows a handbook through its middleware."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")

from hooked_desk import EXECUTED, REFUSED, HookedDesk, Talk, run_task
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool

from sopilot.adapters.frameworks.langchain import SopilotMiddleware
from sopilot.session.protocols import Message, ToolCall, ToolSchema


class ReferenceChat(BaseChatModel):
    hooked: Any
    offered: Any = None

    @property
    def _llm_type(self) -> str:
        return "reference"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        names = {tool.name for tool in tools}
        assert self.hooked.hook.step_tool.name in names
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise AssertionError("the hook is asynchronous")

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        *dialog, slot = messages
        assert isinstance(slot, SystemMessage)
        reply = await self.hooked.reply([_message(one) for one in dialog], slot.text)
        calls = [
            {"name": call.name, "args": json.loads(call.arguments or "{}"), "id": call.id}
            for call in reply.tool_calls
        ]
        answer = AIMessage(reply.content, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _message(message: BaseMessage) -> Message:
    if isinstance(message, SystemMessage):
        return Message("system", message.text)
    if isinstance(message, HumanMessage):
        return Message("user", message.text)
    if isinstance(message, ToolMessage):
        return Message("tool", message.text, tool_call_id=message.tool_call_id, name=message.name)
    assert isinstance(message, AIMessage)
    calls = tuple(
        ToolCall(one["id"] or "", one["name"], json.dumps(one["args"]))
        for one in message.tool_calls
    )
    return Message("assistant", message.text, calls)


def _tool(hooked: HookedDesk, schema: ToolSchema) -> BaseTool:
    async def run(**arguments: Any) -> str:
        return json.dumps(await hooked.perform(schema.name, arguments))

    return StructuredTool(
        name=schema.name,
        description=schema.description,
        args_schema=dict(schema.parameters),
        coroutine=run,
    )


def make_talk(hooked: HookedDesk) -> Talk:
    agent: Any = create_agent(
        ReferenceChat(hooked=hooked),
        [_tool(hooked, schema) for schema in hooked.schemas],
        system_prompt="You are kind.",
        middleware=[SopilotMiddleware(hooked.hook)],
    )
    history: list[BaseMessage] = []

    async def talk(_: HookedDesk, text: str) -> str:
        history.append(HumanMessage(text))
        state = await agent.ainvoke({"messages": list(history)}, {"recursion_limit": 500})
        history[:] = state["messages"]
        return str(history[-1].text)

    return talk


@pytest.mark.parametrize("case", [EXECUTED, REFUSED], ids=["executed", "refused"])
def test_a_task(case: tuple[str, str, str]) -> None:
    hooked = run_task(case, make_talk)
    assert hooked.requests[0].messages[0].content.startswith("You are kind.")


def test_a_tool_that_raises_is_on_record_and_raises() -> None:
    def make(hooked: HookedDesk) -> Talk:
        async def talk(_: HookedDesk, text: str) -> str:
            async def execute() -> object:
                raise KeyError("lost")

            with pytest.raises(KeyError):
                await hooked.hook.tool_call("read_ledger", {}, "c1", execute)
            last = hooked.hook.session.events[-1].event
            assert (last.kind, last.payload["ok"]) == ("domain_result", False)
            raise Done

        return talk

    with pytest.raises(Done):
        run_task(EXECUTED, make)


class Done(Exception):
    pass
