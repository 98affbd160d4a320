"""A LangChain agent that makes the moves of a script with tools of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from scripted_moves import Move, RecordingTools, Script

from sopilot.integrations.langchain import SopilotMiddleware
from sopilot.protocols import ToolSchema
from sopilot.runner.conversation import ProcedureHook

_LIMIT = {"recursion_limit": 200}


class ScriptedChat(BaseChatModel):
    """``at_once`` is made as one message, when the script is over."""

    script: Any
    at_once: Sequence[Move] = ()
    asked: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        # A view without a slot shows none.
        shown = isinstance(messages[-1], SystemMessage)
        dialog, slot = (messages[:-1], messages[-1].text) if shown else (messages, "")
        for one in takewhile(lambda one: isinstance(one, ToolMessage), reversed(dialog)):
            self.script.answered(one.text)
        move = self.script.next(slot)
        moves = [move] if move is not None else self.at_once
        if move is None:
            self.at_once = ()
        self.asked += 1
        calls = [
            {"name": one.tool, "args": dict(one.arguments), "id": f"c{self.asked}.{number}"}
            for number, one in enumerate(moves)
        ]
        answer = AIMessage("" if calls else "That is all.", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _own_tool(tools: RecordingTools, schema: ToolSchema) -> BaseTool:
    async def run(**arguments: Any) -> str:
        result = await tools.call(schema.name, arguments, key="")
        if not result.ok:
            raise ToolException(json.dumps(result.value))
        return json.dumps(result.value)

    return StructuredTool(
        name=schema.name,
        description=schema.name,
        args_schema=dict(schema.parameters),
        coroutine=run,
        handle_tool_error=True,
    )


async def follow(
    hook: ProcedureHook, script: Script, tools: RecordingTools, at_once: Sequence[Move] = ()
) -> None:
    agent: Any = create_agent(
        ScriptedChat(script=script, at_once=at_once),
        [_own_tool(tools, schema) for schema in tools.schemas()],
        middleware=[SopilotMiddleware(hook)],
    )
    await agent.ainvoke({"messages": [HumanMessage("Please do it.")]}, _LIMIT)
