"""A LangChain agent that follows a handbook through its middleware."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import ANY

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")

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
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool, ToolException, tool
from langsmith import traceable, tracing_context

from sopilot.integrations.langchain import SopilotMiddleware
from sopilot.protocols import Message, ToolCall, ToolSchema


class ReferenceChat(BaseChatModel):
    hooked: Any
    slot_last: bool = True

    @property
    def _llm_type(self) -> str:
        return "reference"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        names = {tool.name for tool in tools}
        assert self.hooked.hook.own_tools[0].name in names
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return asyncio.run(self._agenerate(messages))

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        if self.slot_last:
            # A view without a slot has none: what the loop shows is compared with this.
            shown = isinstance(messages[-1], SystemMessage)
            dialog, slot = (messages[:-1], messages[-1].text) if shown else (messages, "")
            reply = await self.hooked.reply([_message(one) for one in dialog], slot)
        else:
            first, *rest = messages
            assert not any(isinstance(one, SystemMessage) for one in rest)
            instructions, slot = self.hooked.split(first.text)
            dialog = [Message("system", instructions), *map(_message, rest)]
            reply = await self.hooked.reply(dialog, slot)
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

    def run_blocking(**arguments: Any) -> str:
        return asyncio.run(run(**arguments))

    return StructuredTool(
        name=schema.name,
        description=schema.description,
        args_schema=dict(schema.parameters),
        func=run_blocking,
        coroutine=run,
    )


def _agent(hooked: HookedDesk, *, slot_last: bool = True) -> Any:
    return create_agent(
        ReferenceChat(hooked=hooked, slot_last=slot_last),
        [_tool(hooked, schema) for schema in hooked.schemas],
        system_prompt="You are kind.",
        middleware=[SopilotMiddleware(hooked.hook, slot_last=slot_last)],
    )


LIMIT = {"recursion_limit": 500}


def make_talk(hooked: HookedDesk) -> Talk:
    agent, history = _agent(hooked), list[BaseMessage]()

    async def talk(_: HookedDesk, text: str) -> str:
        history.append(HumanMessage(text))
        state = await agent.ainvoke({"messages": list(history)}, LIMIT)
        history[:] = state["messages"]
        return str(history[-1].text)

    return talk


@pytest.mark.parametrize("case", [EXECUTED, REFUSED], ids=["executed", "refused"])
def test_a_task(case: tuple[str, str, str]) -> None:
    hooked = run_task(case, make_talk)
    assert hooked.requests[0].messages[0].content.startswith("You are kind.")


@pytest.mark.parametrize("case", [EXECUTED, REFUSED], ids=["executed", "refused"])
def test_an_agent_that_is_not_asynchronous(case: tuple[str, str, str]) -> None:
    def make(hooked: HookedDesk) -> BlockingTalk:
        agent, history = _agent(hooked), list[BaseMessage]()

        def talk(_: HookedDesk, text: str) -> str:
            history.append(HumanMessage(text))
            history[:] = agent.invoke({"messages": list(history)}, LIMIT)["messages"]
            return str(history[-1].text)

        return talk

    run_task_blocking(case, make)


def test_a_stream() -> None:
    def make(hooked: HookedDesk) -> Talk:
        agent, history = _agent(hooked, slot_last=False), list[BaseMessage]()

        async def talk(_: HookedDesk, text: str) -> str:
            history.append(HumanMessage(text))
            async for state in agent.astream(
                {"messages": list(history)}, LIMIT, stream_mode="values"
            ):
                last = state["messages"]
            history[:] = last
            return str(history[-1].text)

        return talk

    run_task(REFUSED, make)


async def test_a_tool_that_raises_is_on_record_and_raises() -> None:
    hook = await bare_hook()

    async def execute(arguments: object) -> object:
        raise KeyError("lost")

    with pytest.raises(KeyError):
        await hook.tool_call("read_ledger", {}, "c1", execute)
    assert last_result(hook) == (False, {"error": ANY})
    await hook.close()


@pytest.mark.parametrize("arguments", [{"user": 3}, {"username": "ann"}], ids=["misfit", "fit"])
async def test_a_message_that_says_error_is_no_result(arguments: dict[str, Any]) -> None:
    """Arguments that do not fit never reach the library, which would answer for the tool."""
    hook = await bare_hook()

    @tool
    def read_balance(username: str) -> str:
        """Reads it."""
        assert username == "ann", "never reached"
        raise ToolException("no such account")

    read_balance.handle_tool_error = True
    call = {"name": "read_balance", "args": arguments, "id": "c1"}
    model = GenericFakeChatModel(
        messages=iter([AIMessage("", tool_calls=[call]), AIMessage("so be it")])
    )
    bound: Any = type("Bound", (), {"bind_tools": lambda self, tools, **_: model})
    chat = model.model_copy()
    object.__setattr__(chat, "bind_tools", bound().bind_tools)
    agent: Any = create_agent(chat, [read_balance], middleware=[SopilotMiddleware(hook)])
    state = await agent.ainvoke({"messages": [HumanMessage("hello")]})
    (answer,) = [one for one in state["messages"] if isinstance(one, ToolMessage)]
    assert answer.status == "error"
    if "username" in arguments:
        assert not last_result(hook)[0]
    else:
        assert "do not fit `read_balance`" in answer.text
        assert hook.session.own_events[-1].payload["name"] == "malformed_call"
    await hook.close()


@pytest.mark.parametrize("traced", [False, True])
def test_a_request_is_shown_as_the_library_would_and_goes_to_no_other_thread(traced: bool) -> None:
    """The library traces coroutines of a middleware from another thread, asked to or not."""
    threads: list[Any] = []
    seen: list[ModelRequest[Any]] = []

    async def run() -> None:
        hook = await bare_hook()
        with tracing_context(enabled=traced):
            middleware = SopilotMiddleware(hook)
        with tracing_context(enabled=False):
            for name in ("awrap_model_call", "awrap_tool_call"):
                assert inspect.iscoroutinefunction(getattr(middleware, name)) is traced
            wrapped = traceable(name="w")(middleware.awrap_model_call)
            loop = asyncio.get_running_loop()
            loop.set_default_executor(Watched(threads))
            asked = ModelRequest(
                model=ReferenceChat(hooked=None),
                messages=[HumanMessage("hello")],
                system_message=SystemMessage("own"),
                tool_choice="any",
                tools=[{"name": "t"}],
                model_settings={"a": 1},
            )
            before = asked.override()

            async def handler(request: ModelRequest[Any]) -> Any:
                seen.append(request)

            await wrapped(asked, handler)
        assert asked == before
        (shown,) = seen
        first, last = shown.system_message, shown.messages[-1]
        assert first is not None
        assert first.text.startswith("own\n\n")
        assert isinstance(last, SystemMessage) is bool(hook.slot())
        assert shown == asked.override(system_message=first, messages=shown.messages)

    asyncio.run(run())
    assert bool(threads) is traced


class Watched(ThreadPoolExecutor):
    def __init__(self, seen: list[Any]) -> None:
        super().__init__(1)
        self._seen = seen

    def submit(self, *given: Any, **named: Any) -> Any:
        self._seen.append(given)
        return super().submit(*given, **named)
