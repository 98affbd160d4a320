"""Questions of the runtime to the user: in the handbook's words, with the exact values. The user's
next message is the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from sopilot.handbook.model import ASK_USER, BUILT_IN, CONFIRM, PROCEDURE, values_asked_about
from sopilot.handbook.requirements import Constant
from sopilot.handbook.wording import fill
from sopilot.handbook.yes_or_no import reply_to
from sopilot.messages.errors import RunEnded
from sopilot.program.model import Program
from sopilot.protocols import ToolResult
from sopilot.trace.redaction import MASK
from sopilot.values.json import JSON
from sopilot.values.text import visible
from sopilot.views.questions import json_text, plain_text, question_steps, subject_name

if TYPE_CHECKING:
    from sopilot.session.session import Session


class UserAnswer(NamedTuple):
    """The user's words, and the number of that message in the trace."""

    text: str
    message: int


class RunPaused(RunEnded):
    """The run stops and can continue later: a question to the user stays open until the session is
    resumed."""


class CannotAsk(Exception):
    """The interface can't show the user a question, so none was asked."""


Asker = Callable[[str, str, bool], Awaitable[UserAnswer | None]]
"""Show a text to the user and wait for the next message; ``None`` if there is none. The second
argument is the subject: an action or a predicate. The third is whether only a yes or a no answers
it: offer these two where the interface can. Raises ``CannotAsk``."""


_REPLY: ContextVar[tuple[str, Asker] | None] = ContextVar("sopilot_reply", default=None)
"""A session's id, and the asker of its questions in the call under way."""


@contextmanager
def answering(session: Session, asker: Asker) -> Iterator[None]:
    """Let ``asker`` answer the questions of this call alone, not of others at the same time."""
    token = _REPLY.set((session.id, asker))
    try:
        yield
    finally:
        _REPLY.reset(token)


def asker_here(session: Session) -> Asker | None:
    """The asker for the call under way."""
    reply = _REPLY.get()
    return reply[1] if reply is not None and reply[0] == session.id else session.asker


class Question(NamedTuple):
    """The text for the user. Only a yes or a no answers a ``closed`` question."""

    text: str
    closed: bool


MOST_ATTEMPTS = 3
"""How often a closed question is put until the reply is a yes or a no."""
AGAIN = "Please answer with just yes or no (是 / 否)."
UNASKED = "the user can't be asked here, so nothing was asked: a person must decide"

WAITING = (
    "waiting: this client can't show the user a question, so the user wasn't asked; a person "
    "decides with `sopilot approvals list {session}`"
)


def find_question(
    programs: Iterable[Program], name: str, arguments: Mapping[str, JSON]
) -> Question | None:
    """The question of a program about these arguments; ``None`` if no program asks it."""
    for program, function, act in question_steps(programs):
        fixed = dict(act.arguments)
        subject = {key: term.value for key, term in act.arguments if isinstance(term, Constant)}
        if act.action != name or not arguments.keys() <= fixed.keys():
            continue
        # Two procedures may tell the user of one action in different words.
        which = (subject_name(name), PROCEDURE) if name == CONFIRM else (subject_name(name),)
        if any(arguments.get(key) != subject.get(key) for key in which):
            continue
        value = values_asked_about(name, arguments)
        hidden = {key: MASK for key in value if key in program.secrets}
        values = {key: visible(plain_text(item), keep="") for key, item in value.items()} | hidden
        reply = fill(function.question, {**values, **program.constants})
        if name == ASK_USER:
            return Question(reply, closed="said" not in (function.verdict or "said"))
        # Quoted: no value can pass for the machine's own words.
        quoted = {key: visible(json_text(item), keep="") for key, item in value.items()} | hidden
        shown = ", ".join(f"{key}: {item}" for key, item in quoted.items())
        text = f"{reply}\n{arguments['action']} ({shown})\nyes / no?".strip()
        return Question(text, closed=True)
    return None


def _answers(session: Session, message: int, number: int) -> bool:
    """Whether the user has sent this message since event ``number``, and it answers no other
    question."""
    events = [
        event.event for event in session.events[number + 1 :] if event.event.kind == "user_said"
    ]
    taken = {
        answered.value.get("message")
        for name in BUILT_IN
        for answered in session.configuration.answers.get(name, {}).values()
        if isinstance(answered.value, dict)
    }
    return message not in taken and any(item.seq == message for item in events)


async def ask(
    session: Session, call_id: str, name: str, arguments: Mapping[str, JSON]
) -> ToolResult:
    request = session.configuration.pending[call_id].call_seq
    question = find_question(session.programs.programs.values(), name, arguments)
    if question is None:
        return ToolResult(False, {"error": "the handbook doesn't ask this question"})
    asker = asker_here(session)
    if asker is None:
        return ToolResult(False, {"error": UNASKED})
    text = question.text
    for _ in range(MOST_ATTEMPTS):
        try:
            answer = await asker(text, str(arguments[subject_name(name)]), question.closed)
        except CannotAsk:
            return ToolResult(False, {"error": WAITING.format(session=session.id)})
        if answer is None:
            return ToolResult(False, {"error": "the user did not answer"})
        if not _answers(session, answer.message, request):
            problem = "that message doesn't answer this question: ask again"
            return ToolResult(False, {"error": problem})
        meaning = reply_to(name, answer.text)
        value = {"asked": text, "said": answer.text, "answer": meaning, "message": answer.message}
        if meaning is not None or not question.closed:
            break
        text = f"{question.text}\n{AGAIN}"
    return ToolResult(True, value)
