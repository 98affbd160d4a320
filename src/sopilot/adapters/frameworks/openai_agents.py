"""OpenAI Agents SDK: wrapped function tools, and an input filter for the run.

agent = Agent(name="desk", model=model, tools=hooked_tools(hook, tools))
await Runner.run(agent, request, run_config=hooked_config(hook))
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agents import FunctionTool, RunConfig, Tool
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext

from sopilot.adapters.frameworks.hook import ProcedureHook
from sopilot.diagnostics import UserMistake


def hooked_tools(hook: ProcedureHook, tools: Sequence[FunctionTool]) -> list[Tool]:
    """The same tools, on record and guarded, and the bookkeeping tool."""
    return [_step_tool(hook), *(_hooked(hook, tool) for tool in tools)]


def hooked_config(hook: ProcedureHook, config: RunConfig | None = None) -> RunConfig:
    """``config`` with the program's place before every model call."""
    own = config or RunConfig()
    if own.call_model_input_filter is not None:
        raise UserMistake("the run has an input filter already; call it from your own")

    def show(data: CallModelData[Any]) -> ModelInputData:
        shown = data.model_data
        first = hook.instructions
        if shown.instructions:
            first = f"{shown.instructions}\n\n{first}"
        slot: Any = {"role": "system", "content": hook.slot()}
        return ModelInputData(input=[*shown.input, slot], instructions=first)

    return replace(own, call_model_input_filter=show)


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
    invoke_own = tool.on_invoke_tool

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        try:
            given = json.loads(arguments) if arguments.strip() else {}
        except ValueError:
            given = None
        if not isinstance(given, dict):
            details = {"tool": tool.name, "problem": "the arguments are not a JSON object"}
            await hook.session.note("malformed_call", details)
            return "Not done: the arguments are not a JSON object."

        async def execute() -> object:
            return await invoke_own(context, arguments)

        answer = await hook.tool_call(tool.name, given, context.tool_call_id, execute)
        return answer.text

    return replace(tool, on_invoke_tool=invoke)
