"""The shapes in which transcripts write calls and results, one message at a time.

OpenAI chat messages (``tool_calls``, and ``function_call`` before them), items of its
Responses interface, and Anthropic's content blocks. What looks like a call or a result and
is none of these is refused: an audit that reads past it would judge another run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sopilot.language.diagnostics import UserMistake, mistake

_TOOL_LIKE = re.compile(
    r"(tool|function)[_-]?(call|use|result|response|output)|_call(_output)?$", re.I
)
_READ_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call", "tool_use_id"})
_CALL_TYPES, _RESULT_TYPES = ("function_call", "tool_use"), ("function_call_output", "tool_result")
_TEXT_TYPES = ("text", "input_text", "output_text")


@dataclass(frozen=True, slots=True)
class AskedCall:
    call_id: str
    name: str
    arguments: object


@dataclass(frozen=True, slots=True)
class GivenResult:
    """``call_id`` is ``None`` where the message names no call."""

    call_id: str | None
    content: object
    failed: bool = False


def calls_and_results(message: object, number: int) -> Iterator[AskedCall | GivenResult]:
    """What a message holds, in its order."""
    if not isinstance(message, Mapping):
        raise unreadable(number, "a message must be an object")
    kind = message.get("type")
    if kind in _CALL_TYPES or kind in _RESULT_TYPES:
        yield _item(message, number)
        return
    _refuse_unread(message, number)
    content = message.get("content")
    for part in _parts(message):
        if isinstance(part, Mapping):
            if part.get("type") in _CALL_TYPES or part.get("type") in _RESULT_TYPES:
                yield _item(part, number)
            else:
                _refuse_unread(part, number)
    yield from _asked(message, number)
    if _is_result(message):
        named = message.get("tool_call_id")
        yield GivenResult(None if named is None else str(named), text_of(content))


def _parts(message: Mapping[str, Any]) -> Iterator[object]:
    for name in ("content", "parts"):
        held = message.get(name)
        yield from held if isinstance(held, list | tuple) else ()


def text_of(content: object) -> object:
    """Content that is a list of text parts is their text."""
    if not isinstance(content, list | tuple) or not content:
        return content
    texts = [
        part.get("text") if isinstance(part, Mapping) and part.get("type") in _TEXT_TYPES else None
        for part in content
    ]
    said = [text for text in texts if isinstance(text, str)]
    return "".join(said) if len(said) == len(texts) else content


def unreadable(number: int, problem: str, cure: str = "") -> UserMistake:
    return mistake("transcript", f"message {number}: {problem}", help=cure)


def _asked(message: Mapping[str, Any], number: int) -> Iterator[AskedCall]:
    wanted = message.get("tool_calls") or ()
    if not isinstance(wanted, list | tuple):
        raise unreadable(number, "`tool_calls` must be a list")
    for call in wanted:
        function = call.get("function", call) if isinstance(call, Mapping) else None
        yield _call(function, str(call.get("id", "")) if isinstance(call, Mapping) else "", number)
    if message.get("function_call"):
        yield _call(message["function_call"], "", number)


def _call(function: object, call_id: str, number: int) -> AskedCall:
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise unreadable(number, "a tool call must name its function")
    return AskedCall(call_id, function["name"], function.get("arguments", function.get("input")))


def _item(item: Mapping[str, Any], number: int) -> AskedCall | GivenResult:
    if item["type"] in _CALL_TYPES:
        return _call(item, str(item.get("call_id", item.get("id", ""))), number)
    named = item.get("call_id", item.get("tool_use_id"))
    content = item.get("output", item.get("content"))
    return GivenResult(
        None if named is None else str(named), text_of(content), bool(item.get("is_error"))
    )


def _is_result(message: Mapping[str, Any]) -> bool:
    if message.get("role") in ("tool", "function"):
        parts = message.get("content")
        # A message of this role may also be the envelope of result blocks.
        return not (
            isinstance(parts, list | tuple)
            and any(isinstance(one, Mapping) and one.get("type") in _RESULT_TYPES for one in parts)
        )
    return message.get("tool_call_id") is not None


def _refuse_unread(item: Mapping[str, Any], number: int) -> None:
    kind = item.get("type")
    odd = str(kind) if isinstance(kind, str) and _TOOL_LIKE.search(kind) else ""
    for key, value in item.items():
        if isinstance(key, str) and key not in _READ_KEYS and value and _TOOL_LIKE.search(key):
            odd = odd or key
    if odd:
        raise unreadable(
            number,
            f"`{odd}` looks like a tool call and is in no shape that is read here",
            "write calls as `tool_calls`, `function_call` or `tool_use`, with their results",
        )
