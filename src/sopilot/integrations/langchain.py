"""LangChain and LangGraph: a middleware for ``create_agent``.

agent = create_agent(model, tools, middleware=[SopilotMiddleware("refunds.yaml")])
await agent.ainvoke({"messages": [...]}, {"configurable": {"thread_id": "…"}})
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, interrupt

from sopilot.messages.errors import InternalBug, UserMistake
from sopilot.protocols import ToolSchema
from sopilot.runner.conversations import Conversations, Hooks, hooks_of
from sopilot.runner.hook import ProcedureHook, Read, Reply, require_guarded_tools, was_made
from sopilot.runner.json_values import Validation, validation_by, validation_by_schema
from sopilot.runner.loop_thread import caller
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallAnswer, CallStatus

__all__ = ["Conversations", "SopilotMiddleware"]

ToolReply = ToolMessage | Command[Any]
Using = AbstractAsyncContextManager[ProcedureHook]
Pausing = Callable[[dict[str, JSON]], Awaitable[object]]


class SopilotMiddleware(AgentMiddleware[Any, Any, Any]):
    """Guard the agent's tools in ``ainvoke``, ``astream``, ``invoke`` and ``stream``.

    ``hooks`` is a handbook (view `guard`), or ``Conversations.of(handbook, view=…, store=…)``:
    one session per ``thread_id``. A hook alone is one session; a second ``thread_id`` is refused.
    ``pauses``: a call that waits for the user's answer or for an approval is a LangGraph
    ``interrupt``. Resume with the user's reply, or with anything once the approval is there. The
    graph needs a checkpointer. ``slot_last=False`` puts the frame message at the beginning, for
    Anthropic and Google, at the price of the prompt's cache.
    """

    def __init__(self, hooks: Hooks, *, slot_last: bool = True, pauses: bool = False) -> None:
        super().__init__()
        self._hooks = hooks_of(hooks)
        self._slot_last = slot_last
        self._pauses = pauses
        self._own = frozenset(schema.name for schema in self._hooks.own_tools)
        self._shown_tools = set[str]()
        """Tools of model calls. Another middleware may add some that the graph doesn't know."""
        self.tools = [_own_tool(schema) for schema in self._hooks.own_tools]

    def _using(self) -> Using:
        """In the thread of the run: it knows the conversation."""
        return self._hooks.using(_thread_id())

    # --- before a model call --------------------------------------------------------

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        return handler(caller().wait(self._shown(request, self._using())))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(await self._shown(request, self._using()))

    async def _shown(self, request: ModelRequest[Any], using: Using) -> ModelRequest[Any]:
        self._shown_tools |= {each.name for each in request.tools if isinstance(each, BaseTool)}
        if self._hooks.view.guard:
            return request
        async with using as hook:
            await hook.ready()
            first, slot = hook.instructions, hook.frame_message()
        last = [SystemMessage(slot)] if slot and self._slot_last else []
        if slot and not self._slot_last:
            first = f"{first}\n\n{slot}"
        system = _joined(request.system_message, first)
        return request.override(system_message=system, messages=[*request.messages, *last])

    # --- around a tool call ---------------------------------------------------------

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolReply]
    ) -> ToolReply:
        # The tool itself runs here: the library keeps its configuration in this very thread.
        here = caller()

        async def handle(tool_call_request: ToolCallRequest) -> ToolReply:
            return await here.run(lambda: handler(tool_call_request))

        async def pause(value: dict[str, JSON]) -> object:
            return await here.run(lambda: interrupt(value))

        return here.wait(self._call(request, handle, self._using(), pause))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolReply]]
    ) -> ToolReply:
        async def pause(value: dict[str, JSON]) -> object:
            return interrupt(value)

        return await self._call(request, handler, self._using(), pause)

    async def _call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolReply]],
        using: Using,
        pause: Pausing,
    ) -> ToolReply:
        call = request.tool_call
        if call["name"] in self._own:
            async with using as hook:
                text = await hook.step(call["args"], call["name"])
            return ToolMessage(text, tool_call_id=call["id"] or "", name=call["name"])
        replies: list[ToolReply] = []
        task = _configurable().get("checkpoint_ns")

        async def execute(arguments: Mapping[str, JSON]) -> object:
            licensed = request.override(tool_call={**call, "args": dict(arguments)})
            answer = await handler(licensed)
            replies.append(answer)
            return _recorded(hook, call["name"], answer)

        async with using as hook:
            tools = request.runtime.tools if request.runtime is not None else ()
            reads = {tool.name: _read(hook, tool) for tool in tools}
            # Not at the model call: another middleware may have hidden some tools from it.
            names = {call["name"], *reads, *self._shown_tools}
            require_guarded_tools(hook.handbook, names - self._own)
            hook.reads.update(reads)
            attempt = partial(
                hook.tool_call,
                call["name"], call["args"], call["id"] or "", execute, _validation(request.tool),
            )  # fmt: skip
            answer = await attempt()
            for turn in count():
                waiting = hook.pause(answer) if self._pauses else None
                if waiting is None:
                    break
                # The library plays the call again from its start, with the user's replies in turn.
                place = f"{task}:{call['id']}:{turn}"
                try:
                    said = str(await pause(waiting.as_json()))
                except GraphInterrupt:
                    await hook.show(place, waiting)
                    raise
                shown = hook.was_shown(place, waiting)
                with hook.replied(Reply(waiting.question, said) if shown else None):
                    answer = await attempt()
        own = replies[0] if replies else None
        ended = answer.status is CallStatus.DONE
        if isinstance(own, Command) or (own is not None and hook.view.guard and ended):
            return own
        return _message(call, answer, own)


