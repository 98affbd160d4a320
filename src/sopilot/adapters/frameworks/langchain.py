"""LangChain and LangGraph: a middleware for ``create_agent``.

agent = create_agent(model, tools, middleware=[SopilotMiddleware(hook)])
await agent.ainvoke({"messages": [...]})
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from sopilot.adapters.frameworks.hook import ProcedureHook, was_made

ToolHandler = Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]


class SopilotMiddleware(AgentMiddleware[Any, Any, Any]):
    """Asynchronous only, as the session is: call the agent with ``ainvoke`` or ``astream``."""

    def __init__(self, hook: ProcedureHook) -> None:
        super().__init__()
        self._hook = hook
        schema = hook.step_tool

        async def step(**arguments: Any) -> str:
            return await hook.step(arguments)

        self._step_tool = StructuredTool(
            name=schema.name,
            description=schema.description,
            args_schema=dict(schema.parameters),
            coroutine=step,
        )
        self.tools = [self._step_tool]

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        own = request.system_message
        first = (
            self._hook.instructions if own is None else f"{own.text}\n\n{self._hook.instructions}"
        )
        return await handler(
            request.override(
                system_message=SystemMessage(first),
                messages=[*request.messages, SystemMessage(self._hook.slot())],
            )
        )

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: ToolHandler
    ) -> ToolMessage | Command[Any]:
        call = request.tool_call
        if call["name"] == self._step_tool.name:
            return await handler(request)
        given: list[ToolMessage | Command[Any]] = []

        async def execute() -> object:
            answer = await handler(request)
            given.append(answer)
            return answer.content if isinstance(answer, ToolMessage) else str(answer)

        answer = await self._hook.tool_call(call["name"], call["args"], call["id"] or "", execute)
        if given and isinstance(given[0], Command):
            return given[0]
        return ToolMessage(
            answer.text,
            tool_call_id=call["id"] or "",
            name=call["name"],
            status="success" if was_made(answer) else "error",
        )
