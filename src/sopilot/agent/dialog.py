"""The messages of a run, read back from its trace. Pure.

A run that goes on in another process and a lens on a recording have nothing but the trace. The
note of a request keeps the calls as the model wrote them, and a second note their answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sopilot.agent.toolbox import END_SESSION
from sopilot.handbook.model import BUILT_IN
from sopilot.messages.catalogue import worded
from sopilot.messages.scaffold import LANGUAGES, LONG_TOOL, StepTool, words
from sopilot.protocols import Message, ToolCall, ToolResult
from sopilot.trace.events import TOOL_OPERATIONS, Actor, Event
from sopilot.values.json import JSON, Fields, canonical, plain
from sopilot.values.text import visible
from sopilot.views.dialog_folding import DONE, done_pattern, without_answers
from sopilot.views.step_answers import Answers, result_text
from sopilot.views.step_tool import STEP_NAMES, did, parse_steps

MODEL_REQUEST = "model_request"
"""The note that stands for one request to the model and its reply."""
ANSWERS = "answers"
"""The note of what the calls of a reply were answered, in their order: a text, or the number of
the result that the answer quotes. ``waits``: the run ended at the last one."""
MALFORMED_CALL, MALFORMED_STEP = "malformed_call", "malformed_step"
REFRESH = "refresh"
RUN_RESUMED = "run_resumed"
BUDGET = "budget"
USER_SILENT = "user_silent"
"""The user had nothing to say to a message, and the model may end what is open."""

_STEPS = frozenset(operation.kind for operation in TOOL_OPERATIONS)
_LIFECYCLE = done_pattern("start|complete|fail")
_TAKEN = done_pattern(r"\w+")


def empty_reply(language: str) -> Message:
    return Message("system", words(language)["empty_reply"])


def user_silent(language: str, *, machine: bool) -> Message:
    ways = "`complete`, `fail`" if machine else "`end_session`"
    return Message("system", words(language)[USER_SILENT].format(ways=ways))


def not_done(problem: str, language: str) -> str:
    return words(language)["not_done"].format(
        problem=visible(worded(problem, language)).rstrip(".")
    )


def after_steps(steps: Sequence[str], text: str, language: str) -> str:
    """Say why a call wasn't made, after the steps in its arguments that were taken."""
    if not steps:
        return text
    return f"{words(language)['done'].format(did=', '.join(steps))} {text}"


@dataclass(slots=True)
class _Reply:
    """A message of the model. ``results`` and ``steps`` are on record before the answers are:
    after a crash they answer the calls."""

    calls: Sequence[ToolCall] = ()
    content: str = ""
    answers: list[str] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    waits: bool = False
    ended: bool = False


