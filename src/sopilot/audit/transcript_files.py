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
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sopilot.audit.state import SessionCall
from sopilot.messages.errors import UserMistake, mistake
from sopilot.values.answers import is_error, is_failure, reports_nothing, says_no
from sopilot.values.json import JSON, escape_references, parts_of, plain, plain_mapping, unique

_TOOL_LIKE = re.compile(
    r"(tool|function)[_-]?(call|use|result|response|output)|_call(_output)?$", re.I
)


_READ_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call", "tool_use_id"})


_CALL_TYPES, _RESULT_TYPES = ("function_call", "tool_use"), ("function_call_output", "tool_result")


_TIMES = ("timestamp", "created_at", "created")


_TEXT_TYPES = ("text", "input_text", "output_text", "refusal")


_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


_SPEAKERS = ("system", "developer", "assistant")
"""Roles that give no results of tools."""


_WITHOUT_ROLE = ("reasoning", "item_reference")
"""Items of the Responses interface that say and do nothing."""


@dataclass(frozen=True, slots=True)
class AskedCall:
    call_id: str
    name: str
    arguments: object


@dataclass(frozen=True, slots=True)
class GivenResult:
    """``call_id`` is ``None`` where the message names no call, ``tool`` its tool if named.
    ``failed``: the message itself says so."""

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
        call_id = None if named is None else str(named)
        yield GivenResult(call_id, text_of(content), _is_marked_failed(message), tool)
    if not _is_known(message):
        raise unreadable(
            number,
            "it has no known role",
            "write it as a message of OpenAI or Anthropic, with `role` and `content`",
        )


def _is_known(message: Mapping[str, Any]) -> bool:
    """Recordings of SOPBench name a `sender` instead of a role, and results only their call."""
    if "role" in message or "type" in message:
        return message.get("role") in _ROLES or message.get("type") in _WITHOUT_ROLE
    return "sender" in message or "tool_call_id" in message


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
    parts = [content] if isinstance(content, str) else content
    texts: list[str] = []
    for part in parts if isinstance(parts, list | tuple) else ():
        if isinstance(part, Mapping) and part.get("type") in _TEXT_TYPES:
            part = part.get("refusal" if part["type"] == "refusal" else "text")
        if isinstance(part, str):
            texts.append(part)
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
    if "args" in function:
        raise unreadable(number, "a tool call has `args`", "name them `arguments`")
    return AskedCall(call_id, function["name"], function.get("arguments", function.get("input")))


def _item(item: Mapping[str, Any], number: int) -> AskedCall | GivenResult:
    if item["type"] in _CALL_TYPES:
        return _call(item, str(item.get("call_id", item.get("id", ""))), number)
    named = item.get("call_id", item.get("tool_use_id"))
    content = item.get("output", item.get("content"))
    return GivenResult(
        None if named is None else str(named), text_of(content), _is_marked_failed(item)
    )


def _is_marked_failed(item: Mapping[str, Any]) -> bool:
    return is_failure(item) or str(item.get("status")).lower() in _NO_RESULT


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
        within = () if key in (*_READ_KEYS, "content", "parts") else parts_of(value)
        for part in within:
            if isinstance(part, Mapping) and any(part.get(name) for name in _READ_KEYS):
                odd = odd or str(key)
    if odd:
        raise unreadable(
            number,
            f"`{odd}` looks like a tool call, but has an unknown shape",
            "write calls as `tool_calls`, `function_call` or `tool_use`, with their results",
        )


LONGEST_VALUE = 200_000
"""Characters of a result that are parsed; a longer one stays text."""


_RAISED = re.compile(r"\s*[A-Za-z_.]+(Error|Exception)\b")


_FAILED_STATUS = ("error", "failed", "failure")


_NO_RESULT = (
    *_FAILED_STATUS,
    "incomplete",
    "cancelled",
    "canceled",
    "denied",
    "rejected",
    "timeout",
)


_SAYING = ("status", "state", "result", "outcome", "message", "msg", "detail", "reason", "info")


_SUCCESS = re.compile(
    r"ok|success|succeeded|done|valid|accepted|(?:is_?)?(?:logged_?in|auth\w*|verified)", re.I
)
"""Fields that report whether a call succeeded."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``ok``: the call did what its name says. ``let_through``: the tool did not turn it
    away, whatever came of it then. ``unclear``: its words may say that it failed."""

    ok: bool
    value: object
    let_through: bool
    unclear: bool = False


