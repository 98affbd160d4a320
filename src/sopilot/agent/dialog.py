"""The messages of a run, told again from its trace. Pure.

A run that goes on in another process and a lens on a recording have nothing but the
trace. The note of a request keeps the calls as the model wrote them; their answers
follow from the events, so that what is told again is what the model had, to the byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sopilot.agent.toolbox import END_SESSION
from sopilot.handbook.model import BUILT_IN
from sopilot.machine.approvals import CallLedger, HeldState
from sopilot.machine.machine import Machine, Outcome
from sopilot.machine.proof.agenda import Plan
from sopilot.machine.replay import replay
from sopilot.machine.state import Configuration
from sopilot.messages.catalogue import kept_message, sentence, worded
from sopilot.messages.scaffold import LANGUAGES, LONG_TOOL, StepTool, words
from sopilot.protocols import Message, ToolCall, ToolResult
from sopilot.session.session import Session
from sopilot.trace.codec import decode_operation
from sopilot.trace.events import (
    AWAITS_PROOF,
    HELD_CALL,
    OUTCOME_UNKNOWN,
    REJECTED,
    TOOL_OPERATIONS,
    Actor,
    Event,
)
from sopilot.values.json import JSON, Fields, canonical, plain
from sopilot.values.text import visible
from sopilot.views.answers import Answers, CallAnswer, CallStatus, step_answer, waiting_text
from sopilot.views.dialog_folding import DONE, done_pattern, without_answers
from sopilot.views.step_tool import STEP_NAMES, did, parse_steps

MODEL_REQUEST = "model_request"
"""The note that stands for one request to the model and its reply."""


MALFORMED_CALL, MALFORMED_STEP = "malformed_call", "malformed_step"


REFRESH = "refresh"


RUN_RESUMED = "run_resumed"


BUDGET = "budget"


MOST_KEPT = 8_000
"""Bytes of a reply's calls that its note keeps; longer ones are told in the machine's words."""


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
    """Why a call was not made, behind the steps in its arguments, which were taken."""
    if not steps:
        return text
    return f"{words(language)['done'].format(did=', '.join(steps))} {text}"


def kept_calls(session: Session, calls: Sequence[ToolCall]) -> list[JSON] | None:
    """The calls as a note keeps them, beside the trace where a handbook has secrets. ``None``
    where they are too long for it, or the session keeps values of its own choice elsewhere."""
    written: list[JSON] = [[call.id, call.name, call.arguments] for call in calls]
    limit = session.settings.inline_limit
    most = MOST_KEPT if limit is None else min(MOST_KEPT, limit // 2)
    fits = len(canonical(plain(written))) <= most
    return written if fits and not session.settings.by_reference else None


_SAID = ("user_said", "assistant_said")


class Retelling:
    """Events in, messages out. ``changes`` are the machines that took over at an event;
    ``answers`` is the view's."""

    def __init__(
        self,
        machine: Machine,
        *,
        answers: Answers = Answers.WHOLE,
        changes: Mapping[int, Machine] | None = None,
        language: str = "en",
        steps: bool = True,
        step_tool: StepTool = LONG_TOOL,
    ) -> None:
        """``steps``: the view has a machine."""
        self.configuration: Configuration = machine.initial()
        self.since_refresh = 0
        """Calls that were answered since the context was refreshed."""
        self._machine = machine
        self._telling = answers
        self._changes = changes or {}
        self._language = language
        self._steps = steps
        self._ledger = CallLedger()
        self._messages: list[Message] = []
        self._in_reply = False
        self._at: int | None = None  # where the message of the present reply stands
        self._written: list[ToolCall] = []  # its calls that were not met yet
        self._unmet = 0
        self._step: tuple[Outcome, int, list[Event]] | None = None
        self._step_tool = step_tool
        self._more = 0  # operations of the present call that may still come
        self._passed: list[str] = []  # steps in the arguments of a tool call that is not made yet
        self._told = ""  # what the ones before them were answered
        self._answers: dict[str, int] = {}  # id in the trace → where the answer stands
        self._holding = ""  # the held call about which votes may still come
        self._step_at = 0  # where the answer to the present call of the step tool stands

    @property
    def messages(self) -> list[Message]:
        self._answer_step()
        return list(self._messages)

    @property
    def unanswered(self) -> str:
        """What was said to the user last, if that was all of the reply."""
        reply = self._messages[self._at] if self._in_reply and self._at is not None else None
        return reply.content if reply and not (reply.tool_calls or self._unmet) else ""

    def take(self, event: Event) -> None:
        if event.actor != Actor.MACHINE:
            self._answer_step()
        elif self._step is not None:
            self._step[2].append(event)
        before = self.configuration
        self._machine = self._changes.get(event.seq, self._machine)
        self.configuration = replay(self._machine, [event], begin=before)
        self._ledger.fold(event)
        kind, payload = event.kind, event.payload
        if kind in _SAID and self._machine_asks(before):
            return  # the answer to the call tells both
        if kind == "user_said":
            self._messages.append(Message("user", _text(payload["text"])))
            self._in_reply, self._at = False, None
        elif kind == "assistant_said":
            self._messages.append(Message("assistant", _text(payload["text"])))
            self._at = len(self._messages) - 1
        elif kind == "domain_call" and event.actor != Actor.MACHINE:
            self._domain_call(payload)
        elif kind == "domain_result":
            self._domain_result(event)
        elif kind == "decision":
            self._decided(str(payload["call_id"]))
        elif kind == "note":
            details = payload["details"]
            self._note(event, details if isinstance(details, Mapping) else {})
        elif event.actor == Actor.MODEL and (kind in _STEPS or kind == REJECTED):
            self._stepped(before, event)

    def _machine_asks(self, configuration: Configuration) -> bool:
        return any(item.action in BUILT_IN for item in configuration.pending.values())

    # --- calls and their answers ----------------------------------------------------

    def _met(self, understood: ToolCall) -> int:
        """The next call of the reply, as the model wrote it where that was kept. Where its
        answer will stand."""
        call = self._written.pop(0) if self._written else understood
        self._unmet = max(0, self._unmet - 1)
        if self._at is None:
            self._messages.append(Message("assistant", tool_calls=(call,)))
            self._at = len(self._messages) - 1
        else:
            message = self._messages[self._at]
            self._messages[self._at] = replace(message, tool_calls=(*message.tool_calls, call))
        if not self._in_reply:
            self._at = None  # nobody noted which calls came in one message
        self._messages.append(Message("tool", "", tool_call_id=call.id, name=call.name))
        self.since_refresh += 1
        return len(self._messages) - 1

    def _answer(self, at: int | None, text: str) -> None:
        """Nowhere, if the call was forgotten with an old context."""
        if at is not None:
            self._messages[at] = replace(self._messages[at], content=text)

    def _stepped(self, before: Configuration, event: Event) -> None:
        rejected = event.kind == REJECTED
        fields: Fields = event.payload["operation"] if rejected else event.payload
        kind = fields["operation"] if rejected else event.kind
        if kind not in _STEPS:
            return
        operation = decode_operation(fields, kind)
        outcome = self._machine.step(before, operation, at=event.at, actor=event.actor)
        written = {name: fields[name] for name in operation.__dataclass_fields__ if name in fields}
        shown = {name: value for name, value in written.items() if value not in (None, "", [], {})}
        name = self._step_tool.name
        call = ToolCall(f"step_{event.seq}", name, _spelled({"operation": kind, **shown}))
        in_passing = bool(self._written) and self._written[0].name not in STEP_NAMES
        if in_passing and outcome.accepted:
            self._passed.append(did(kind, self._step_tool))
            return  # the tool call in whose arguments it stood is answered, and comes next
        at = self._met(call) if in_passing else self._met_step(call)
        self._step = outcome, at, [event]

    def _met_step(self, understood: ToolCall) -> int:
        """One call may hold several operations: the later ones are answered where it is."""
        if self._more > 0:
            self._more -= 1
            return self._step_at
        written = self._written[0] if self._written else None
        several = parse_steps(written.arguments) if written is not None else ()
        self._more = len(several) - 1 if isinstance(several, tuple) and several else 0
        self._told = ""
        self._step_at = self._met(understood)
        return self._step_at

    def _answer_step(self) -> None:
        """When it is known what the machine did by itself behind the step."""
        if self._step is None:
            return
        outcome, at, events = self._step
        self._step = None
        done = replace(outcome, configuration=self.configuration, events=tuple(events))
        text = step_answer(done, self._telling, self._language, self._step_tool)
        text, self._passed = after_steps(self._passed, text, self._language), []
        self._told = told_in_one(self._told, text)
        self._answer(at, self._told)
        if not outcome.accepted:
            self._more = 0

    def _domain_call(self, payload: Fields) -> None:
        call_id = payload["call_id"]
        # A held call that was let go is the one that was held, or the same one made again.
        again = call_id != self._holding and (not self._in_reply or self._unmet > 0)
        if call_id not in self._answers or again:
            self._passed = []
            call = ToolCall(call_id, payload["action"], _spelled(payload["arguments"]))
            self._answers[call_id] = self._met(call)

    def _domain_result(self, event: Event) -> None:
        call_id = event.payload["call_id"]
        result = ToolResult(event.payload["ok"], event.payload["value"])
        answer = CallAnswer(call_id, CallStatus.DONE, result, event.seq)
        self._answer(self._answers.get(call_id), answer.said(self._language))

    def _held(self, event: Event, details: Fields) -> None:
        call_id, about = details["call_id"], details.get("held", details["call_id"])
        standing = self._ledger.held.get(about)
        problem = kept_message(details.get("message")) or str(details.get("why", ""))
        if standing is not None:
            doubted = standing.why and standing.state is HeldState.WAITING
            problem = standing.why if doubted else waiting_text(standing)
        if about != self._holding:
            call = ToolCall(call_id, details["action"], _spelled(details.get("arguments", {})))
            self._answers[call_id] = self._met(call)
            self._passed = []
        # The votes on the call that is held have come to their end, or may still come.
        answered = call_id if about != self._holding else about
        # The guard's own text is a whole sentence.
        plan = Plan(problem=problem) if details["awaits"] == AWAITS_PROOF else None
        message = CallAnswer(call_id, CallStatus.HELD, problem=problem, plan=plan).said(
            self._language
        )
        self._answer(self._answers.get(answered), message)
        self._holding = call_id if standing is not None and about == call_id else ""

    def _decided(self, call_id: str) -> None:
        held = self._ledger.held.get(call_id)
        if call_id == self._holding and held is not None and held.state is HeldState.WAITING:
            call_answer = CallAnswer(call_id, CallStatus.HELD, problem=waiting_text(held))
            self._answer(self._answers.get(call_id), call_answer.said(self._language))

    def _resumed(self) -> None:
        """A run that waited had not answered the call it waited for: it is asked for again."""
        answer = self._answers.pop(self._holding, None)
        if answer is not None:
            waited = self._messages[answer]
            self._messages = without_answers(self._messages, lambda item: item is waited)
            self._at = None
        self._holding = ""
        self._written.clear()

    # --- notes ----------------------------------------------------------------------

    def _note(self, event: Event, details: Fields) -> None:
        name = event.payload["name"]
        if name == MODEL_REQUEST:
            self._in_reply, self._at, self._holding, self._more = True, None, "", 0
            self._passed = []
            self._written = [ToolCall(*map(str, item)) for item in details.get("calls") or ()]
            self._unmet = int(details.get("tool_calls", 0))
        elif name == HELD_CALL:
            self._held(event, details)
        elif name == OUTCOME_UNKNOWN:
            lost = sentence("broke-off", action=details["action"])
            answer = CallAnswer(details["call_id"], CallStatus.UNKNOWN, problem=lost)
            self._answer(self._answers.get(answer.call_id), answer.said(self._language))
        elif name in (MALFORMED_CALL, MALFORMED_STEP):
            if not details.get("tool"):
                self._messages.append(empty_reply(self._language))
                return
            stored = kept_message(details.get("message")) or str(details["problem"])
            problem = not_done(stored, self._language)
            if self._more > 0:
                self._answer(self._step_at, told_in_one(self._told, problem))
                self._more = 0
                return
            written = str(details.get("arguments", ""))
            at = self._met(ToolCall(f"note_{event.seq}", str(details["tool"]), written))
            self._answer(at, after_steps(self._passed, problem, self._language))
            self._passed = []
        elif name == END_SESSION:
            call = ToolCall(f"note_{event.seq}", END_SESSION, _spelled(details))
            del self._messages[self._met(call)]  # nobody answers it
        elif name == BUDGET and self._written:
            del self._messages[self._met(self._written[0])]  # asked for, not made
        elif name == USER_SILENT:
            self._messages.append(user_silent(self._language, machine=self._steps))
            self._in_reply, self._at = False, None
        elif name == RUN_RESUMED:
            self._resumed()
        elif name == REFRESH:
            self._messages = refreshed(self._messages, self._telling)
            self._at, self.since_refresh = None, 0
            self._answers.clear()


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
    """What a refreshed context begins with: what was said, what the tools returned and which
    requests were begun and ended. The machine's state stands for the rest of the bookkeeping
    where it is shown; where it never is, every step that was taken is kept."""
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
