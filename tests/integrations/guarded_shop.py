"""A shop behind a handbook, and three frameworks whose scripted model calls the shop's tools."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

pytest.importorskip("agents", reason="needs the extra `frameworks`")

from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Runner, Usage
from agents import function_tool as openai_tool
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import messages as pydantic_messages
from pydantic_ai.models.function import AgentInfo, FunctionModel

from sopilot.integrations.langchain import SopilotMiddleware
from sopilot.integrations.openai_agents import hooked_config, hooked_tools
from sopilot.integrations.pydantic_ai import SopilotCapability
from sopilot.runner.conversation import Conversations

BOOK = """
handbook: refunds
actions:
  login: {input: {customer: string, password: {type: string, secret: true}}}
  find_order: {input: {customer: string, order: string}, read_only: true,
               requires: logged_in(customer)}
  refund: {input: {customer: string, order: string, amount: number}, irreversible: true,
           confirm: CONFIRM}
predicates:
  logged_in(customer):
    says: The customer {customer} has logged in.
    established_by: login(customer, password)
  delivered(customer, order):
    says: The order {order} was delivered.
    verify: find_order(customer, order)
    verdict: result.state == 'delivered'
procedures:
  refund: {requires: delivered(customer, order)}
"""

Call = tuple[str, Mapping[str, Any]]
LOGIN: Call = ("login", {"customer": "anna", "password": "sesame"})
LOOK: Call = ("find_order", {"customer": "anna", "order": "o-1"})
REFUND: Call = ("refund", {"customer": "anna", "order": "o-1", "amount": 50})
Between = Callable[[str], Awaitable[None]]


@dataclass
class Shop:
    """``paid`` is the truth that the tests judge by."""

    paid: list[tuple[str, str, float]] = field(default_factory=list)
    reads: int = 0
    shown: list[tuple[str, list[str]]] = field(default_factory=list)
    """The system prompt and the tools of every model call."""

    def functions(self) -> list[Callable[..., Any]]:
        async def login(customer: str, password: str) -> dict[str, str]:
            """Log a customer in."""
            if password != "sesame":
                raise ValueError("wrong password")
            return {"customer": customer}

        async def find_order(customer: str, order: str) -> dict[str, str]:
            """Look an order up."""
            self.reads += 1
            return {"state": "delivered" if order == "o-1" else "lost"}

        async def refund(customer: str, order: str, amount: float) -> str:
            """Pay an order back."""
            self.paid.append((customer, order, amount))
            return f"paid {amount:g} to {customer}"

        return [login, find_order, refund]


Run = Callable[[Shop, Conversations, str, Sequence[Call]], Awaitable[list[str]]]
"""Play a script of calls in a conversation; the answers that the model read."""


class ScriptedChat(BaseChatModel):
    shop: Any
    script: Any
    names: Any = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self.model_copy(update={"names": [tool.name for tool in tools]})

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        system = "".join(m.text for m in messages if isinstance(m, SystemMessage))
        self.shop.shown.append((system, list(self.names)))
        made = sum(isinstance(m, ToolMessage) for m in messages)
        calls = [
            {"name": name, "args": dict(arguments), "id": f"call-{made}"}
            for name, arguments in self.script[made : made + 1]
        ]
        message = AIMessage("" if calls else "done", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def langchain_agent(
    shop: Shop, conversations: Conversations, script: Sequence[Call], **options: Any
) -> Any:
    tools = [
        StructuredTool.from_function(coroutine=function, name=function.__name__)
        for function in shop.functions()
    ]
    middleware = [SopilotMiddleware(conversations, pauses=bool(options))]
    chat = ScriptedChat(shop=shop, script=list(script))
    return create_agent(chat, tools, middleware=middleware, **options)


async def langchain(
    shop: Shop, conversations: Conversations, conversation: str, script: Sequence[Call]
) -> list[str]:
    agent = langchain_agent(shop, conversations, script)
    config: Any = {"configurable": {"thread_id": conversation}, "recursion_limit": 100}
    result = await agent.ainvoke({"messages": [("user", "hello")]}, config)
    return [m.text for m in result["messages"] if isinstance(m, ToolMessage)]


class ScriptedModel(Model):
    def __init__(self, shop: Shop, script: Sequence[Call]) -> None:
        self._shop, self._script = shop, list(script)
        self._ids = count()

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: list[Any],
        *args: Any,
        **options: Any,
    ) -> ModelResponse:
        items = [] if isinstance(input, str) else input
        system = [str(item["content"]) for item in items if item.get("role") == "system"]
        prompt = "\n".join([system_instructions or "", *system]).strip()
        self._shop.shown.append((prompt, [tool.name for tool in tools]))
        output: list[Any] = [
            ResponseFunctionToolCall(
                call_id=f"call-{next(self._ids)}",
                name=name,
                arguments=json.dumps(arguments),
                type="function_call",
            )
            for name, arguments in self._script[:1]
        ]
        del self._script[:1]
        if not output:
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            output = [
                ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def openai_agents(
    shop: Shop, conversations: Conversations, conversation: str, script: Sequence[Call]
) -> list[str]:
    tools: list[FunctionTool] = [openai_tool(function) for function in shop.functions()]
    agent = Agent(
        name="shop", model=ScriptedModel(shop, script), tools=hooked_tools(conversations, tools)
    )
    config = RunConfig(group_id=conversation, tracing_disabled=True)
    result = await Runner.run(
        agent, "hello", run_config=hooked_config(conversations, config), max_turns=50
    )
    items: list[Any] = [item.to_input_item() for item in result.new_items]
    return [str(item["output"]) for item in items if item.get("type") == "function_call_output"]


def pydantic_agent(
    shop: Shop, conversations: Conversations, script: Sequence[Call], **options: Any
) -> PydanticAgent[None, Any]:
    script = list(script)

    async def model(history: list[Any], info: AgentInfo) -> pydantic_messages.ModelResponse:
        names = [tool.name for tool in info.function_tools]
        shop.shown.append((info.instructions or "", names))
        made = len(returned(history))
        parts: list[Any] = [
            pydantic_messages.ToolCallPart(name, dict(arguments), f"call-{made}")
            for name, arguments in script[made : made + 1]
        ]
        return pydantic_messages.ModelResponse(parts or [pydantic_messages.TextPart("done")])

    return PydanticAgent(
        FunctionModel(model),
        tools=shop.functions(),
        capabilities=[SopilotCapability(conversations, pauses=bool(options))],
        **options,
    )


def returned(history: Sequence[Any]) -> list[str]:
    kinds = (pydantic_messages.ToolReturnPart, pydantic_messages.RetryPromptPart)
    return [str(p.content) for m in history for p in m.parts if isinstance(p, kinds)]


async def pydantic_ai(
    shop: Shop, conversations: Conversations, conversation: str, script: Sequence[Call]
) -> list[str]:
    agent = pydantic_agent(shop, conversations, script)
    result = await agent.run("hello", conversation_id=conversation)
    return returned(result.all_messages())


FRAMEWORKS: dict[str, Run] = {
    "langchain": langchain,
    "openai_agents": openai_agents,
    "pydantic_ai": pydantic_ai,
}
