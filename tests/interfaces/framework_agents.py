"""One agent per framework, all with the same face: what its model says comes from the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import count
from typing import Any, ClassVar, Protocol

import pytest

pytest.importorskip("agents", reason="needs the extra `frameworks`")

from agents import Agent as OpenAIAgent
from agents import FunctionTool, Model, ModelResponse, RunConfig, Usage, function_tool
from agents import Runner as OpenAIRunner
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool, ToolException
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import ModelRetry
from pydantic_ai import Tool as PydanticTool
from pydantic_ai import messages as pydantic_messages
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from sopilot.integrations.langchain import SopilotMiddleware
from sopilot.integrations.openai_agents import hooked_config, hooked_tools
from sopilot.integrations.pydantic_ai import SLOT_MARK, SopilotCapability
from sopilot.protocols import Message, ModelReply, ToolCall, ToolResult, ToolSchema
from sopilot.runner.conversations import Conversations
from sopilot.runner.hook import ProcedureHook
from sopilot.values.json import JSON

Hooks = ProcedureHook | Conversations
Reply = Callable[[Sequence[Message], str, Sequence[str]], Awaitable[ModelReply]]
"""The dialog, the frame message and the names of the tools, to what the model says."""
Perform = Callable[[str, dict[str, JSON]], ToolResult]


class FrameworkAgent(Protocol):
    """``say`` is one message of the user and the agent's answer to it."""

    def __init__(self, hooks: Hooks, tools: Sequence[Any], reply: Reply, **options: Any) -> None:
        """``options`` are the framework's own."""

    @staticmethod
    def tool(function: Callable[..., Any], name: str) -> Any:
        """A typed function as a tool."""

    @staticmethod
    def described(schema: ToolSchema, perform: Perform) -> Any:
        """A tool by its JSON schema."""

    async def say(self, text: str, conversation: str | None = None) -> str: ...

    async def stream(self, text: str) -> str: ...

    def say_blocking(self, text: str) -> str: ...


# --- LangChain ------------------------------------------------------------------------