AnswerReader = Callable[[object], Answer]
"""How a result's own value is understood."""


class AgentWords(NamedTuple):
    """A message of the agent."""

    message: int
    text: str


class UserWords(NamedTuple):
    """A message of the user; ``question`` is what the agent said since the previous one."""

    message: int
    text: str
    question: str
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Transcript:
    """``replies`` counts the user's messages after the request, where known; ``dialog`` is what
    both sides said then, and ``values`` are those that the user gave by name. ``now`` is the time
    of all of it, where known; ``times`` are the events that record another one, with that time.
    ``instructions`` are the messages of the system and its developer."""

    calls: tuple[SessionCall, ...]
    replies: int = 0
    dialog: str = ""
    values: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    now: str = ""
    user_messages: tuple[UserWords, ...] = ()
    agent_messages: tuple[AgentWords, ...] = ()
    instructions: tuple[int, ...] = ()
    times: tuple[tuple[int, str], ...] = ()

    def time_at(self, seq: float) -> str:
        """The time when an event took place; empty if it isn't known."""
        return next((now for at, now in reversed(self.times) if at < seq), self.now)


def read_messages(
    messages: Sequence[Mapping[str, Any]],
    *,
    outcome: AnswerReader | None = None,
    ignored: frozenset[str] = frozenset(),
    effects: frozenset[str] = frozenset(),
    by_tool: Mapping[str, str] | None = None,
) -> Transcript:
    """The calls with their results, and the user's words.

    A result without an id answers the oldest open call. One whose id no open call has is
    refused: it would be taken for the answer to another call. ``ignored`` are lower-case
    names that are not the domain's tools, such as one that ends the dialog. ``effects`` are
    the actions that change something: a null is no success of theirs. ``by_tool`` are the actions
    whose tool has another name.
    """
    _refuse_disorder(messages)
    judge_outcome = outcome or plain_outcome
    calls: list[SessionCall] = []
    waiting: list[_Open] = []
    seen, answer_number = False, -1
    user_messages: list[UserWords] = []
    agent_messages: list[AgentWords] = []
    instructions: list[int] = []
    texts: list[str] = []
    for number, message in enumerate(messages):
        results = list(calls_and_results(message, number))
        for result in results:
            if isinstance(result, AskedCall):
                seen = True
                if message.get("role") == "user":
                    raise unreadable(
                        number,
                        "the user made a tool call",
                        "leave out calls of the user's own tools, with their results",
                    )
                if result.name.lower() in ignored:
                    waiting.append(_Open(result.call_id, result.name, None))
                    continue
                waiting.append(_Open(result.call_id, result.name, len(calls)))
                arguments = _arguments(result.arguments)
                calls.append(
                    SessionCall(
                        len(calls),
                        (by_tool or {}).get(result.name, result.name),
                        arguments or {},
                        message=number,
                        answers_before=answer_number + 1,
                        is_readable=arguments is not None,
                    )
                )
                continue
            if not seen:
                raise unreadable(
                    number, "a tool result belongs to no call", "include the calls too"
                )
            role = message.get("role")
            if role in _SPEAKERS or (role == "user" and "tool_call_id" in message):
                writer = "the agent itself" if role == "assistant" else f"the {role}"
                problem = f"{writer} wrote a tool's result"
                raise unreadable(number, problem, "give results the role of a tool")
            if result.tool.lower() in ignored and not any(
                result.call_id == item.call_id for item in waiting
            ):
                continue
            position = _answered(result, waiting, number)
            if position is not None:
                answer_number += 1
                answer, call = judge_outcome(read_value(result.content)), calls[position]
                void = call.action in effects and _is_void(answer.value)
                call.answered, call.answer_number = call.seq, answer_number
                call.ok = answer.ok and not result.failed and not void
                call.unknown = answer.let_through and not result.failed and not call.ok
                call.unclear = call.ok and answer.unclear
                call.value = escape_references(plain(answer.value))
        role = message.get("role")
        spoken = spoken_text(message.get("content")) if role in ("user", "assistant") else None
        if isinstance(spoken, str) and role == "assistant":
            texts.append(spoken)
            agent_messages.append(AgentWords(number, spoken))
        elif role == "user" and (spoken is not None or not results):
            # A picture or a recording may say anything.
            spoken = "[]" if spoken is None else spoken
            speaker = str(message.get("name") or "")
            user_messages.append(UserWords(number, spoken, "\n".join(texts), speaker))
            texts.clear()
        elif role in ("system", "developer"):
            instructions.append(number)
    replies = user_messages[1:]
    return Transcript(
        tuple(calls),
        len(replies),
        "\n".join([*(said.text for said in agent_messages), *(said.text for said in replies)]),
        user_messages=tuple(user_messages),
        agent_messages=tuple(agent_messages),
        instructions=tuple(instructions),
    )


