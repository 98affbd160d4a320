"""The calls that the machine itself carries out: it asks the user, in its own words and with the
exact values, and the user's next message is the answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sopilot.language.diagnostics import visible
from sopilot.language.handbook import ASK_USER, BUILT_IN, CONFIRM, PROCEDURE, values_asked_about
from sopilot.language.handbook.assent import assent
from sopilot.language.handbook.wording import fill
from sopilot.language.program.model import Act, Function, Literal, Program
from sopilot.runtime.session.protocols import JSON, ToolResult, ToolSchema
from sopilot.runtime.trace import MASK

if TYPE_CHECKING:
    from sopilot.runtime.session._session import Session


class UserAnswer(NamedTuple):
    """What the user said, and the number of that message in the trace."""

    text: str
    message: int


Asker = Callable[[str, str], Awaitable[UserAnswer | None]]
"""Shows a text to the user and waits for the next message; ``None`` where there is none. The
second argument is what it is about: an action, or a predicate."""

_DESCRIPTIONS = {
    ASK_USER: "Asks the user the handbook's own question; the answer is evidence of what was said.",
    CONFIRM: "Shows the user exactly what will be done, with these arguments, and asks for a yes.",
}
UNASKED = "nobody can ask the user here, so nothing was asked: a person must decide"


def _questions(programs: Iterable[Program]) -> Iterable[tuple[Program, Function, Act]]:
    for program in programs:
        for function in program.functions.values():
            for step in function.steps:
                if isinstance(step, Act) and step.action in BUILT_IN:
                    yield program, function, step


def user_tools(programs: Iterable[Program]) -> tuple[ToolSchema, ...]:
    """The tools of these programs that ask the user."""
    inputs: dict[str, dict[str, JSON]] = {}
    for _, _, act in _questions(programs):
        inputs.setdefault(act.action, {}).update({name: {} for name, _ in act.arguments})
    return tuple(
        ToolSchema(
            name,
            _DESCRIPTIONS[name],
            {
                "type": "object",
                "properties": {**found, _subject(name): {"type": "string"}},
                "required": [_subject(name)],
                "additionalProperties": False,
            },
        )
        for name, found in sorted(inputs.items())
    )


def _subject(name: str) -> str:
    return "action" if name == CONFIRM else "question"


def question_text(
    programs: Iterable[Program], name: str, arguments: Mapping[str, JSON]
) -> str | None:
    """What the user is shown; ``None`` for something that no program asks."""
    for program, function, act in _questions(programs):
        fixed = dict(act.arguments)
        subject = {key: term.value for key, term in act.arguments if isinstance(term, Literal)}
        if act.action != name or not arguments.keys() <= fixed.keys():
            continue
        # Two procedures may tell the user of one action in different words.
        which = (_subject(name), PROCEDURE) if name == CONFIRM else (_subject(name),)
        if any(arguments.get(key) != subject.get(key) for key in which):
            continue
        given = values_asked_about(name, arguments)
        hidden = {key: MASK for key in given if key in program.secrets}
        values = {key: visible(_told(one), keep="") for key, one in given.items()} | hidden
        said = fill(function.question, {**program.constants, **values})
        if name == ASK_USER:
            return said
        # Quoted: no value can pass for the machine's own words.
        quoted = {key: visible(_quoted(one), keep="") for key, one in given.items()} | hidden
        shown = ", ".join(f"{key}: {one}" for key, one in quoted.items())
        return f"{said}\n{arguments['action']} ({shown})\nyes / no?".strip()
    return None


def _told(value: JSON) -> str:
    return value if isinstance(value, str) else _quoted(value)


def _quoted(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)


def _answers(session: Session, message: int, asked: int) -> bool:
    """Whether it is a message of the user's since then that answers no other question."""
    said = [one.event for one in session.events[asked + 1 :] if one.event.kind == "user_said"]
    taken = {
        answered.value.get("message")
        for name in BUILT_IN
        for answered in session.configuration.answers.get(name, {}).values()
        if isinstance(answered.value, dict)
    }
    return message not in taken and any(one.seq == message for one in said)


async def ask(
    session: Session, call_id: str, name: str, arguments: Mapping[str, JSON]
) -> ToolResult:
    asked = session.configuration.pending[call_id].seq
    text = question_text(session.programs.programs.values(), name, arguments)
    if text is None:
        return ToolResult(False, {"error": "the handbook asks no such question"})
    if session.asker is None:
        return ToolResult(False, {"error": UNASKED})
    answer = await session.asker(text, str(arguments[_subject(name)]))
    if answer is None:
        return ToolResult(False, {"error": "the user did not answer"})
    if not _answers(session, answer.message, asked):
        return ToolResult(False, {"error": "that message is no answer to this question: ask again"})
    said = {"said": answer.text, "answer": assent(answer.text, text), "message": answer.message}
    return ToolResult(True, {"asked": text, **said})
