"""Shorten the dialog that is sent with every request. The trace keeps everything.

Two folds, both functions of the dialog alone:

- Accepted bookkeeping of frames (calls, returns, branches) is never sent back: the frame
  message shows where it led. This removes nothing that was sent before, so the dialog only
  grows, and prefix caches hold.
- A dialog that outgrows ``HIGH`` characters loses its oldest part, as one block,
  down to ``LOW``; a note of bounded size stands in for it. Between two such
  folds the dialog only grows again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from sopilot.messages.scaffold import LANGUAGES, words
from sopilot.protocols import Message
from sopilot.values.text import quote_value
from sopilot.views.step_tool import STEP_NAMES

HIGH: Final = 24_000
LOW: Final = 8_000
NOTED: Final = 4_000
"""Characters of the note that stands for what was folded."""
LONGEST_NOTED: Final = 1_000
"""Characters of one value in it."""
_AROUND_MESSAGE: Final = 40
_AROUND_CALL: Final = 120
"""Characters that a provider's format adds."""
SAID: Final = "user: "
DONE: Final = tuple(table["done"].partition("{")[0] for table in LANGUAGES.values())
"""How the answer to an accepted step begins, in whatever language."""


def done_pattern(operations: str) -> re.Pattern[str]:
    """The answer to an accepted step of these operations, in whatever language."""
    reply = (re.escape(table["done"]).replace(r"\{did\}", "\0") for table in LANGUAGES.values())
    return re.compile("|".join(item.replace("\0", f"(?:{operations})") for item in reply))


_FRAME_STEP = done_pattern("call|return|verdict|select_branch|option")
Exchange = list[Message]
"""A message, with the answers to its calls."""


def fold_dialog(dialog: Sequence[Message], language: str = "en") -> Sequence[Message]:
    return fold_blocks(without_frame_steps(dialog), language=language)


def without_frame_steps(dialog: Sequence[Message]) -> list[Message]:
    """The dialog without accepted bookkeeping inside a process."""
    return without_answers(
        dialog, lambda item: item.name in STEP_NAMES and _FRAME_STEP.match(item.content) is not None
    )


def without_answers(dialog: Sequence[Message], dropped: Callable[[Message], bool]) -> list[Message]:
    """The dialog without these answers, and without the calls that they answer."""
    sent: list[Message] = []
    for first, *answers in exchanges(dialog):
        done = {answer.tool_call_id for answer in answers if dropped(answer)}
        calls = tuple(call for call in first.tool_calls if call.id not in done)
        if calls or first.content or not done:
            sent.append(replace(first, tool_calls=calls) if done else first)
        sent += [answer for answer in answers if answer.tool_call_id not in done]
    return sent


def fold_blocks(
    dialog: Sequence[Message], *, high: int = HIGH, low: int = LOW, language: str = "en"
) -> Sequence[Message]:
    """The dialog within ``high`` characters and a note, if a single exchange fits at all."""
    parts = exchanges(dialog)
    sizes = [sum(map(_size, part)) for part in parts]
    begin, total = 0, 0
    for index, size in enumerate(sizes):
        total += size
        if total > high:
            while begin < index and total > low:
                total -= sizes[begin]
                begin += 1
    if begin == 0:
        return dialog
    stored = [message for part in parts[begin:] for message in part]
    return [Message("system", folded_note(parts[:begin], language)), *stored]


def folded_note(parts: Sequence[Exchange], language: str = "en") -> str:
    """The newest words of the user and the newest results, each as one line of JSON."""
    first = words(language)["folded"]
    lines: list[str] = []
    left = NOTED
    seen: set[str] = set()
    for part in reversed(parts):
        for line in reversed(list(_noted(part))):
            if line in seen:
                continue
            left -= len(line) + 1
            if left < 0:
                return "\n".join([first, *reversed(lines)])
            seen.add(line)
            lines.append(line)
    return "\n".join([first, *reversed(lines)])


def is_note(text: str) -> bool:
    return any(text.startswith(table["folded"]) for table in LANGUAGES.values())


def read_note(text: str) -> list[tuple[str, str]]:
    """``("user", words)`` and ``(tool's name, its answer)`` of a note, as far as it has them."""
    results = []
    for line in text.splitlines()[1:]:
        if line.startswith(SAID):
            results.append(("user", str(json.loads(line.removeprefix(SAID)))))
        else:
            name, _, answer = line.partition(" ")
            results.append((name, answer))
    return results


def exchanges(dialog: Iterable[Message]) -> list[Exchange]:
    parts: list[Exchange] = []
    for message in dialog:
        if message.role == "tool" and parts:
            parts[-1].append(message)
        else:
            parts.append([message])
    return parts


def _noted(part: Exchange) -> Iterable[str]:
    for message in part:
        if message.role == "user":
            yield SAID + quote_value(message.content, LONGEST_NOTED)
            continue
        is_result = message.role == "tool" and message.name not in STEP_NAMES
        if is_result and len(message.content) <= LONGEST_NOTED:
            yield f"{message.name} {message.content}"


def _size(message: Message) -> int:
    calls = sum(_AROUND_CALL + len(c.name) + len(c.arguments) for c in message.tool_calls)
    return _AROUND_MESSAGE + len(message.content) + calls
