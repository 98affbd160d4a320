"""Other people's transcripts: message lists become calls with results, in order.

Three shapes are read: OpenAI chat messages (``tool_calls``, and ``function_call`` before them),
items of its Responses interface, and Anthropic's content blocks. A message that looks like a call
or a result in another shape is refused: an audit that reads past it would judge another run.

Result values are often text. They are read as JSON or as Python literals, within a size limit, and
never evaluated.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sopilot.audit.state import SessionCall
from sopilot.messages.errors import UserMistake, mistake
from sopilot.values.json import JSON, escape_references, plain, plain_mapping

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
    """``call_id`` is ``None`` where the message names no call, ``tool`` its tool if named."""

    call_id: str | None
    content: object
    failed: bool = False
    tool: str = ""


def calls_and_results(message: object, number: int) -> Iterator[AskedCall | GivenResult]:
    """The calls and results of a message, in its order."""
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
    yield from _calls_in(message, number)
    if _is_result(message):
        named = message.get("tool_call_id")
        tool = str(message.get("tool_name") or message.get("name") or "")
        yield GivenResult(None if named is None else str(named), text_of(content), tool=tool)


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
    replies = [text for text in texts if isinstance(text, str)]
    return "".join(replies) if len(replies) == len(texts) else content


def spoken_text(content: object) -> str | None:
    """The words of a message, beside pictures, results and thoughts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = [
        part["text"]
        for part in parts
        if isinstance(part, Mapping)
        and part.get("type") in _TEXT_TYPES
        and isinstance(part.get("text"), str)
    ]
    return "".join(texts) if texts else None


def unreadable(number: int, problem: str, cure: str = "") -> UserMistake:
    return mistake("transcript", f"message {number}: {problem}", help=cure)


def _calls_in(message: Mapping[str, Any], number: int) -> Iterator[AskedCall]:
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
            and any(
                isinstance(part, Mapping) and part.get("type") in _RESULT_TYPES for part in parts
            )
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
            f"`{odd}` looks like a tool call, but has an unknown shape",
            "write calls as `tool_calls`, `function_call` or `tool_use`, with their results",
        )


LONGEST_VALUE = 200_000
"""Characters of a result that are parsed; a longer one stays text."""


_RAISED = re.compile(r"\s*[A-Za-z_.]+(Error|Exception)\b")


_FAILED = re.compile(r"\s*(failed|failure)\b", re.IGNORECASE)


_FAILED_STATUS = ("error", "failed", "failure")


_ERROR = re.compile(r"\s*(([A-Za-z_.]*(Error|Exception)|error)\b|Traceback )")


@dataclass(frozen=True, slots=True)
class Answer:
    """``ok``: the call did what its name says. ``let_through``: the tool did not turn it
    away, whatever came of it then."""

    ok: bool
    value: object
    let_through: bool


AnswerReader = Callable[[object], Answer]
"""How a result's own value is understood."""


class UserWords(NamedTuple):
    """A message of the user; ``question`` is what the agent said since the previous one."""

    message: int
    text: str
    question: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """``replies`` counts the user's messages after the request, where known; ``dialog`` is what
    both sides said then, and ``values`` are those that the user gave by name. ``now`` is the time
    of all of it, where known."""

    calls: tuple[SessionCall, ...]
    replies: int = 0
    dialog: str = ""
    values: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    now: str = ""
    user_messages: tuple[UserWords, ...] = ()


def read_messages(
    messages: Sequence[Mapping[str, Any]],
    *,
    outcome: AnswerReader | None = None,
    ignored: frozenset[str] = frozenset(),
    effects: frozenset[str] = frozenset(),
) -> Transcript:
    """The calls with their results, and the user's words.

    A result without an id answers the oldest open call. One whose id no open call has is
    refused: it would be taken for the answer to another call. ``ignored`` are lower-case
    names that are not the domain's tools, such as one that ends the dialog. ``effects`` are
    the actions that change something: a null is no success of theirs.
    """
    judge_outcome = outcome or plain_outcome
    calls: list[SessionCall] = []
    waiting: list[tuple[str, int | None]] = []
    """Ids of open calls, and their places; ``None`` for one that is ignored."""
    seen, answer_number = False, -1
    user_messages: list[UserWords] = []
    texts: list[str] = []
    for number, message in enumerate(messages):
        for result in calls_and_results(message, number):
            if isinstance(result, AskedCall):
                seen = True
                if result.name.lower() in ignored:
                    waiting.append((result.call_id, None))
                    continue
                waiting.append((result.call_id, len(calls)))
                arguments = _arguments(result.arguments)
                calls.append(
                    SessionCall(
                        len(calls),
                        result.name,
                        arguments or {},
                        message=number,
                        is_readable=arguments is not None,
                    )
                )
                continue
            if not seen:
                raise unreadable(
                    number, "a tool's result answers no call", "keep the calls as well"
                )
            if message.get("role") == "assistant":
                raise unreadable(
                    number, "the agent itself wrote a tool's result", "keep results as the tool's"
                )
            if result.tool.lower() in ignored and result.call_id not in dict(waiting):
                continue
            position = _answered(result.call_id, waiting, number)
            if position is not None:
                answer_number += 1
                answer, call = judge_outcome(read_value(result.content)), calls[position]
                void = answer.value is None and call.action in effects
                call.answered, call.answer_number = call.seq, answer_number
                call.ok = answer.ok and not result.failed and not void
                call.unknown = answer.let_through and not result.failed and not call.ok
                call.value = escape_references(plain(answer.value))
        role = message.get("role")
        spoken = spoken_text(message.get("content")) if role in ("user", "assistant") else None
        if isinstance(spoken, str) and role == "assistant":
            texts.append(spoken)
        elif isinstance(spoken, str):
            user_messages.append(UserWords(number, spoken, "\n".join(texts)))
            texts.clear()
    return Transcript(tuple(calls), user_messages=tuple(user_messages))


def _answered(wanted: str | None, waiting: list[tuple[str, int | None]], number: int) -> int | None:
    """The place of the call that a result answers. Calls without an id take any, in turn."""
    ids = [call_id for call_id, _ in waiting]
    if wanted is None:
        return waiting.pop(0)[1] if waiting else None
    for named in (wanted, ""):
        if named in ids:
            return waiting.pop(ids.index(named))[1]
    raise unreadable(
        number,
        f"the result names `{wanted}`, and no open call has that id",
        "keep every call, and one result for each, with the same id",
    )


def _arguments(written: object) -> dict[str, JSON] | None:
    if isinstance(written, str):
        written = read_value(written) if written.strip() else {}
    if written is None:
        return {}
    return escape_references(plain_mapping(written)) if isinstance(written, Mapping) else None


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


def is_failure(native: object) -> bool:
    """Whether it is an error, or an answer that reports no success."""
    if isinstance(native, Mapping):
        reply = native.get("status")
        return (
            is_error(native)
            or native.get("success") is False
            or native.get("ok") is False
            or (isinstance(reply, str) and reply.lower() in _FAILED_STATUS)
        )
    return is_error(native) or (isinstance(native, str) and _FAILED.match(native) is not None)


def plain_outcome(native: object) -> Answer:
    """A failure is a call that did not happen; everything else is a success."""
    ok = not is_failure(native)
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
