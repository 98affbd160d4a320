"""LangChain and LangGraph: a middleware for ``create_agent``.

conversations = Conversations(store, briefing, view)
agent = create_agent(model, tools, middleware=[SopilotMiddleware(conversations)])
await agent.ainvoke({"messages": [...]}, {"configurable": {"thread_id": "…"}})
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from copy import copy
from functools import lru_cache
from inspect import signature
from typing import Any
from weakref import WeakKeyDictionary

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config
from langgraph.types import Command
from langsmith.utils import tracing_is_enabled

from sopilot.messages.errors import UserMistake, mistake
from sopilot.runner.conversation import Conversations, Failed, ProcedureHook, was_made
from sopilot.runner.loop_thread import caller
from sopilot.runner.received import Validate, validation_by
from sopilot.values.json import JSON
from sopilot.views.answers import CallAnswer

Given = ToolMessage | Command[Any]


class SopilotMiddleware(AgentMiddleware[Any, Any, Any]):
    """For ``ainvoke``, ``astream``, ``invoke`` and ``stream``. ``Conversations`` have a session
    for each ``thread_id``, as a service compiles its graph once; a hook alone is one session, and
    a second ``thread_id`` is refused. Anthropic and Google take system messages only at the
    beginning: ``slot_last=False`` puts the slot there, at the price of the prompt's cache."""

    def __init__(self, hook: ProcedureHook | Conversations, *, slot_last: bool = True) -> None:
        super().__init__()
        self._hooks = hook
        self._slot_last = slot_last
        schema = hook.step_tool

        async def step(**arguments: Any) -> str:
            async with self._using(_thread_id()) as hook:
                return await hook.step(arguments)

        def step_and_wait(**arguments: Any) -> str:
            thread = _thread_id()

            async def work() -> str:
                async with self._using(thread) as hook:
                    return await hook.step(arguments)

            return caller().wait(work())

        self._step_tool = StructuredTool(
            name=schema.name,
            description=schema.description,
            args_schema=dict(schema.parameters),
            func=step_and_wait,
            coroutine=step,
        )
        self.tools = [self._step_tool]
        if not tracing_is_enabled():
            self._untraced()

    def _untraced(self) -> None:
        """The library goes to another thread twice around every coroutine of a middleware, to
        trace it or not: half of what a middleware costs. A function that gives a coroutine it
        calls where it is."""
        model, tools = self.awrap_model_call, self.awrap_tool_call

        def awrap_model_call(request: Any, handler: Any) -> Awaitable[ModelResponse[Any]]:
            return model(request, handler)

        def awrap_tool_call(request: Any, handler: Any) -> Awaitable[Given]:
            return tools(request, handler)

        for one in (awrap_model_call, awrap_tool_call):
            # It asks for this with every call, too, and takes it from here if it is there.
            vars(one)["__signature__"] = signature(one)
        vars(self).update(awrap_model_call=awrap_model_call, awrap_tool_call=awrap_tool_call)

    def _using(self, thread: str | None) -> AbstractAsyncContextManager[ProcedureHook]:
        if isinstance(self._hooks, Conversations):
            if thread is None:
                cure = 'invoke with config={"configurable": {"thread_id": …}}'
                raise mistake("no-thread-id", "a conversation needs a `thread_id`", help=cure)
            return self._hooks.using(thread)
        if thread is not None:
            self._hooks.belongs_to(thread)
        return nullcontext(self._hooks)

    # --- before a model call --------------------------------------------------------

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        return handler(caller().wait(self._shown(request, _thread_id())))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(await self._shown(request, _thread_id()))

    async def _shown(self, request: ModelRequest[Any], thread: str | None) -> ModelRequest[Any]:
        async with self._using(thread) as hook:
            await hook.ready()
            first, slot = hook.instructions, hook.slot()
        last = [_said(slot)] if slot and self._slot_last else []
        if slot and not self._slot_last:
            first = f"{first}\n\n{slot}"
        # As `request.override`, which warns of itself once for every field that a request has, and
        # throws the warnings away: that took longer than all the rest that is done here.
        shown = copy(request)
        object.__setattr__(shown, "system_message", _joined(request.system_message, first))
        object.__setattr__(shown, "messages", [*request.messages, *last])
        return shown

    # --- around a tool call ---------------------------------------------------------

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Given]
    ) -> Given:
        if request.tool_call["name"] == self._step_tool.name:
            return handler(request)
        # The tool itself runs here: the library keeps its configuration in this very thread.
        here = caller()

        async def handle(one: ToolCallRequest) -> Given:
            return await here.run(lambda: handler(one))

        return here.wait(self._call(request, handle, _thread_id()))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Given]]
    ) -> Given:
        if request.tool_call["name"] == self._step_tool.name:
            return await handler(request)
        return await self._call(request, handler, _thread_id())

    async def _call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[Given]],
        thread: str | None,
    ) -> Given:
        call = request.tool_call
        given: list[Given] = []

        async def execute(arguments: Mapping[str, JSON]) -> object:
            licensed = request.override(tool_call={**call, "args": dict(arguments)})
            answer = await handler(licensed)
            given.append(answer)
            if not isinstance(answer, ToolMessage):
                return str(answer)
            return Failed(answer.content) if answer.status == "error" else answer.content

        async with self._using(thread) as hook:
            answer = await hook.tool_call(
                call["name"], call["args"], call["id"] or "", execute, _validation(request.tool)
            )
        own = given[0] if given else None
        return own if isinstance(own, Command) else _message(call, answer, own)


