"""Agents of three frameworks that follow a handbook through the hook."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any
from unittest.mock import ANY

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")

from agents import Agent as OpenAIAgent
from agents import FunctionTool, RunConfig, WebSearchTool, function_tool
from agents.mcp import MCPServerStdio
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext
from framework_agents import EVERY_FRAMEWORK, FrameworkAgent, LangChainAgent, PydanticAIAgent
from hooked_desk import (
    EXECUTED,
    REFUSED,
    bare_hook,
    check_run,
    converse,
    desk_agent,
    last_result,
    one_call,
    opened,
)
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException, tool
from pydantic import BaseModel
from pydantic_ai.messages import BinaryContent, ToolReturn

from sopilot.integrations.openai_agents import hooked_config, hooked_tools
from sopilot.messages.errors import UserMistake

BOTH_ENDINGS = pytest.mark.parametrize("case", [EXECUTED, REFUSED], ids=["executed", "refused"])


@EVERY_FRAMEWORK
async def test_a_stream(framework: type[FrameworkAgent]) -> None:
    hooked = await opened(REFUSED)
    options = {"slot_last": False} if framework is LangChainAgent else {}
    await converse(hooked, desk_agent(framework, hooked, **options).stream)
    check_run(hooked, REFUSED[2])


# `run_sync` says good-bye to generators of a loop that it uses again for the next message.
@pytest.mark.filterwarnings("ignore:asynchronous generator:ResourceWarning")
@EVERY_FRAMEWORK
@BOTH_ENDINGS
def test_an_agent_that_is_not_asynchronous(
    framework: type[FrameworkAgent], case: tuple[str, str, str]
) -> None:
    """No event loop runs around it. Some libraries use the thread's own loop."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        hooked = loop.run_until_complete(opened(case))
        agent = desk_agent(framework, hooked)
        message: str | None = hooked.user.opening()
        while message is not None and not hooked.over:
            answer = agent.say_blocking(message)
            message = loop.run_until_complete(hooked.user.reply(answer))
        loop.run_until_complete(hooked.hook.close())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    check_run(hooked, case[2])


# --- LangChain ------------------------------------------------------------------------


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
    agent = LangChainAgent(hook, [read_balance], one_call("read_balance", **arguments))
    await agent.say("hello")
    (answer,) = [each for each in agent.history if isinstance(each, ToolMessage)]
    assert answer.status == "error"
    if "username" in arguments:
        assert not last_result(hook)[0]
    else:
        assert "do not fit `read_balance`" in answer.text
        assert hook.session.own_events[-1].payload["name"] == "malformed_call"
    await hook.close()


# --- OpenAI Agents --------------------------------------------------------------------


@pytest.mark.parametrize("action", ["read_ledger", "close_account"])
async def test_a_tool_that_raises_is_no_result(action: str) -> None:
    """The library hides what a tool raises behind a text that looks like a result."""

    def boom() -> str:
        raise KeyError("secret")

    hook = await bare_hook()
    own = function_tool(boom, name_override=action, description_override="Breaks.")
    # Past the guard: what is on trial here is what comes after it.
    hook.session.programs.guarded.pop(action, None)  # type: ignore[attr-defined]
    hooked = next(each for each in hooked_tools(hook, [own]) if each.name == action)
    assert isinstance(hooked, FunctionTool)
    context = ToolContext(context=None, tool_name=action, tool_call_id="c1", tool_arguments="{}")
    said = str(await hooked.on_invoke_tool(context, "{}"))
    if action == "read_ledger":
        ok, value = last_result(hook)
        assert not ok
        assert "KeyError" in value["error"]
    else:  # it may have done its work before it broke off
        assert hook.session.unknown_outcomes == ("c1",)
    await hook.close()
    assert ("failed" in said) is (action == "read_ledger")
    assert "secret" not in said, "what the library keeps from a model stays kept from it"


async def test_what_the_hook_cannot_see_is_refused() -> None:
    hook = await bare_hook()
    own = function_tool(lambda: "done", name_override="read_ledger", description_override="x")
    hooked: Any = hooked_tools(hook, [own])
    show = hooked_config(hook).call_model_input_filter
    assert show is not None

    async def asked(**agent: Any) -> str:
        own: OpenAIAgent[Any] = OpenAIAgent(name="desk", **agent)
        try:
            shown: Any = show(CallModelData(ModelInputData([], None), own, None))
            await shown
        except UserMistake as refused:
            return str(refused)
        return ""

    assert await asked(tools=hooked) == ""
    assert "`read_ledger` runs past the hook" in await asked(tools=[*hooked, own])
    assert "`web_search` runs past" in await asked(tools=[*hooked, WebSearchTool()])
    assert "`handoffs`" in await asked(tools=hooked, handoffs=[OpenAIAgent(name="other")])
    inner = OpenAIAgent(name="inner", tools=[own])
    within = hooked_tools(hook, [inner.as_tool("ask_inner", "x", run_config=RunConfig())])
    assert "`read_ledger` runs past the hook" in await asked(tools=within)
    server = MCPServerStdio({"command": "false", "args": []})
    assert "`mcp_servers`" in await asked(tools=hooked, mcp_servers=[server])
    hosted: Any = [WebSearchTool()]
    with pytest.raises(UserMistake, match="`web_search` runs past the hook"):
        hooked_tools(hook, hosted)
    await hook.close()


async def test_a_filter_of_ones_own_still_runs() -> None:
    hook = await bare_hook()

    async def shorten(data: CallModelData[Any]) -> ModelInputData:
        return ModelInputData(input=data.model_data.input[-1:], instructions="Be kind.")

    config = hooked_config(hook, RunConfig(call_model_input_filter=shorten))
    show = config.call_model_input_filter
    assert show is not None
    given: Any = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    agent: OpenAIAgent[Any] = OpenAIAgent(name="desk")
    shown: Any = show(CallModelData(ModelInputData(given, None), agent, None))
    shown = await shown
    assert [item["content"] for item in shown.input] == ["b", hook.frame_message()]
    assert shown.instructions == f"Be kind.\n\n{hook.instructions}"
    await hook.close()


# --- Pydantic AI ----------------------------------------------------------------------


class Order(BaseModel):
    day: date


async def test_objects_of_the_agents_own_reach_its_tool_and_plain_values_the_trace() -> None:
    seen: list[object] = []

    async def read_ledger(order: Order) -> ToolReturn:
        seen.append(order)
        picture = BinaryContent(b"\x89PNG", media_type="image/png")
        return ToolReturn({"day": order.day}, content=[picture])

    hook = await bare_hook()
    script = one_call("read_ledger", order={"day": "2026-01-02"})
    agent = PydanticAIAgent(hook, [read_ledger], script)
    await agent.say("hello")
    assert seen == [Order(day=date(2026, 1, 2))]
    assert last_result(hook) == (True, {"day": "2026-01-02"})
    assert "PNG" in repr(agent.history), "the picture is still there"
    await hook.close()