def _is_void(value: object) -> bool:
    """Whether an answer is no success of an action that changes something."""
    status = value.get("status") if isinstance(value, Mapping) else None
    return value is None or (isinstance(status, str) and status.lower() in _FAILED_STATUS)


def _refuse_disorder(messages: Sequence[object]) -> None:
    """Refuse messages whose times contradict their order. Results of one batch of calls may come
    in any order."""
    latest = said = float("-inf")
    for number, message in enumerate(messages):
        at = _time_of(message) if isinstance(message, Mapping) else None
        if at is None or not isinstance(message, Mapping):
            continue
        is_result = message.get("role") == "tool"
        if at < (said if is_result else latest):
            raise unreadable(
                number, "its time is before that of an earlier message", "sort messages by time"
            )
        latest, said = max(latest, at), said if is_result else at


def _time_of(message: Mapping[str, Any]) -> float | None:
    written = next((message[name] for name in _TIMES if message.get(name) is not None), None)
    try:
        if isinstance(written, int | float) and not isinstance(written, bool):
            return float(written)
        moment = datetime.fromisoformat(written) if isinstance(written, str) else None
    except (ValueError, OverflowError):
        return None
    if moment is None:
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


class _Open(NamedTuple):
    """A call without a result yet; ``position`` is ``None`` for one that is ignored."""

    call_id: str
    name: str
    position: int | None


def _answered(result: GivenResult, waiting: list[_Open], number: int) -> int | None:
    """The place of the call that a result answers. Calls without an id take any of their tool, in
    turn."""
    wanted, tool = result.call_id, result.tool
    ids = [item.call_id for item in waiting]
    named = wanted if wanted in ids else ""
    for place, item in enumerate(waiting):
        if (wanted is None or item.call_id == named) and tool in ("", item.name):
            return waiting.pop(place).position
    problem = (
        f"the result names `{wanted}`, and no open call has that id"
        if wanted is not None and named not in ids
        else f"the result is one of `{tool}`, and no open call of that tool fits it"
    )
    raise unreadable(number, problem, "keep every call, and one result for each, with the same id")


def _arguments(written: object) -> dict[str, JSON] | None:
    if isinstance(written, str):
        written = read_value(written) if written.strip() else {}
    if written is None:
        return {}
    return escape_references(plain_mapping(written)) if isinstance(written, Mapping) else None


def read_value(written: object) -> object:
    """JSON, else a Python literal, else the text itself: also where a key is there twice."""
    if not isinstance(written, str) or len(written) > LONGEST_VALUE:
        return written
    try:
        return json.loads(written, object_pairs_hook=unique)
    except json.JSONDecodeError:
        pass
    except (ValueError, RecursionError):
        return written
    try:
        return ast.literal_eval(written)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return written


def is_unclear(native: object) -> bool:
    """Whether an answer that is no failure may say that the call didn't do what its name says."""
    if isinstance(native, Mapping):
        flags = {value for value in native.values() if isinstance(value, bool)}
        reports: list[JSON] = [
            text for text in map(native.get, _SAYING) if isinstance(text, str) and text
        ]
        nested = [part for part in parts_of(native) if isinstance(part, Mapping)]
        reports += [part[name] for part in nested for name in part if _SUCCESS.fullmatch(str(name))]
        return flags == {False} or not native or any(map(is_unclear, reports))
    if isinstance(native, str):
        return not native or says_no(native)
    return not native or (isinstance(native, list | tuple) and native[0] is False)


def plain_outcome(native: object) -> Answer:
    """A failure is a call that did not happen; everything else is a success, if only a doubtful
    one."""
    ok = not is_failure(native)
    return Answer(ok, native, ok, ok and (is_unclear(native) or reports_nothing(native)))


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
