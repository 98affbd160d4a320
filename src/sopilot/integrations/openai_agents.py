"""OpenAI Agents SDK: wrapped function tools, and an input filter for the run.

agent = Agent(name="desk", model=model, tools=hooked_tools(hook, tools))
await Runner.run(agent, request, run_config=hooked_config(hook))
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from agents import (
    Agent,
    FunctionTool,
    RunConfig,
    Tool,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents.function_schema import function_schema
from agents.run import CallModelData, ModelInputData
from agents.tool import (
    maybe_invoke_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)
from agents.tool_context import ToolContext

from sopilot.agent.dialog import MALFORMED_CALL
from sopilot.messages.errors import UserMistake, mistake
from sopilot.runner.conversation import ProcedureHook
from sopilot.runner.received import Validate, validation_by
from sopilot.values.json import JSON

_HOOKED: WeakKeyDictionary[ProcedureHook, list[Tool]] = WeakKeyDictionary()
"""The tools that each hook has made."""


def hooked_tools(hook: ProcedureHook, tools: Sequence[FunctionTool]) -> list[Tool]:
    """The same tools, on record and guarded, and the bookkeeping tool. Hosted tools run where no
    hook sees them, and are refused."""
    for tool in tools:
        if not isinstance(tool, FunctionTool):
            raise _unseen(f"the tool `{tool.name}` runs")
    made: list[Tool] = [_step_tool(hook), *(_hooked(hook, tool) for tool in tools)]
    _HOOKED.setdefault(hook, []).extend(made)
    return made


def hooked_config(hook: ProcedureHook, config: RunConfig | None = None) -> RunConfig:
    """``config`` with the program's place before every model call, after what its own input
    filter does. An agent with tools past the hook is refused at its first model call."""
    own = config or RunConfig()
    own_filter = own.call_model_input_filter

    async def show(data: CallModelData[Any]) -> ModelInputData:
        _refuse_unseen(hook, data.agent)
        shown = data.model_data
        if own_filter is not None:
            filtered = own_filter(data)
            shown = await filtered if inspect.isawaitable(filtered) else filtered
        first = hook.instructions
        if shown.instructions:
            first = f"{shown.instructions}\n\n{first}"
        await hook.ready()
        slot = hook.slot()
        last: list[Any] = [{"role": "system", "content": slot}] if slot else []
        return ModelInputData(input=[*shown.input, *last], instructions=first)

    return replace(own, call_model_input_filter=show)


def _refuse_unseen(hook: ProcedureHook, agent: Agent[Any]) -> None:
    """What is called past the hook is neither on record nor held."""
    if agent.mcp_servers:
        raise _unseen("the agent's `mcp_servers` are called")
    if agent.handoffs:
        raise _unseen("what the agent hands over by `handoffs` goes on")
    hooked = _HOOKED.get(hook, [])
    for tool in agent.tools:
        if not any(tool is one for one in hooked):
            raise _unseen(f"the tool `{tool.name}` runs")


def _unseen(what: str) -> UserMistake:
    message = f"{what} past the hook, neither on record nor guarded"
    cure = "give the agent `hooked_tools(hook, tools)` alone; MCP servers behind `sopilot serve`"
    return mistake("unseen-tools", message, help=cure)


def _step_tool(hook: ProcedureHook) -> FunctionTool:
    schema = hook.step_tool

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        return await hook.step(arguments)

    return FunctionTool(
        name=schema.name,
        description=schema.description,
        params_json_schema=dict(schema.parameters),
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _hooked(hook: ProcedureHook, tool: FunctionTool) -> FunctionTool:
    # The library turns what a tool raises into text, which would pass for a result: this copy
    # raises, and the text is made afterwards.
    bare = set_function_tool_failure_error_function(copy(tool), None)
    validate = _validation(tool)

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        try:
            given = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            details = {"tool": tool.name, "problem": "the arguments are not a JSON object"}
            await hook.session.note(MALFORMED_CALL, details)
            return "Not done: the arguments are not a JSON object."
        made: list[Any] = []

        async def execute(licensed: Mapping[str, JSON]) -> object:
            made.append(await bare.on_invoke_tool(context, json.dumps(licensed)))
            return made[0]

        answer, problem = await hook.attempt(
            tool.name, given, context.tool_call_id, execute, validate
        )
        if problem is None:
            return _with_pictures(answer.text, made)
        said = await maybe_invoke_function_tool_failure_error_function(
            function_tool=tool, context=context, error=problem
        )
        if said is None:
            raise problem
        # Of a call whose outcome is unknown, the session's own words are the ones that matter.
        return answer.text if answer.seq is None else f"#{answer.seq} (failed): {json.dumps(said)}"

    return replace(tool, on_invoke_tool=invoke)


def _validation(tool: FunctionTool) -> Validate | None:
    """What the library does to the arguments of a function; a tool that is written by hand
    receives the JSON text as it is."""
    function = getattr(tool, "__wrapped__", None)
    if function is None:
        return None
    return validation_by(function_schema(function, strict_json_schema=False).params_pydantic_model)


def _with_pictures(text: str, made: Sequence[Any]) -> Any:
    """The library reads pictures and files in a result by their types."""
    given = made[0] if made else None
    kept = [
        one
        for one in (given if isinstance(given, list | tuple) else [given])
        if isinstance(one, ToolOutputImage | ToolOutputFileContent)
    ]
    return [ToolOutputText(text=text), *kept] if kept else text
