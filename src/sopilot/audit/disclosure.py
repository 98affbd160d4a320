"""Whether a customer was told what a predicate keeps from them (``customer_message``).

Deterministic, and therefore narrow: the predicate's own sentence, or a text or number that the
verifier answered and the customer had not said. Other words for the same thing are not found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from sopilot.audit.state import AuditState, ProcessView, UnmetCheck
from sopilot.messages.catalogue import sentence
from sopilot.messages.diagnostic import Severity
from sopilot.trace.events import Event
from sopilot.trace.redaction import has_withheld
from sopilot.values.json import JSON

_SHORTEST = 4
"""Characters of an answer that count as told: "no" and 12 stand in any message."""


def judge_told(run: AuditState, events: Sequence[Event]) -> None:
    stored = [
        (process, item)
        for process in run.processes.values()
        for item in process.unmet
        if item.customer_message
    ]
    for process, check in stored:
        _judge(run, events, process, check)


def _judge(
    run: AuditState, events: Sequence[Event], process: ProcessView, check: UnmetCheck
) -> None:
    since = min((*check.evidence, check.producer or 0))
    heard = " ".join(
        _plain(event.payload.get("text")) for event in events if event.kind == "user_said"
    )
    sentences = [_plain(text).rstrip(".。") for text in (check.sentence, check.actual) if text]
    answers = [
        session_call
        for session_call in run.session_calls
        if session_call.answered in check.evidence
    ]
    supplied = [_plain(text) for answer in answers for text in _texts(answer.arguments)]
    values = [
        plain
        for answer in answers
        for text in _texts(answer.value)
        if len(plain := _plain(text)) >= _SHORTEST and plain not in heard and plain not in supplied
    ]
    own = _plain(check.customer_message)
    for event in events:
        if event.seq <= since or event.kind != "assistant_said":
            continue
        if has_withheld(event.payload.get("text")):
            run.leave_unjudged(event, sentence("audit.gives-away", predicate=check.predicate))
        reply = _plain(event.payload.get("text"))
        whole = any(item in reply and item not in own for item in sentences)
        beside = reply.replace(own, " ")
        if whole or any(_is_word(value, beside) for value in values):
            code = "audit.told-sentence" if whole else "audit.told-answer"
            run.find(
                "tipped-off",
                event,
                sentence(code, predicate=check.predicate, message=check.customer_message),
                process=process,
                predicate=check.predicate,
                sentence=check.sentence,
                # A word of an answer may stand in a message for another reason.
                severity=Severity.WARNING if whole else Severity.NOTE,
            )


def _is_word(text: str, reply: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", reply) is not None


def _plain(text: JSON) -> str:
    return " ".join(text.casefold().split()) if isinstance(text, str) else ""


def _texts(value: JSON) -> Iterator[str]:
    """Every text and number in an answer; truths are told by the sentence alone."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value
    elif value is not None and not isinstance(value, bool):
        yield json.dumps(value)