def _validation(tool: BaseTool | None) -> Validate | None:
    """What the library does to a tool's arguments; by a JSON schema it changes none."""
    schema = tool.args_schema if tool is not None else None
    if tool is None or not isinstance(schema, type):
        return None
    if schema not in _VALIDATIONS:
        _VALIDATIONS[schema] = _validation_by(tool, schema)
    return _VALIDATIONS[schema]


_VALIDATIONS: WeakKeyDictionary[type, Validate] = WeakKeyDictionary()


def _validation_by(tool: BaseTool, schema: Any) -> Validate:
    shown: Any = tool.tool_call_schema
    if not hasattr(schema, "model_fields") or not hasattr(shown, "model_fields"):
        return _unseen
    if schema.model_fields.keys() == shown.model_fields.keys():
        return validation_by(schema)
    # What the library injects is not there yet, and without it the tool's own validators can't
    # run: the model that is shown to a caller has all but those.
    own = schema.__pydantic_decorators__
    if own.field_validators or own.model_validators or own.validators or own.root_validators:
        return _unseen
    return validation_by(shown)


def _unseen(arguments: Mapping[str, JSON]) -> Mapping[str, JSON]:
    raise UserMistake("its validators run behind the guard, so nobody can judge what it receives")


def _thread_id() -> str | None:
    """Of the run that this is called from; outside of one there is none."""
    try:
        found = get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:
        return None
    return None if found is None else str(found)


@lru_cache(maxsize=256)
def _said(text: str) -> SystemMessage:
    """Made once: the same stands before every model call of many conversations, and is held as
    long as the model takes. The library has one for its own system prompt, too."""
    return SystemMessage(text)


def _joined(own: SystemMessage | None, text: str) -> SystemMessage:
    if own is None:
        return _said(text)
    if isinstance(own.content, str):
        return _said(f"{own.content}\n\n{text}")
    return SystemMessage([*own.content, {"type": "text", "text": text}])


def _message(call: Any, answer: CallAnswer, given: ToolMessage | None) -> ToolMessage:
    """The session's line, and beside it what of the tool's own message is not text."""
    content: Any = answer.text
    if given is not None and isinstance(given.content, list):
        pictures = [
            one for one in given.content if isinstance(one, dict) and one.get("type") != "text"
        ]
        if pictures:
            content = [{"type": "text", "text": answer.text}, *pictures]
    return ToolMessage(
        content,
        tool_call_id=call["id"] or "",
        name=call["name"],
        status="success" if was_made(answer) else "error",
        artifact=given.artifact if given is not None else None,
    )
