"""Pydantic AI: a capability.

agent = Agent(model, tools=[...], capabilities=[SopilotCapability(hook)])
await agent.run(request)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import BinaryContent, ToolCallPart, ToolReturn
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from sopilot.runner.conversation import ProcedureHook
from sopilot.values.json import JSON, same


@dataclass
class SopilotCapability(AbstractCapability[Any]):
    """One agent, one session."""

    hook: ProcedureHook

    def get_instructions(self) -> Any:
        async def show(ctx: RunContext[Any]) -> str:
            await self.hook.ready()
            first, slot = self.hook.instructions, self.hook.slot()
            return f"{first}\n\n{SLOT_MARK}\n{slot}" if slot else first

        return show

    def get_toolset(self) -> Any:
        schema = self.hook.step_tool

        async def step(**arguments: Any) -> str:
            return await self.hook.step(arguments)

        tool: Tool[Any] = Tool.from_schema(
            step,
            name=schema.name,
            description=schema.description,
            json_schema=dict(schema.parameters),
        )
        return FunctionToolset(tools=[tool])

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Any,
    ) -> Any:
        if call.tool_name == self.hook.step_tool.name:
            return await handler(args)

        made: list[Any] = []
        written = call.args_as_dict()
        properties = tool_def.parameters_json_schema.get("properties", {})
        # A tool with one parameter that is a model takes the model's fields.
        only: Any = next(iter(args.values())) if len(args) == 1 else None
        flat = hasattr(only, "model_dump") and not args.keys() & properties.keys()
        validated = only.model_dump(by_alias=True) if flat else args
        # A parameter with an alias is judged under its own name.
        names = {**written, **dict.fromkeys(validated.keys() - properties.keys())}
        judged = self.hook.received(call.tool_name, validated, names)

        async def execute(arguments: Mapping[str, JSON]) -> object:
            # As the agent validated them, unless others were let through than it has.
            made.append(await handler(args if same(dict(arguments), judged) else dict(arguments)))
            first = made[0]
            return first.return_value if isinstance(first, ToolReturn) else first

        answer = await self.hook.tool_call(call.tool_name, judged, call.tool_call_id, execute)
        if made and isinstance(made[0], ToolReturn):
            return replace(made[0], return_value=answer.text)
        if made and isinstance(made[0], BinaryContent):
            return ToolReturn(answer.text, content=[made[0]])
        return answer.text


SLOT_MARK = "The program stands here:"
"""What separates the fixed instructions from the slot in one text."""
