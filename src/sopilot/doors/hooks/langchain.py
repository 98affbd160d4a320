"""LangChain and LangGraph: a middleware for ``create_agent``.

agent = create_agent(model, tools, middleware=[SopilotMiddleware(hook)])
await agent.ainvoke({"messages": [...]})
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from sopilot.doors.hooks.hook import Failed, ProcedureHook, was_made
from sopilot.runtime.session import CallAnswer
from sopilot.runtime.session.protocols import JSON

Given = ToolMessage | Command[Any]


class SopilotMiddleware(AgentMiddleware[Any, Any, Any]):
    """For ``ainvoke`` and ``astream``, and for ``invoke`` and ``stream`` on a hook that nothing
    else is using at that time. Anthropic and Google take system messages only at the
    beginning: ``slot_last=False`` puts the slot there, at the price of the prompt's cache."""

    def __init__(self, hook: ProcedureHook, *, slot_last: bool = True) -> None:
        super().__init__()
        self._hook = hook
        self._slot_last = slot_last
        schema = hook.step_tool

        async def step(**arguments: Any) -> str:
            return await hook.step(arguments)

        def step_and_wait(**arguments: Any) -> str:
            return hook.wait(hook.step(arguments))

        self._step_tool = StructuredTool(
            name=schema.name,
            description=schema.description,
            args_schema=dict(schema.parameters),
            func=step_and_wait,
            coroutine=step,
        )
        self.tools = [self._step_tool]

    # --- before a model call --------------------------------------------------------

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        return handler(self._shown(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(self._shown(request))

    def _shown(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        first, slot = self._hook.instructions, self._hook.slot()
        if not self._slot_last:
            return request.override(
                system_message=_joined(
                    request.system_message, f"{first}\n\n{slot}" if slot else first
                )
            )
        return request.override(
            system_message=_joined(request.system_message, first),
            messages=[*request.messages, *([SystemMessage(slot)] if slot else [])],
        )

    # --- around a tool call ---------------------------------------------------------

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Given]
    ) -> Given:
        if request.tool_call["name"] == self._step_tool.name:
            return handler(request)
        # The library keeps its configuration in the context of the calling thread.
        context = contextvars.copy_context()

        async def handle(one: ToolCallRequest) -> Given:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(None, context.run, handler, one)

        return self._hook.wait(self._call(request, handle))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Given]]
    ) -> Given:
        if request.tool_call["name"] == self._step_tool.name:
            return await handler(request)
        return await self._call(request, handler)

    async def _call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Given]]
    ) -> Given:
        call = request.tool_call
        given: list[Given] = []

        async def execute(arguments: Mapping[str, JSON]) -> object:
            licensed = request.override(tool_call={**call, "args": dict(arguments)})
            answer = await handler(licensed)
            given.append(answer)
            if not isinstance(answer, ToolMessage):
                return str(answer)
            return Failed(answer.content) if answer.status == "error" else answer.content

        answer = await self._hook.tool_call(call["name"], call["args"], call["id"] or "", execute)
        own = given[0] if given else None
        return own if isinstance(own, Command) else _message(call, answer, own)


def _joined(own: SystemMessage | None, text: str) -> SystemMessage:
    if own is None:
        return SystemMessage(text)
    if isinstance(own.content, str):
        return SystemMessage(f"{own.content}\n\n{text}")
    return SystemMessage([*own.content, {"type": "text", "text": text}])


def _message(call: Any, answer: CallAnswer, given: ToolMessage | None) -> ToolMessage:
    """The session's line, and beside it what of the tool's own message is not text."""
    content: Any = answer.text
    if given is not None and isinstance(given.content, list):
        pictures = [
            one for one in given.content if isinstance(one, dict) and one.get("type") != "text"
        ]
        if pictures:
            content = [{"type": "text", "text": answer.text}, *pictures]
    return ToolMessage(
        content,
        tool_call_id=call["id"] or "",
        name=call["name"],
        status="success" if was_made(answer) else "error",
        artifact=given.artifact if given is not None else None,
    )
