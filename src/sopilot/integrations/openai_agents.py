"""OpenAI Agents SDK: wrapped function tools, and an input filter for the run.

conversations = Conversations.of("refunds.yaml")
agent = Agent(name="desk", model=model, tools=hooked_tools(conversations, tools))
config = hooked_config(conversations, RunConfig(group_id="c-1"))
await Runner.run(agent, request, run_config=config)
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from functools import partial
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
from sopilot.protocols import ToolSchema
from sopilot.runner.conversations import CURRENT, Conversations, OneConversation, hooks_of
from sopilot.runner.hook import YES, ProcedureHook, Read, Reply, require_guarded_tools
from sopilot.runner.json_values import Validation, validation_by, validation_by_schema
from sopilot.values.json import JSON

__all__ = ["Conversations", "hooked_config", "hooked_tools"]

Hooks = ProcedureHook | Conversations

_HOOKED: WeakKeyDictionary[Hooks, list[Tool]] = WeakKeyDictionary()
"""The tools that were made for each."""
_OPENINGS: WeakKeyDictionary[ProcedureHook, str] = WeakKeyDictionary()
"""The first message of a hook's conversation that has no name."""
_CONTEXT: ContextVar[ToolContext[Any] | None] = ContextVar("sopilot_tool_context", default=None)
_GROUP: ContextVar[str | None] = ContextVar("sopilot_group", default=None)
"""The conversation of the run, for what the library calls without the run's configuration."""


def hooked_tools(
    hooks: Hooks, tools: Sequence[FunctionTool], *, pauses: bool = False
) -> list[Tool]:
    """Wrap tools so that their calls are recorded and guarded; add those of the view. Hosted tools
    run where no hook sees them, and are refused.

    ``pauses``: a call that waits for the user's yes or for an approval is one of the run's
    ``interruptions``. ``state.approve(item)`` answers the question with yes; an approval by role
    must be there when the run goes on.
    """
    for tool in tools:
        if not isinstance(tool, FunctionTool):
            raise _unseen(f"the tool `{tool.name}` runs")
    within = hooks_of(hooks)
    reads = {tool.name: _read(tool) for tool in tools}
    own = [_own_tool(within, schema) for schema in within.own_tools]
    made: list[Tool] = [*own, *(_hooked(within, tool, reads, pauses) for tool in tools)]
    _HOOKED.setdefault(hooks, []).extend(made)
    return made


def hooked_config(hooks: Hooks, config: RunConfig | None = None) -> RunConfig:
    """Add the frame message before every model call, after the configuration's own filter. An
    agent with tools past the hook is refused at its first model call.

    ``config.group_id`` names the conversation. A hook alone is one conversation: a run with
    another name, or without a name and with another beginning, is refused."""
    own = config or RunConfig()
    own_filter = own.call_model_input_filter
    within = hooks_of(hooks)

    async def show(data: CallModelData[Any]) -> ModelInputData:
        _refuse_unseen(hooks, data.agent)
        names = {tool.name for tool in _HOOKED.get(hooks, ())}
        own_names = {schema.name for schema in within.own_tools}
        require_guarded_tools(within.handbook, names - own_names)
        _GROUP.set(own.group_id)
        if isinstance(hooks, ProcedureHook) and own.group_id is None and CURRENT.get() is None:
            _refuse_another_beginning(hooks, data.model_data.input)
        shown = data.model_data
        if own_filter is not None:
            filtered = own_filter(data)
            shown = await filtered if inspect.isawaitable(filtered) else filtered
        async with within.using(own.group_id) as hook:
            await hook.ready()
            first, slot = hook.instructions, hook.frame_message()
        if hook.view.guard:
            return shown
        if shown.instructions:
            first = f"{shown.instructions}\n\n{first}"
        last: list[Any] = [{"role": "system", "content": slot}] if slot else []
        return ModelInputData(input=[*shown.input, *last], instructions=first)

    return replace(own, call_model_input_filter=show)


def _refuse_another_beginning(hook: ProcedureHook, messages: Sequence[Any]) -> None:
    """Two customers must never share a session."""
    opening = json.dumps(messages[0], sort_keys=True, default=str) if messages else ""
    if _OPENINGS.setdefault(hook, opening) != opening:
        message = "this hook is the session of a conversation that began with another message"
        cure = "name the conversation: `hooked_config(conversations, RunConfig(group_id=…))`"
        raise mistake("mixed-conversations", message, help=cure)


def _refuse_unseen(hooks: Hooks, agent: Agent[Any], *callers: Agent[Any]) -> None:
    """Calls past the hook are neither on record nor guarded, also those of an agent that is the
    tool of another one: it may have a configuration of its own."""
    if agent.mcp_servers:
        raise _unseen("the agent's `mcp_servers` are called")
    if agent.handoffs:
        raise _unseen("agents that take over by `handoffs` run")
    hooked = _HOOKED.get(hooks, [])
    for tool in agent.tools:
        if not any(tool is item for item in hooked):
            raise _unseen(f"the tool `{tool.name}` runs")
        inner: Any = getattr(tool, "_agent_instance", None)
        if inner is not None and not any(inner is caller for caller in (agent, *callers)):
            _refuse_unseen(hooks, inner, agent, *callers)