def _own_tool(schema: ToolSchema) -> StructuredTool:
    """A tool of the runtime. The middleware answers its calls itself, in their order."""

    def unreachable(**arguments: Any) -> str:
        raise InternalBug("the middleware answers this tool's calls")

    return StructuredTool(
        name=schema.name,
        description=schema.description,
        args_schema=dict(schema.parameters),
        func=unreachable,
    )


def _read(hook: ProcedureHook, tool: BaseTool) -> Read:
    async def read(arguments: Mapping[str, JSON]) -> object:
        # As a tool call: otherwise the text of a handled error would pass for an answer.
        call = {"name": tool.name, "args": dict(arguments), "id": "sopilot", "type": "tool_call"}
        return _recorded(hook, tool.name, await tool.ainvoke(call))

    return read


def _recorded(hook: ProcedureHook, name: str, reply: object) -> object:
    """A tool's reply as the session records it."""
    if not isinstance(reply, ToolMessage):
        return str(reply)
    return hook.reported_error(name, reply.content) if reply.status == "error" else reply.content


def _validation(tool: BaseTool | None) -> Validation | None:
    """The library's validation of a tool's arguments."""
    schema = tool.args_schema if tool is not None else None
    if isinstance(schema, dict):
        return validation_by_schema(schema)
    if tool is None or not isinstance(schema, type):
        return None
    if schema not in _VALIDATIONS:
        _VALIDATIONS[schema] = _validation_by(tool, schema)
    return _VALIDATIONS[schema]


_VALIDATIONS: WeakKeyDictionary[type, Validation] = WeakKeyDictionary()


def _validation_by(tool: BaseTool, schema: Any) -> Validation:
    shown: Any = tool.tool_call_schema
    if not hasattr(schema, "model_fields") or not hasattr(shown, "model_fields"):
        return Validation(_unseen, {})
    if schema.model_fields.keys() == shown.model_fields.keys():
        return validation_by(schema)
    # The library injects some arguments later, and without them the tool's own validators can't
    # run. The model that is shown to a caller has all the others.
    own = schema.__pydantic_decorators__
    if own.field_validators or own.model_validators or own.validators or own.root_validators:
        return Validation(_unseen, {})
    return validation_by(shown)


def _unseen(arguments: Mapping[str, JSON]) -> Mapping[str, JSON]:
    raise UserMistake("its validators run after the guard, which can't judge their results")


def _thread_id() -> str | None:
    """The conversation of the run around this call, if there is one."""
    result = _configurable().get("thread_id")
    return None if result is None else str(result)


def _configurable() -> Mapping[str, Any]:
    try:
        return get_config().get("configurable", {})
    except RuntimeError:
        return {}


def _joined(own: SystemMessage | None, text: str) -> SystemMessage:
    if own is None:
        return SystemMessage(text)
    if isinstance(own.content, str):
        return SystemMessage(f"{own.content}\n\n{text}")
    return SystemMessage([*own.content, {"type": "text", "text": text}])


def _message(call: Any, answer: CallAnswer, tool_message: ToolMessage | None) -> ToolMessage:
    """The session's line, with the pictures and files of the tool's own message."""
    content: Any = answer.text
    if tool_message is not None and isinstance(tool_message.content, list):
        pictures = [
            item
            for item in tool_message.content
            if isinstance(item, dict) and item.get("type") != "text"
        ]
        if pictures:
            content = [{"type": "text", "text": answer.text}, *pictures]
    return ToolMessage(
        content,
        tool_call_id=call["id"] or "",
        name=call["name"],
        status="success" if was_made(answer) else "error",
        artifact=tool_message.artifact if tool_message is not None else None,
    )