class RecordedDialog:
    """Events in, messages out. ``answers`` is the view's; ``steps``: the view has a machine."""

    def __init__(
        self,
        *,
        answers: Answers = Answers.WHOLE,
        language: str = "en",
        steps: bool = True,
        step_tool: StepTool = LONG_TOOL,
    ) -> None:
        self._style = answers
        self._language = language
        self._has_steps = steps
        self._step_tool = step_tool
        self._messages: list[Message] = []
        self._refreshed = 0  # messages that a refreshed context began with
        self._reply: _Reply | None = None
        self._calls: dict[str, ToolCall] = {}  # made by the model and not answered yet
        self._results: dict[int, str] = {}
        self._questions: set[str] = set()

    @property
    def messages(self) -> list[Message]:
        return [*self._messages, *self._replied()]

    @property
    def unanswered(self) -> str:
        """The text of the last reply, if it had no calls and the user hasn't answered it."""
        return self._reply.content if self._reply and not self._reply.calls else ""

    @property
    def since_refresh(self) -> int:
        """The number of calls answered since the context was refreshed."""
        return sum(message.role == "tool" for message in self.messages[self._refreshed :])

    def take(self, event: Event) -> None:
        kind, payload = event.kind, event.payload
        if kind == "user_said" and not self._questions:
            self._append(Message("user", _text(payload["text"])))
        elif kind == "assistant_said" and not self._questions:
            if self._reply is None or self._reply.content:
                self._append(Message("assistant", _text(payload["text"])))
            else:
                self._reply.content = _text(payload["text"])
        elif kind == "domain_call":
            call_id, action = payload["call_id"], payload["action"]
            if action in BUILT_IN:
                self._questions.add(call_id)
            if event.actor != Actor.MACHINE:
                self._calls[call_id] = ToolCall(call_id, action, _spelled(payload["arguments"]))
        elif kind == "domain_result":
            self._result(event)
        elif kind == "note":
            self._note(event.note, event.details)
        elif kind in _STEPS and event.actor == Actor.MODEL and self._reply is not None:
            self._reply.steps.append(did(kind, self._step_tool))

    def _append(self, *messages: Message) -> None:
        self._messages += [*self._replied(), *messages]
        self._reply = None

    def _result(self, event: Event) -> None:
        call_id = event.payload["call_id"]
        self._questions.discard(call_id)
        call = self._calls.pop(call_id, None)
        if call is None:
            return
        text = result_text(ToolResult(event.payload["ok"], event.payload["value"]), event.seq)
        self._results[event.seq] = text
        if self._reply is not None and len(self._reply.answers) < len(self._reply.calls):
            self._reply.results.append((call.name, text))
        else:  # of an agent whose messages aren't on record
            self._append(Message("assistant", tool_calls=(call,)), _answer(call, text))

    def _note(self, name: str, fields: Fields) -> None:
        if name == MODEL_REQUEST:
            self._append()
            self._reply = _Reply([ToolCall(*map(str, item)) for item in fields.get("calls", ())])
        elif name == ANSWERS and self._reply is not None:
            self._reply.answers = [
                self._results.get(answer, "") if isinstance(answer, int) else _text(answer)
                for answer in fields["answers"]
            ]
            self._reply.results, self._reply.steps = [], []
            self._reply.waits = bool(fields.get("waits"))
        elif name == RUN_RESUMED and self._reply is not None and self._reply.waits:
            # The run goes on with the call it waited for.
            self._reply.answers.pop()
            self._reply.waits = False
        elif name == END_SESSION and self._reply is not None:
            self._reply.ended = True
        elif name == MALFORMED_CALL and not fields.get("tool"):
            self._append(empty_reply(self._language))
        elif name == USER_SILENT:
            self._append(user_silent(self._language, machine=self._has_steps))
        elif name == REFRESH:
            self._messages = refreshed(self.messages, self._style)
            self._reply, self._refreshed = None, len(self._messages)

    def _replied(self) -> Iterable[Message]:
        """The present reply and its answers, without calls that have no answer."""
        reply = self._reply
        if reply is None:
            return ()
        results, steps = list(reply.results), list(reply.steps)
        answers = dict(enumerate(reply.answers))
        for number, call in enumerate(reply.calls[len(answers) :], len(answers)):
            answers[number] = self._recovered(call, results, steps)
        calls = tuple(
            call
            for number, call in enumerate(reply.calls)
            if answers[number] or (reply.ended and call.name == END_SESSION)
        )
        if not reply.content and not calls:
            return ()
        message = Message("assistant", reply.content, calls)
        texts = zip(reply.calls, answers.values(), strict=True)
        return (message, *(_answer(call, text) for call, text in texts if text))

    def _recovered(self, call: ToolCall, results: list[tuple[str, str]], steps: list[str]) -> str:
        """The answer to a call that was carried out just before a crash."""
        if call.name not in STEP_NAMES:
            match = next((item for item in results if item[0] == call.name), None)
            if match is None:
                return ""
            results.remove(match)
            return match[1]
        moves = parse_steps(call.arguments)
        count = min(len(moves), len(steps)) if isinstance(moves, tuple) else 0
        taken = [steps.pop(0) for _ in range(count)]
        return words(self._language)["done"].format(did=", ".join(taken)) if taken else ""


def _answer(call: ToolCall, text: str) -> Message:
    return Message("tool", text, tool_call_id=call.id, name=call.name)


_REMINDERS = [
    message
    for language in LANGUAGES
    for message in (
        empty_reply(language),
        user_silent(language, machine=True),
        user_silent(language, machine=False),
    )
]


def refreshed(dialog: Sequence[Message], answers: Answers) -> list[Message]:
    """The messages that a refreshed context begins with: the dialog, the tools' results, and the
    procedures that started and ended. The machine's state replaces the other steps where the view
    shows it; a view that never shows it keeps them all."""
    taken = _TAKEN if answers is Answers.BLIND else _LIFECYCLE
    stored = [
        replace(item, content=_brief(item, taken)) if item.role == "tool" else item
        for item in dialog
        if item.role != "system" or item not in _REMINDERS
    ]
    return without_answers(stored, lambda answer: not answer.content)


def told_in_one(before: str, text: str) -> str:
    """The answer to a call of several operations: the last one's, or how far it came."""
    if not before or text.startswith(DONE):
        return text
    return f"{before.splitlines()[0]} {text}"


def _brief(answer: Message, steps: re.Pattern[str]) -> str:
    if answer.name not in STEP_NAMES:
        return answer.content if answer.content.startswith("#") else ""
    taken = steps.match(answer.content)
    return taken[0] if taken else ""


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else "(kept beside the trace)"


def _spelled(arguments: JSON) -> str:
    return canonical(plain(arguments)).decode("utf-8", "replace")
