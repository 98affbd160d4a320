"""An agent of the OpenAI Agents SDK that follows a handbook through its hooks."""

from __future__ import annotations

import asyncio
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
    WebSearchTool,
    function_tool,
)
from agents.mcp import MCPServerStdio
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext
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
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from sopilot.integrations.openai_agents import hooked_config, hooked_tools
from sopilot.messages.errors import UserMistake
from sopilot.protocols import Message, ToolCall, ToolSchema


class ReferenceModel(Model):
    def __init__(self, hooked: HookedDesk) -> None:
        self._hooked = hooked
        self._answers = 0

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        # A view without a slot has none: what the loop shows is compared with this.
        shown = input[-1].get("role") == "system"
        dialog, slot = (input[:-1], input[-1]["content"]) if shown else (input, "")
        messages = [Message("system", system_instructions or "")]
        for item in dialog:
            _add(messages, item)
        reply = await self._hooked.reply(messages, slot)
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

    async def stream_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        answer = await self.get_response(system_instructions, input)
        yield ResponseCompletedEvent(
            type="response.completed",
            sequence_number=0,
            response=Response(
                id=f"r{self._answers}",
                created_at=0,
                model="reference",
                object="response",
                output=answer.output,
                parallel_tool_calls=False,
                tool_choice="auto",
                tools=[],
            ),
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


def _agent(hooked: HookedDesk) -> tuple[Agent[Any], RunConfig]:
    tools = [_tool(hooked, schema) for schema in hooked.schemas]
    agent = Agent(name="desk", model=ReferenceModel(hooked), tools=hooked_tools(hooked.hook, tools))
    return agent, hooked_config(hooked.hook, RunConfig(tracing_disabled=True))


def make_talk(hooked: HookedDesk) -> Talk:
    (agent, config), history = _agent(hooked), list[Any]()

    async def talk(_: HookedDesk, text: str) -> str:
        given = [*history, {"role": "user", "content": text}]
        result = await Runner.run(agent, given, run_config=config, max_turns=200)
        history[:] = result.to_input_list()
        return str(result.final_output)

    return talk


def make_streamed_talk(hooked: HookedDesk) -> Talk:
    (agent, config), history = _agent(hooked), list[Any]()

    async def talk(_: HookedDesk, text: str) -> str:
        given = [*history, {"role": "user", "content": text}]
        result = Runner.run_streamed(agent, given, run_config=config, max_turns=200)
        assert [event async for event in result.stream_events()]
        history[:] = result.to_input_list()
        return str(result.final_output)

    return talk


def make_blocking_talk(hooked: HookedDesk) -> BlockingTalk:
    (agent, config), history = _agent(hooked), list[Any]()

    def talk(_: HookedDesk, text: str) -> str:
        given = [*history, {"role": "user", "content": text}]
        result = Runner.run_sync(agent, given, run_config=config, max_turns=200)
        history[:] = result.to_input_list()
        return str(result.final_output)

    return talk


@pytest.mark.parametrize("case", [EXECUTED, REFUSED], ids=["executed", "refused"])
def test_a_task(case: tuple[str, str, str]) -> None:
    run_task(case, make_talk)


def test_a_stream() -> None:
    run_task(REFUSED, make_streamed_talk)


# `run_sync` says good-bye to generators of a loop that it uses again for the next message.
@pytest.mark.filterwarnings("ignore:asynchronous generator:ResourceWarning")
@pytest.mark.parametrize("case", [EXECUTED, REFUSED], ids=["executed", "refused"])
def test_an_agent_that_is_not_asynchronous(case: tuple[str, str, str]) -> None:
    run_task_blocking(case, make_blocking_talk)


@pytest.mark.parametrize("action", ["read_ledger", "close_account"])
def test_a_tool_that_raises_is_no_result(action: str) -> None:
    """The library hides what a tool raises behind a text that looks like a result."""

    def boom() -> str:
        raise KeyError("secret")

    async def run() -> str:
        hook = await bare_hook()
        own = function_tool(boom, name_override=action, description_override="Breaks.")
        # Past the guard: what is on trial here is what comes after it.
        hook.session.programs.guarded.pop(action, None)  # type: ignore[attr-defined]
        hooked = next(one for one in hooked_tools(hook, [own]) if one.name == action)
        assert isinstance(hooked, FunctionTool)
        context = ToolContext(
            context=None, tool_name=action, tool_call_id="c1", tool_arguments="{}"
        )
        said = await hooked.on_invoke_tool(context, "{}")
        if action == "read_ledger":
            ok, value = last_result(hook)
            assert not ok
            assert "KeyError" in value["error"]
        else:  # it may have done its work before it broke off
            assert hook.session.unknown_outcomes == ("c1",)
        await hook.close()
        return str(said)

    said = asyncio.run(run())
    assert ("failed" in said) is (action == "read_ledger")
    assert "secret" not in said, "what the library keeps from a model stays kept from it"


async def test_what_the_hook_cannot_see_is_refused() -> None:
    hook = await bare_hook()
    own = function_tool(lambda: "done", name_override="read_ledger", description_override="x")
    hooked: Any = hooked_tools(hook, [own])
    show = hooked_config(hook).call_model_input_filter
    assert show is not None

    async def asked(**agent: Any) -> str:
        one: Agent[Any] = Agent(name="desk", **agent)
        try:
            shown: Any = show(CallModelData(ModelInputData([], None), one, None))
            await shown
        except UserMistake as refused:
            return str(refused)
        return ""

    assert await asked(tools=hooked) == ""
    assert "`read_ledger` runs past the hook" in await asked(tools=[*hooked, own])
    assert "`web_search` runs past" in await asked(tools=[*hooked, WebSearchTool()])
    assert "`handoffs`" in await asked(tools=hooked, handoffs=[Agent(name="other")])
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
    agent: Agent[Any] = Agent(name="desk")
    shown: Any = show(CallModelData(ModelInputData(given, None), agent, None))
    shown = await shown
    assert [item["content"] for item in shown.input] == ["b", hook.slot()]
    assert shown.instructions == f"Be kind.\n\n{hook.instructions}"
    await hook.close()
