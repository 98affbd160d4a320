"""The messages of a run, rebuilt from its trace.

Used when an interrupted run goes on and when the context is refreshed: what was
said, what the tools returned and which requests were begun and ended; the rest
of the bookkeeping is replaced by the machine's state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sopilot.runtime.agent.arms.view import Done
from sopilot.runtime.session import CallAnswer, CallStatus, Session
from sopilot.runtime.session.protocols import JSON, Message, ToolCall, ToolResult
from sopilot.runtime.vm import TOOL_NAME, canonical, plain

MODEL_REQUEST = "model_request"
"""The note that stands for one request to the model."""

_LIFECYCLE = {"start": ("goal", "arguments"), "complete": ("summary",), "fail": ("reason",)}


def rebuild(session: Session) -> list[Message]:
    values = {
        result.seq: result.value
        for process in session.configuration.processes.values()
        for result in process.results
    }
    messages: list[Message] = []
    calls: dict[str, tuple[str, JSON]] = {}
    for sealed in session.events:
        event = sealed.event
        payload = event.payload
        if event.kind == "user_said":
            messages.append(Message("user", _text(payload["text"])))
        elif event.kind == "assistant_said":
            messages.append(Message("assistant", _text(payload["text"])))
        elif event.kind == "domain_call":
            calls[payload["call_id"]] = payload["action"], payload["arguments"]
        elif event.kind == "domain_result":
            call_id = payload["call_id"]
            action, arguments = calls[call_id]
            result = ToolResult(payload["ok"], values.get(event.seq, payload["value"]))
            answer = CallAnswer(call_id, CallStatus.DONE, result, event.seq)
            _add_call(messages, ToolCall(call_id, action, _spelled(arguments)))
            messages.append(Message("tool", answer.text, tool_call_id=call_id, name=action))
        elif event.kind in _LIFECYCLE:
            fields = {name: payload[name] for name in _LIFECYCLE[event.kind]}
            call = ToolCall(
                f"step_{event.seq}",
                TOOL_NAME,
                _spelled({"operation": event.kind, **fields}),
            )
            _add_call(messages, call)
            done = f"Done: {event.kind}."
            messages.append(Message("tool", done, tool_call_id=call.id, name=TOOL_NAME))
    return messages


def awaits_user(session: Session) -> str | None:
    """The message to the user that was not answered when the run was interrupted."""
    said: str | None = None
    for sealed in session.events:
        event = sealed.event
        if event.kind == "note" and event.payload["name"] == MODEL_REQUEST:
            said = "" if event.payload["details"].get("tool_calls") == 0 else None
        elif event.kind == "assistant_said" and said is not None:
            said = _text(event.payload["text"])
        elif event.kind == "user_said":
            said = None
    return said or None


def calls_done(session: Session) -> Sequence[Done]:
    """The domain calls of the run, with or without a process."""
    arguments = {}
    found = []
    for sealed in session.events:
        payload = sealed.event.payload
        if sealed.event.kind == "domain_call":
            arguments[payload["call_id"]] = payload["arguments"]
        elif sealed.event.kind == "domain_result":
            given = arguments.get(payload["call_id"], {})
            found.append(Done(payload["action"], given, payload["ok"]))
    return found


def _add_call(messages: list[Message], call: ToolCall) -> None:
    last = messages[-1] if messages else None
    if last is not None and last.role == "assistant" and not last.tool_calls:
        messages[-1] = replace(last, tool_calls=(call,))
    else:
        messages.append(Message("assistant", tool_calls=(call,)))


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else "(kept beside the trace)"


def _spelled(arguments: JSON) -> str:
    return canonical(plain(arguments)).decode("utf-8", "replace")
