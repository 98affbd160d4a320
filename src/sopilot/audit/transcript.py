"""Other people's transcripts: message lists become calls with results, in order.

Result values are often text. They are read as JSON or as Python literals, within
a size limit, and never evaluated.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sopilot.diagnostics import Diagnostic, UserMistake
from sopilot.vm.values import JSON, plain

LONGEST_VALUE = 200_000
"""Characters of a result that are parsed; a longer one stays text."""

_RAISED = re.compile(r"\s*[A-Za-z_.]+(Error|Exception)\b")
_ERROR = re.compile(r"\s*(([A-Za-z_.]*(Error|Exception)|error)\b|Traceback )")


@dataclass(frozen=True, slots=True)
class Answer:
    """``ok``: the call did what its name says. ``let_through``: the tool did not turn it
    away, whatever came of it then."""

    ok: bool
    value: JSON
    let_through: bool


Outcome = Callable[[object], Answer]
"""How a result's own value is understood."""


@dataclass(frozen=True, slots=True)
class TranscriptCall:
    """``arguments`` is ``None`` where the model's text is no object; ``ok`` and ``value``
    are the tool's answer, ``answered`` whether there was one, ``let_through`` whether the
    tool did not turn the call away."""

    index: int
    message: int
    action: str
    arguments: Mapping[str, JSON] | None
    ok: bool = False
    value: JSON = None
    answered: bool = False
    let_through: bool = False


@dataclass(frozen=True, slots=True)
class Transcript:
    """``replies`` counts what the user said after the request, where that is known."""

    calls: tuple[TranscriptCall, ...]
    messages: int
    replies: int = 0


def read_messages(
    messages: Sequence[Mapping[str, Any]],
    *,
    outcome: Outcome | None = None,
    ignored: frozenset[str] = frozenset(),
) -> Transcript:
    """OpenAI-style messages: ``tool_calls`` of an assistant, ``tool_call_id`` of a result.

    A result without a matching id answers the oldest open call. ``ignored`` are
    lower-case names that are not the domain's tools, such as one that ends the dialog.
    """
    judge_outcome = outcome or plain_outcome
    calls: list[TranscriptCall] = []
    waiting: list[tuple[str, int]] = []
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise _mistake(number, "a message must be an object")
        wanted = message.get("tool_calls") or ()
        if not isinstance(wanted, list | tuple):
            raise _mistake(number, "`tool_calls` must be a list")
        for call in wanted:
            name, arguments, call_id = _call(call, number)
            if name.lower() in ignored:
                continue
            waiting.append((call_id, len(calls)))
            calls.append(TranscriptCall(len(calls), number, name, arguments))
        if _is_result(message):
            position = _answered(message, waiting)
            if position is not None:
                answer = judge_outcome(read_value(message.get("content")))
                asked = calls[position]
                calls[position] = TranscriptCall(
                    asked.index,
                    asked.message,
                    asked.action,
                    asked.arguments,
                    answer.ok,
                    plain(answer.value),
                    True,
                    answer.let_through,
                )
    return Transcript(tuple(calls), len(messages))


def _is_result(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "tool" or message.get("tool_call_id") is not None


def _answered(message: Mapping[str, Any], waiting: list[tuple[str, int]]) -> int | None:
    if not waiting:
        return None
    wanted = message.get("tool_call_id")
    place = next((n for n, (call_id, _) in enumerate(waiting) if call_id == wanted), 0)
    return waiting.pop(place)[1]


def _call(call: Mapping[str, Any], number: int) -> tuple[str, dict[str, JSON] | None, str]:
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise _mistake(number, "a tool call must name its function")
    return function["name"], _arguments(function.get("arguments")), str(call.get("id", ""))


def _arguments(written: object) -> dict[str, JSON] | None:
    if isinstance(written, str):
        written = read_value(written) if written.strip() else {}
    if written is None:
        return {}
    return plain(written) if isinstance(written, Mapping) else None


def read_value(written: object) -> object:
    """JSON, else a Python literal, else the text itself."""
    if not isinstance(written, str) or len(written) > LONGEST_VALUE:
        return written
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(written)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return written


def is_error(native: object) -> bool:
    """Most tools say so when they fail: an object with an error, or an error's own text."""
    if isinstance(native, Mapping):
        return bool(native.get("error"))
    return isinstance(native, str) and _ERROR.match(native) is not None


def plain_outcome(native: object) -> Answer:
    """An error is a call that did not happen; everything else is a success."""
    ok = not is_error(native)
    return Answer(ok, native, ok)


def success_first_outcome(native: object) -> Answer:
    """Tools that answer with a truth, or with a pair of success and value.

    A bare ``False`` is the tool's own refusal. An exception's text is not: the
    tool had begun by then.
    """
    if isinstance(native, bool):
        return Answer(native, native, native)
    if isinstance(native, list | tuple) and len(native) == 2 and isinstance(native[0], bool):
        return Answer(native[0], native[1], True)
    if is_error(native):
        raised = isinstance(native, str) and _RAISED.match(native) is not None
        return Answer(False, native, raised)
    return Answer(native is not None, native, True)


def _mistake(number: int, problem: str) -> UserMistake:
    return UserMistake([Diagnostic("transcript", f"message {number}: {problem}")])