def _unseen(what: str) -> UserMistake:
    message = f"{what} past the hook, neither on record nor guarded"
    cure = (
        "give the agent `hooked_tools(hook, tools)` alone; guard MCP servers with `sopilot gateway`"
    )
    return mistake("unseen-tools", message, help=cure)


def _group(context: ToolContext[Any]) -> str | None:
    return context.run_config.group_id if context.run_config is not None else None


def _read(tool: FunctionTool) -> Read:
    """A call of the runtime's own, in the run of the call that needs it."""
    bare = set_function_tool_failure_error_function(copy(tool), None)

    async def read(arguments: Mapping[str, JSON]) -> object:
        run, written = _CONTEXT.get(), json.dumps(arguments)
        context = ToolContext(
            run.context if run is not None else None,
            tool_name=tool.name,
            tool_call_id="sopilot",
            tool_arguments=written,
            run_config=run.run_config if run is not None else None,
        )
        return await bare.on_invoke_tool(context, written)

    return read


def _own_tool(within: Conversations | OneConversation, schema: ToolSchema) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        async with within.using(_group(context)) as hook:
            return await hook.step(arguments, schema.name)

    return FunctionTool(
        name=schema.name,
        description=schema.description,
        params_json_schema=dict(schema.parameters),
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _hooked(
    within: Conversations | OneConversation,
    tool: FunctionTool,
    reads: Mapping[str, Read],
    pauses: bool,
) -> FunctionTool:
    # The library turns what a tool raises into text, which would pass for a result: this copy
    # raises, and the text is made afterwards.
    bare = set_function_tool_failure_error_function(copy(tool), None)
    validate = _validation(tool)

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        token = _CONTEXT.set(context)
        try:
            async with within.using(_group(context)) as hook:
                hook.reads.update(reads)
                return await guarded(hook, context, arguments)
        finally:
            _CONTEXT.reset(token)

    async def guarded(hook: ProcedureHook, context: ToolContext[Any], arguments: str) -> Any:
        value = _read_arguments(arguments)
        if value is None:
            details = {"tool": tool.name, "problem": "the arguments are not a JSON object"}
            await hook.session.note(MALFORMED_CALL, details)
            return "Not done: the arguments are not a JSON object."
        made: list[Any] = []

        async def execute(licensed: Mapping[str, JSON]) -> object:
            made.append(await bare.on_invoke_tool(context, json.dumps(licensed)))
            return made[0]

        attempt = partial(hook.attempt, tool.name, value, context.tool_call_id, execute, validate)
        answer, problem = await attempt()
        waiting = hook.pause(answer) if pauses else None
        approved = waiting is not None and waiting.question and _is_approved(context)
        if waiting is not None and approved and hook.was_shown(context.tool_call_id, waiting):
            with hook.replied(Reply(waiting.question, YES)):
                answer, problem = await attempt()
        if problem is None and made and hook.view.guard:
            return made[0]
        if problem is None:
            return _with_pictures(answer.text, made)
        reply = await maybe_invoke_function_tool_failure_error_function(
            function_tool=tool, context=context, error=problem
        )
        if reply is None:
            raise problem
        # Of a call whose outcome is unknown, the session's own words are the ones that matter.
        return answer.text if answer.seq is None else f"#{answer.seq} (failed): {json.dumps(reply)}"

    async def needs_approval(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        async with within.using(_GROUP.get()) as hook:
            hook.reads.update(reads)
            waiting = await hook.rehearse(tool.name, arguments, validate)
            # The library asks again when the run goes on: then the user has seen the first one.
            if waiting is not None and context.is_tool_approved(tool.name, call_id) is None:
                await hook.show(call_id, waiting)
            return waiting is not None

    if not pauses:
        return replace(tool, on_invoke_tool=invoke)
    if tool.needs_approval is not False:
        raise mistake("own-approval", f"the tool `{tool.name}` has its own `needs_approval`")
    return replace(tool, on_invoke_tool=invoke, needs_approval=needs_approval)


def _read_arguments(arguments: str) -> dict[str, JSON] | None:
    try:
        value = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_approved(context: ToolContext[Any]) -> bool:
    return context.is_tool_approved(context.tool_name, context.tool_call_id) is True


def _validation(tool: FunctionTool) -> Validation:
    """The library's validation of a function's arguments. A tool that is written by hand has a
    schema only."""
    function = getattr(tool, "__wrapped__", None)
    if function is None:
        return validation_by_schema(tool.params_json_schema)
    return validation_by(function_schema(function, strict_json_schema=False).params_pydantic_model)


def _with_pictures(text: str, made: Sequence[Any]) -> Any:
    """The library reads pictures and files in a result by their types."""
    value = made[0] if made else None
    stored = [
        item
        for item in (value if isinstance(value, list | tuple) else [value])
        if isinstance(item, ToolOutputImage | ToolOutputFileContent)
    ]
    return [ToolOutputText(text=text), *stored] if stored else text
