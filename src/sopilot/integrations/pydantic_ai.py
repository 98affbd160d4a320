"""Pydantic AI: a capability.

agent = Agent(model, tools=[...], capabilities=[SopilotCapability("refunds.yaml")])
await agent.run(request, conversation_id="c-1")
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import (
    ApprovalRequired,
    ModelRetry,
    ToolFailed,
    ToolFailedError,
    ToolRetryError,
)
from pydantic_ai.messages import BinaryContent, ToolCallPart, ToolReturn
from pydantic_ai.output import OutputContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from sopilot.messages.errors import InternalBug, mistake
from sopilot.protocols import ToolSchema
from sopilot.runner.conversations import CURRENT, Conversations, Hooks, hooks_of
from sopilot.runner.hook import (
    YES,
    ProcedureHook,
    Read,
    Reply,
    actions_by_alias,
    require_guarded_tools,
)
from sopilot.runner.json_values import values_of_model
from sopilot.values.json import JSON, same
from sopilot.values.schema import defaults_of
from sopilot.views.step_answers import CallStatus

__all__ = ["Conversations", "SopilotCapability"]

_REPORTS = (ModelRetry, ToolRetryError, ToolFailed, ToolFailedError)
"""By these a tool tells the model that it failed. It has run: a guarded call may have done its
work before, and the model must not be asked to make it again."""


@dataclass
class SopilotCapability(AbstractCapability[Any]):
    """Guard the agent's tools.

    ``hooks`` is a handbook (view `guard`), or ``Conversations.of(handbook, view=…, store=…)``: one
    session per ``conversation_id``. A hook alone is one session; a second conversation is refused.
    ``pauses``: a call that waits for the user's yes or for an approval is a deferred tool call.
    The agent needs ``DeferredToolRequests`` among its output types. Approving the deferred call
    answers the question with yes; an approval by role must be there when the run goes on.
    """

    hooks: Hooks
    pauses: bool = False

    def __post_init__(self) -> None:
        self._hooks = hooks_of(self.hooks)
        self._own = frozenset(schema.name for schema in self._hooks.own_tools)

    def _using(self, ctx: RunContext[Any]) -> AbstractAsyncContextManager[ProcedureHook]:
        return self._hooks.using(ctx.conversation_id if CURRENT.get() is None else None)

    def get_instructions(self) -> Any:
        if self._hooks.view.guard:
            return None

        async def show(ctx: RunContext[Any]) -> str:
            async with self._using(ctx) as hook:
                await hook.ready()
                first, slot = hook.instructions, hook.frame_message()
            return f"{first}\n\n{SLOT_MARK}\n{slot}" if slot else first

        return show

    def get_toolset(self) -> Any:
        return FunctionToolset(tools=[self._own_tool(each) for each in self._hooks.own_tools])

    def _own_tool(self, schema: ToolSchema) -> Tool[Any]:
        async def unreachable(**arguments: Any) -> str:
            raise InternalBug("the capability answers this tool's calls")

        return Tool.from_schema(
            unreachable,
            name=schema.name,
            description=schema.description,
            json_schema=dict(schema.parameters),
        )

    async def prepare_tools(
        self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]
    ) -> list[ToolDefinition]:
        for tool in tool_defs:
            if tool.kind == "external":  # the application makes its calls
                self._refuse_unseen(tool.name)
        return tool_defs

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any, handler: Any
    ) -> Any:
        if output_context.has_function:
            self._refuse_unseen(output_context.function_name)
        return await handler(output)

    def _refuse_unseen(self, name: str | None) -> None:
        """Refuse what runs past the hook if it is, or may be, an action of the handbook."""
        actions = self._hooks.handbook.actions
        if name is None or name in actions or name in actions_by_alias(actions):
            message = f"`{name or 'an output function'}` runs past the hook, and isn't guarded"
            cure = "make it a function tool: no external tool, and no function in `output_type`"
            raise mistake("unseen-tools", message, help=cure)

    async def before_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any
    ) -> Any:
        """Validate a call without the steps that it may carry."""
        if not self._hooks.view.in_order or call.tool_name in self._own:
            return args
        async with self._using(ctx) as hook:
            return hook.own_arguments(call.tool_name, call.args_as_dict())

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Any,
    ) -> Any:
        async with self._using(ctx) as hook:
            if call.tool_name in self._own:
                return await hook.step(call.args_as_dict(), call.tool_name)
            require_guarded_tools(hook.handbook, {call.tool_name, *_tool_names(ctx)} - self._own)
            if self._hooks.view.guard:
                hook.reads.update(_reads(ctx))
            return await self._call(hook, ctx, call, tool_def, args, handler)

    async def _call(
        self,
        hook: ProcedureHook,
        ctx: RunContext[Any],
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Any,
    ) -> Any:
        made: list[Any] = []
        every = call.args_as_dict()
        written = hook.own_arguments(call.tool_name, every)
        steps = {name: value for name, value in every.items() if name not in written}
        properties = tool_def.parameters_json_schema.get("properties", {})
        # A tool with one parameter that is a model takes the model's fields.
        only: Any = next(iter(args.values())) if len(args) == 1 else None
        flat = hasattr(only, "model_dump") and not args.keys() & properties.keys()
        validated = values_of_model(only) if flat else args
        # A parameter with an alias is judged under its own name.
        names = {**written, **dict.fromkeys(validated.keys() - properties.keys())}
        defaults = defaults_of(tool_def.parameters_json_schema)
        judged = hook.received(call.tool_name, validated, names, defaults)
        reported: list[Exception] = []

        async def execute(arguments: Mapping[str, JSON]) -> object:
            # The agent's own validated arguments, unless the guard admitted other ones.
            own = args if same(dict(arguments), judged) else dict(arguments)
            try:
                value = await handler(own)
            except _REPORTS as problem:
                reported.append(problem)
                return hook.reported_error(call.tool_name, str(problem))
            made.append(value)
            return value.return_value if isinstance(value, ToolReturn) else value

        attempt = partial(
            hook.tool_call, call.tool_name, {**judged, **steps}, call.tool_call_id, execute
        )
        answer = await attempt()
        waiting = hook.pause(answer) if self.pauses else None
        if waiting is not None and waiting.question and ctx.tool_call_approved:
            shown = hook.was_shown(call.tool_call_id, waiting)
            with hook.replied(Reply(waiting.question, YES) if shown else None):
                answer = await attempt()
            waiting = hook.pause(answer)
        if waiting is not None:
            await hook.show(call.tool_call_id, waiting)
            raise ApprovalRequired(metadata=waiting.as_json())
        if reported and answer.status is CallStatus.DONE:
            raise reported[0]
        if made and hook.view.guard:
            return made[0]
        if made and isinstance(made[0], ToolReturn):
            return replace(made[0], return_value=answer.text)
        if made and isinstance(made[0], BinaryContent):
            return ToolReturn(answer.text, content=[made[0]])
        return answer.text


def _tool_names(ctx: RunContext[Any]) -> set[str]:
    """The agent's tools, also those that it hides in this step."""
    manager = ctx.tool_manager
    names = set((manager.tools if manager is not None else None) or ())

    def visit(toolset: AbstractToolset[Any]) -> None:
        if isinstance(toolset, FunctionToolset):
            names.update(toolset.tools)

    if manager is not None:
        manager.toolset.apply(visit)
    return names


def _reads(ctx: RunContext[Any]) -> dict[str, Read]:
    """The agent's tools in this run, for the reads that the runtime makes by itself."""
    manager = ctx.tool_manager
    if manager is None or manager.tools is None:
        return {}
    toolset = manager.toolset

    def read(name: str, tool: Any) -> Read:
        async def call(arguments: Mapping[str, JSON]) -> object:
            own = replace(ctx, tool_name=name, tool_call_id="sopilot")
            validated = tool.args_validator.validate_python(dict(arguments), context=None)
            value = await toolset.call_tool(name, validated, own, tool)
            return value.return_value if isinstance(value, ToolReturn) else value

        return call

    return {name: read(name, tool) for name, tool in manager.tools.items()}


SLOT_MARK = "The program stands here:"
"""Separates the fixed instructions from the frame message in one text."""
