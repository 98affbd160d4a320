"""Other people's transcripts: message lists become calls with results, in order.

Result values are often text. They are read as JSON or as Python literals, within
a size limit, and never evaluated.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sopilot.runtime.audit._message_shapes import AskedCall, calls_and_results, text_of, unreadable
from sopilot.runtime.vm.values import JSON, plain, plain_mapping

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


@dataclass(frozen=True, slots=True)
class TranscriptCall:
    """``arguments`` is ``None`` where the model's text is no object; ``ok`` and ``value``
    are the tool's answer, ``answered`` whether there was one, ``let_through`` whether the
    tool did not turn the call away. ``by_tool``: another tool made the call by itself, and
    nobody saw the answer."""

    index: int
    message: int
    action: str
    arguments: Mapping[str, JSON] | None
    ok: bool = False
    value: JSON = None
    answered: bool = False
    let_through: bool = False
    by_tool: bool = False


class UserWords(NamedTuple):
    """A message of the user's; ``asked`` is what the agent had said to it since the last one."""

    message: int
    text: str
    asked: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """``replies`` counts what the user said after the request, where that is known;
    ``dialog`` is what both said then, and ``told`` are values that the user gave by name.
    ``now`` is the time of all of it, where somebody knows."""

    calls: tuple[TranscriptCall, ...]
    messages: int
    replies: int = 0
    dialog: str = ""
    told: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    now: str = ""
    said: tuple[UserWords, ...] = ()


def read_messages(
    messages: Sequence[Mapping[str, Any]],
    *,
    outcome: AnswerReader | None = None,
    ignored: frozenset[str] = frozenset(),
    effects: frozenset[str] = frozenset(),
) -> Transcript:
    """Calls and results of the shapes that ``message_shapes`` knows.

    A result without a matching id answers the oldest open call. ``ignored`` are
    lower-case names that are not the domain's tools, such as one that ends the dialog.
    ``effects`` are the actions that change something: a null is no success of theirs.
    """
    judge_outcome = outcome or plain_outcome
    calls: list[TranscriptCall] = []
    waiting: list[tuple[str, int]] = []
    seen = False
    said: list[UserWords] = []
    asked: list[str] = []
    for number, message in enumerate(messages):
        for one in calls_and_results(message, number):
            if isinstance(one, AskedCall):
                seen = True
                if one.name.lower() in ignored:
                    continue
                waiting.append((one.call_id, len(calls)))
                arguments = _arguments(one.arguments)
                calls.append(TranscriptCall(len(calls), number, one.name, arguments))
                continue
            if not seen:
                raise unreadable(
                    number, "a tool's result answers no call", "keep the calls as well"
                )
            position = _answered(one.call_id, waiting)
            if position is not None:
                answer = judge_outcome(read_value(one.content))
                made = calls[position]
                void = answer.value is None and made.action in effects
                calls[position] = replace(
                    made,
                    ok=answer.ok and not one.failed and not void,
                    value=plain(answer.value),
                    answered=True,
                    let_through=answer.let_through and not one.failed,
                )
        role = message.get("role")
        spoken = text_of(message.get("content")) if role in ("user", "assistant") else None
        if isinstance(spoken, str) and role == "assistant":
            asked.append(spoken)
        elif isinstance(spoken, str):
            said.append(UserWords(number, spoken, "\n".join(asked)))
            asked.clear()
    return Transcript(tuple(calls), len(messages), said=tuple(said))


def _answered(wanted: str | None, waiting: list[tuple[str, int]]) -> int | None:
    if not waiting:
        return None
    place = next((n for n, (call_id, _) in enumerate(waiting) if call_id == wanted), 0)
    return waiting.pop(place)[1]


def _arguments(written: object) -> dict[str, JSON] | None:
    if isinstance(written, str):
        written = read_value(written) if written.strip() else {}
    if written is None:
        return {}
    return plain_mapping(written) if isinstance(written, Mapping) else None


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
    """An error, or an answer that says of itself that it is none of a success."""
    if isinstance(native, Mapping):
        said = native.get("status")
        return (
            is_error(native)
            or native.get("success") is False
            or native.get("ok") is False
            or (isinstance(said, str) and said.lower() in _FAILED_STATUS)
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
