"""The dialog of a run as its model had it before a request, told again from the trace. Pure.

Unlike the loop's own rebuilding, which leaves bookkeeping out, this keeps every
call, refusal and answer that stood in the model's context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sopilot.runtime.session import CallAnswer, CallStatus
from sopilot.runtime.session.protocols import JSON, Message, ToolCall, ToolResult
from sopilot.runtime.trace import replay
from sopilot.runtime.vm import TOOL_NAME, Event, Machine, answer_text, canonical, plain
from sopilot.runtime.vm.events import REJECTED, Actor
from sopilot.runtime.vm.operation_codec import decode_operation
from sopilot.runtime.vm.operations import TOOL_OPERATIONS

STEPS = frozenset(operation.kind for operation in TOOL_OPERATIONS)
_LIFECYCLE = frozenset({"start", "complete", "fail"})
_MALFORMED = frozenset({"malformed_step", "malformed_call"})


def retell(machine: Machine, events: Sequence[Event]) -> list[Message]:
    told = _Told()
    calls: dict[str, tuple[str, JSON]] = {}
    for index, event in enumerate(events):
        payload = event.payload
        if event.kind == "user_said":
            told.add(Message("user", _text(payload["text"])))
        elif event.kind == "assistant_said":
            told.add(Message("assistant", _text(payload["text"])))
        elif event.kind == "domain_call":
            calls[payload["call_id"]] = payload["action"], payload["arguments"]
        elif event.kind == "domain_result":
            call_id = payload["call_id"]
            action, arguments = calls[call_id]
            result = ToolResult(payload["ok"], payload["value"])
            answer = CallAnswer(call_id, CallStatus.DONE, result, event.seq)
            told.call(ToolCall(call_id, action, _spelled(arguments)), answer.text)
        elif event.actor == Actor.MODEL and (event.kind in STEPS or event.kind == REJECTED):
            _bookkeeping(told, machine, events[:index], event)
        elif event.kind == "note" and payload["name"] in _MALFORMED:
            details = payload["details"]
            call = ToolCall(f"note_{event.seq}", details["tool"], details.get("arguments", ""))
            told.call(call, f"Not done: {details['problem']}.", bookkeeping=True)
        elif event.kind == "note" and payload["name"] == "refresh":
            told.refresh()
    return told.messages


def _bookkeeping(told: _Told, machine: Machine, before: Sequence[Event], event: Event) -> None:
    rejected = event.kind == REJECTED
    fields: Mapping[str, JSON] = event.payload["operation"] if rejected else event.payload
    kind = fields["operation"] if rejected else event.kind
    if kind not in STEPS:
        return
    operation = decode_operation(fields, kind)
    outcome = machine.step(replay(machine, before), operation, at=event.at, actor=event.actor)
    written = {name: fields[name] for name in operation.__dataclass_fields__ if name in fields}
    shown = {name: value for name, value in written.items() if value not in (None, "", [], {})}
    call = ToolCall(f"step_{event.seq}", TOOL_NAME, _spelled({"operation": kind, **shown}))
    told.call(call, answer_text(outcome), bookkeeping=kind not in _LIFECYCLE or rejected)


class _Told:
    """Messages, each with whether a refresh of the context forgets it."""

    def __init__(self) -> None:
        self._kept: list[tuple[Message, bool]] = []

    @property
    def messages(self) -> list[Message]:
        return [message for message, _ in self._kept]

    def add(self, message: Message, *, bookkeeping: bool = False) -> None:
        self._kept.append((message, bookkeeping))

    def call(self, call: ToolCall, answer: str, *, bookkeeping: bool = False) -> None:
        self.add(Message("assistant", tool_calls=(call,)), bookkeeping=bookkeeping)
        done = Message("tool", answer, tool_call_id=call.id, name=call.name)
        self.add(done, bookkeeping=bookkeeping)

    def refresh(self) -> None:
        self._kept = [entry for entry in self._kept if not entry[1]]


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else "(kept beside the trace)"


def _spelled(arguments: JSON) -> str:
    return canonical(plain(arguments)).decode("utf-8", "replace")