class _Chat(BaseChatModel):
    reply: Any
    names: Any = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self.model_copy(update={"names": [tool.name for tool in tools]})

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        return asyncio.run(self._agenerate(messages))

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **options: Any
    ) -> ChatResult:
        # A view without a frame message shows none.
        shown = len(messages) > 1 and isinstance(messages[-1], SystemMessage)
        dialog, slot = (messages[:-1], messages[-1].text) if shown else (messages, "")
        reply = await self.reply([_from_langchain(each) for each in dialog], slot, self.names)
        calls = [
            {"name": call.name, "args": json.loads(call.arguments or "{}"), "id": call.id}
            for call in reply.tool_calls
        ]
        answer = AIMessage(reply.content, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _from_langchain(message: BaseMessage) -> Message:
    if isinstance(message, ToolMessage):
        return Message("tool", message.text, tool_call_id=message.tool_call_id, name=message.name)
    if isinstance(message, AIMessage):
        calls = tuple(
            ToolCall(call["id"] or "", call["name"], json.dumps(call["args"]))
            for call in message.tool_calls
        )
        return Message("assistant", message.text, calls)
    return Message("system" if isinstance(message, SystemMessage) else "user", message.text)


class LangChainAgent:
    limit: ClassVar[dict[str, Any]] = {"recursion_limit": 500}

    def __init__(
        self,
        hooks: Hooks,
        tools: Sequence[Any],
        reply: Reply,
        *,
        pauses: bool = False,
        slot_last: bool = True,
        **options: Any,
    ) -> None:
        middleware = [SopilotMiddleware(hooks, pauses=pauses, slot_last=slot_last)]
        self.agent: Any = create_agent(_Chat(reply=reply), tools, middleware=middleware, **options)
        self.history: list[BaseMessage] = []

    @staticmethod
    def tool(function: Callable[..., Any], name: str) -> Any:
        if asyncio.iscoroutinefunction(function):
            return StructuredTool.from_function(coroutine=function, name=name)
        return StructuredTool.from_function(function, name=name)

    @staticmethod
    def described(schema: ToolSchema, perform: Perform) -> Any:
        def run(**arguments: Any) -> str:
            result = perform(schema.name, arguments)
            if not result.ok:
                raise ToolException(json.dumps(result.value))
            return json.dumps(result.value)

        async def run_async(**arguments: Any) -> str:
            return run(**arguments)

        return StructuredTool(
            name=schema.name,
            description=schema.description or schema.name,
            args_schema=dict(schema.parameters),
            func=run,
            coroutine=run_async,
            handle_tool_error=True,
        )

    def config(self, conversation: str | None) -> Any:
        return {**self.limit, "configurable": {"thread_id": conversation} if conversation else {}}

    def _asked(self, text: str) -> dict[str, Any]:
        return {"messages": [*self.history, HumanMessage(text)]}

    def _heard(self, state: dict[str, Any]) -> str:
        self.history[:] = state["messages"]
        return str(self.history[-1].text)

    async def say(self, text: str, conversation: str | None = None) -> str:
        config = self.config(conversation)
        return self._heard(await self.agent.ainvoke(self._asked(text), config))

    async def stream(self, text: str) -> str:
        states = self.agent.astream(self._asked(text), self.config(None), stream_mode="values")
        return self._heard([state async for state in states][-1])

    def say_blocking(self, text: str) -> str:
        return self._heard(self.agent.invoke(self._asked(text), self.config(None)))


# --- OpenAI Agents --------------------------------------------------------------------


class _Model(Model):
    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._answers = count()

    async def get_response(
        self, system_instructions: str | None, input: Any, model_settings: Any, tools: Any,
        *args: Any, **options: Any,
    ) -> ModelResponse:  # fmt: skip
        shown = input[-1].get("role") == "system"
        dialog, slot = (input[:-1], input[-1]["content"]) if shown else (input, "")
        messages = [Message("system", system_instructions or "")]
        for item in dialog:
            _add(messages, item)
        reply = await self._reply(messages, slot, [tool.name for tool in tools])
        number = next(self._answers)
        output: list[Any] = []
        if reply.content or not reply.tool_calls:
            text = ResponseOutputText(text=reply.content, type="output_text", annotations=[])
            output.append(
                ResponseOutputMessage(
                    id=f"m{number}",
                    content=[text],
                    role="assistant",
                    status="completed",
                    type="message",
                )
            )
        output.extend(
            ResponseFunctionToolCall(
                # The library wants ids that are never used twice.
                call_id=f"{call.id}-{number}",
                name=call.name,
                arguments=call.arguments,
                type="function_call",
            )
            for call in reply.tool_calls
        )
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    async def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        answer = await self.get_response(*args, **options)
        response = Response(
            id=f"r{next(self._answers)}",
            created_at=0,
            model="scripted",
            object="response",
            output=answer.output,
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(
            type="response.completed", sequence_number=0, response=response
        )


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
        text = str(item["output"])
        messages.append(Message("tool", text, tool_call_id=call_id, name=names[call_id]))
    else:
        content = item["content"]
        text = content if isinstance(content, str) else "".join(p["text"] for p in content)
        messages.append(Message(item["role"], text))


class OpenAIAgentsAgent:
    def __init__(
        self, hooks: Hooks, tools: Sequence[Any], reply: Reply, *, pauses: bool = False
    ) -> None:
        self._hooks = hooks
        own = hooked_tools(hooks, tools, pauses=pauses)
        self.agent: OpenAIAgent[Any] = OpenAIAgent(name="desk", model=_Model(reply), tools=own)
        self._configs: dict[str | None, RunConfig] = {}
        self.history: list[Any] = []
        self.interruptions: list[Any] = []

    @staticmethod
    def tool(function: Callable[..., Any], name: str) -> Any:
        return function_tool(function, name_override=name, strict_mode=False)

    @staticmethod
    def described(schema: ToolSchema, perform: Perform) -> Any:
        async def run(context: Any, arguments: str) -> str:
            result = perform(schema.name, json.loads(arguments))
            if not result.ok:
                raise ToolException(json.dumps(result.value))
            return json.dumps(result.value)

        return FunctionTool(
            name=schema.name,
            description=schema.description,
            params_json_schema=dict(schema.parameters),
            on_invoke_tool=run,
            strict_json_schema=False,
        )

    def config(self, conversation: str | None) -> RunConfig:
        if conversation not in self._configs:
            own = RunConfig(group_id=conversation, tracing_disabled=True)
            self._configs[conversation] = hooked_config(self._hooks, own)
        return self._configs[conversation]

    def _asked(self, text: str) -> list[Any]:
        return [*self.history, {"role": "user", "content": text}]

    def _heard(self, result: Any) -> str:
        self.result = result
        self.history[:] = result.to_input_list()
        return str(result.final_output)

    async def say(self, text: str, conversation: str | None = None) -> str:
        config = self.config(conversation)
        return self._heard(
            await OpenAIRunner.run(self.agent, self._asked(text), run_config=config, max_turns=200)
        )

    async def stream(self, text: str) -> str:
        result = OpenAIRunner.run_streamed(
            self.agent, self._asked(text), run_config=self.config(None), max_turns=200
        )
        assert [event async for event in result.stream_events()]
        return self._heard(result)

    def say_blocking(self, text: str) -> str:
        config = self.config(None)
        return self._heard(
            OpenAIRunner.run_sync(self.agent, self._asked(text), run_config=config, max_turns=200)
        )


# --- Pydantic AI ----------------------------------------------------------------------


def _from_pydantic(history: Sequence[Any]) -> list[Message]:
    messages: list[Message] = []
    for message in history:
        if isinstance(message, pydantic_messages.ModelRequest):
            for part in message.parts:
                if isinstance(part, pydantic_messages.UserPromptPart):
                    messages.append(Message("user", str(part.content)))
                elif isinstance(
                    part, pydantic_messages.ToolReturnPart | pydantic_messages.RetryPromptPart
                ):
                    text, call_id = str(part.content), part.tool_call_id
                    messages.append(
                        Message("tool", text, tool_call_id=call_id, name=part.tool_name)
                    )
        else:
            texts = [p.content for p in message.parts if isinstance(p, pydantic_messages.TextPart)]
            calls = tuple(
                ToolCall(part.tool_call_id, part.tool_name, part.args_as_json_str())
                for part in message.parts
                if isinstance(part, pydantic_messages.ToolCallPart)
            )
            messages.append(Message("assistant", "".join(texts), calls))
    return messages


class PydanticAIAgent:
    def __init__(
        self,
        hooks: Hooks,
        tools: Sequence[Any],
        reply: Reply,
        *,
        pauses: bool = False,
        **options: Any,
    ) -> None:
        async def answer(history: list[Any], info: AgentInfo) -> ModelReply:
            first, _, slot = (info.instructions or "").partition(f"\n\n{SLOT_MARK}\n")
            dialog = [Message("system", first), *_from_pydantic(history)]
            return await reply(dialog, slot, [tool.name for tool in info.function_tools])

        async def model(history: list[Any], info: AgentInfo) -> pydantic_messages.ModelResponse:
            said = await answer(history, info)
            parts: list[Any] = [pydantic_messages.TextPart(said.content)]
            parts = parts if said.content or not said.tool_calls else []
            parts += [
                pydantic_messages.ToolCallPart(
                    call.name, json.loads(call.arguments or "{}"), call.id
                )
                for call in said.tool_calls
            ]
            return pydantic_messages.ModelResponse(parts=parts)

        async def stream(history: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
            said = await answer(history, info)
            if said.content and not said.tool_calls:
                yield said.content
            for place, call in enumerate(said.tool_calls):
                delta = DeltaToolCall(call.name, call.arguments or "{}", tool_call_id=call.id)
                yield {place: delta}

        self.agent: PydanticAgent[None, Any] = PydanticAgent(
            FunctionModel(model, stream_function=stream),
            tools=tools,
            capabilities=[SopilotCapability(hooks, pauses=pauses)],
            **options,
        )
        self.history: list[Any] = []

    @staticmethod
    def tool(function: Callable[..., Any], name: str) -> Any:
        return PydanticTool(function, name=name)

    @staticmethod
    def described(schema: ToolSchema, perform: Perform) -> Any:
        async def run(**arguments: Any) -> JSON:
            result = perform(schema.name, arguments)
            if not result.ok:
                raise ModelRetry(json.dumps(result.value))
            return result.value

        return PydanticTool.from_schema(
            run,
            name=schema.name,
            description=schema.description,
            json_schema=dict(schema.parameters),
        )

    def _heard(self, result: Any) -> str:
        self.history[:] = result.all_messages()
        return str(result.output)

    async def say(self, text: str, conversation: str | None = None) -> str:
        history = list(self.history)
        return self._heard(
            await self.agent.run(text, message_history=history, conversation_id=conversation)
        )

    async def stream(self, text: str) -> str:
        async with self.agent.run_stream(text, message_history=list(self.history)) as result:
            said = await result.get_output()
            self.history[:] = result.all_messages()
        return str(said)

    def say_blocking(self, text: str) -> str:
        return self._heard(self.agent.run_sync(text, message_history=list(self.history)))


FRAMEWORKS: dict[str, type[FrameworkAgent]] = {
    "langchain": LangChainAgent,
    "openai_agents": OpenAIAgentsAgent,
    "pydantic_ai": PydanticAIAgent,
}
EVERY_FRAMEWORK = pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=list(FRAMEWORKS))
