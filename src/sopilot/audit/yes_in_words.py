"""Whether the user's yes in a transcript is one to a guarded call.

A foreign agent asks in its own words. The words are enough to doubt the yes, not to prove it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sopilot.audit.leaf_reading import touches
from sopilot.audit.state import AuditState, SessionCall
from sopilot.audit.transcript_files import UserWords
from sopilot.handbook.model import CONFIRM
from sopilot.messages.catalogue import sentence
from sopilot.values.json import JSON, as_seen, parts_of

_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_DECIMAL_COMMA = re.compile(r"[0-9]+,[0-9]{1,2}")


def doubt_of_yes(
    yes: UserWords,
    call: SessionCall,
    run: AuditState,
    earlier: Sequence[SessionCall],
    every: Sequence[SessionCall],
) -> str:
    """Why a yes may be one to something else than ``call``; empty if nothing says so. ``earlier``
    are the calls before it, ``every`` those of the transcript."""
    since = [item for item in earlier if item.message > yes.message and item.may_have_run]
    guarded = {action for program in run.programs.values() for action in program.guarded}
    if any(item.action in guarded for item in since):
        return sentence("audit.yes-to-another-call")
    if any(touches(run.facts, run.goal_actions, item.action, CONFIRM) for item in since):
        return sentence("audit.yes-before-change")
    return "" if _is_about(yes.question, call, every) else sentence("audit.own-words")


def _is_about(text: str, call: SessionCall, every: Sequence[SessionCall]) -> bool:
    """Whether a question names a value of the call, and no other one in place of it."""
    question = as_seen(text).casefold()
    numbers = {_number(token) for token in _NUMBER.findall(question)}
    values = call.arguments.items()
    if values and not any(_names(question, numbers, value) for _, value in values):
        return False
    return not any(
        _names_other(question, numbers, value, [item.arguments.get(name) for item in every])
        for name, value in values
    )


def _names(question: str, numbers: set[float], value: JSON) -> bool:
    return any(_is_in(question, numbers, part) for part in parts_of(value))


def _is_in(question: str, numbers: set[float], value: JSON) -> bool:
    if isinstance(value, str):
        text = as_seen(value).casefold()
        return bool(text) and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", question) is not None
    return isinstance(value, int | float) and not isinstance(value, bool) and value in numbers


def _names_other(question: str, numbers: set[float], value: JSON, others: Sequence[JSON]) -> bool:
    """Whether the question names another value of the same input, and not this one."""
    if _names(question, numbers, value):
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(numbers)
    return any(_names(question, numbers, other) for other in others)


def _number(text: str) -> float:
    """1,200.50 is 1200.5, and 1,5 is 1.5."""
    if _DECIMAL_COMMA.fullmatch(text):
        return float(text.replace(",", "."))
    whole, _, rest = text.replace(",", "").partition(".")
    return float(f"{whole}.{rest.replace('.', '')}")
