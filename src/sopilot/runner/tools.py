"""Plain functions as the tools of a session; the handbook declares their inputs."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from typing import Any

from sopilot.agent.approvers import action_schema
from sopilot.agent.toolbox import argument_problem
from sopilot.handbook.model import Action
from sopilot.messages.diagnostic import Diagnostic, did_you_mean
from sopilot.messages.errors import UserMistake
from sopilot.protocols import RecallsOutcomes, ToolResult, Tools, ToolSchema
from sopilot.runner.hook import ToolBroke, ToolFailed
from sopilot.runner.json_values import as_json
from sopilot.values.json import JSON
from sopilot.values.text import place_of

Function = Callable[..., Any]
ToolsLike = Tools | Mapping[str, Function] | Iterable[Function] | object
"""Functions by name, a list of functions, or an object with a method for each action; or
whatever already is a ``Tools``."""

KEY = "key"


def as_tools(tools: ToolsLike, actions: Mapping[str, Action]) -> Tools:
    """``actions`` are the handbook's: each one that is offered needs its function."""
    if isinstance(tools, Tools):
        return tools
    offered = {name: action for name, action in actions.items() if action.offered}
    functions = _functions(tools, offered)
    problems = [_problem(name, functions.get(name), action) for name, action in offered.items()]
    problems += [
        Diagnostic(
            "unknown-tool",
            f"`{name}` isn't an action of the handbook",
            help=did_you_mean(name, offered),
        )
        for name in functions
        if name not in offered
    ]
    results = [problem for problem in problems if problem is not None]
    if results:
        raise UserMistake(results)
    return PlainTools(functions, offered, tools)


def _functions(tools: ToolsLike, offered: Mapping[str, Action]) -> dict[str, Function]:
    if isinstance(tools, Mapping):
        return dict(tools)
    if isinstance(tools, Iterable):
        listed: Iterable[Any] = tools
        return {getattr(item, "__name__", str(item)): item for item in listed}
    return {name: getattr(tools, name) for name in offered if hasattr(tools, name)}


def _problem(name: str, function: Function | None, action: Action) -> Diagnostic | None:
    if function is None:
        return Diagnostic("missing-tool", f"no function is passed for the action `{name}`")
    inputs = {each.name: None for each in action.inputs}
    try:
        inspect.signature(function).bind(**inputs, **_key(function, action, ""))
    except TypeError as error:
        wanted = ", ".join(inputs) or "nothing"
        return Diagnostic("tool-signature", f"`{name}` takes {wanted} in the handbook: {error}")
    for each in action.inputs:
        parameter = inspect.signature(function).parameters.get(each.name)
        default = None if parameter is None else parameter.default
        if not each.required and default not in (None, inspect.Parameter.empty):
            # Left out, it would be judged as nothing, and carried out as the default.
            message = f"`{each.name}` of `{name}` is optional, and {default!r} if it is left out"
            cure = f"make `{each.name}` required in the handbook, or its default `None`"
            return Diagnostic("tool-default", message, help=cure)
    return None


def _key(function: Function, action: Action, key: str) -> dict[str, str]:
    """The call's own key, for a function that asks for it and knows a repetition by it."""
    request = KEY in inspect.signature(function).parameters
    return {KEY: key} if request and all(each.name != KEY for each in action.inputs) else {}


def require_done(name: str, value: object) -> None:
    """Raise if the value is work that its reader, or a thread, would do later, after the proof."""
    lazy = type(value).__module__ == "itertools"
    if lazy or isinstance(
        value, Generator | AsyncGenerator | Awaitable | Future | map | filter | zip
    ):
        message = f"`{name}` returned a {type(value).__name__}, which does its work later"
        if inspect.iscoroutine(value):
            value.close()
            message += ": declare the function, or its wrapper, with `async def`"
        raise RuntimeError(message)


def _run(function: Function, values: Mapping[str, Any]) -> Any:
    """In a thread of its own. A future can't carry ``StopIteration`` from there."""
    try:
        return function(**values)
    except StopIteration as problem:
        raise RuntimeError("it raised StopIteration") from problem


class PlainTools:
    """Functions that are not asynchronous run in a thread: a slow one must not cost the lease.
    A ``memory`` that recalls outcomes makes these tools recall them."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        actions: Mapping[str, Action],
        memory: object = None,
    ) -> None:
        self._functions = functions
        self._actions = actions
        if isinstance(memory, RecallsOutcomes):
            self.recall = memory.recall
        self._schemas = {name: action_schema(action) for name, action in actions.items()}

    def schemas(self) -> Sequence[ToolSchema]:
        return tuple(self._schemas.values())

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        problem = argument_problem(self._schemas[name], arguments)
        if problem:
            return ToolResult(False, {"error": problem})
        function = self._functions[name]
        values = {**arguments, **_key(function, self._actions[name], key)}
        try:
            if inspect.iscoroutinefunction(function):
                value = await function(**values)
            else:
                value = await asyncio.to_thread(_run, function, values)
                if inspect.isawaitable(value):
                    value = await value
            require_done(name, value)
        except ToolFailed as failed:
            return ToolResult(False, {"error": str(failed)})
        except (Exception, SystemExit) as broken:
            # Its outcome is unknown, and the session records it so.
            kind, place = type(broken).__name__, place_of(broken)
            logging.getLogger("sopilot").error("the tool `%s` raised %s (%s)", name, kind, place)
            raise ToolBroke(name, broken) from broken
        return value if isinstance(value, ToolResult) else ToolResult(True, as_json(value))
