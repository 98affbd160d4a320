"""Calls and results as different interfaces write them."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest
from audit_desk import codes
from test_foreign_transcripts import BOOK

from sopilot.audit.transcript_files import read_messages
from sopilot.audit.transcripts import audit_transcript
from sopilot.handbook.expressions import judge
from sopilot.messages.errors import UserMistake

STEPS: list[tuple[str, dict[str, Any], Any]] = [
    ("login", {"user": "ann", "password": "x"}, True),
    ("read_balance", {"user": "ann"}, {"balance": 1}),
    ("pay", {"user": "ann", "amount": 5}, {"done": True}),
]


def legacy(name: str, arguments: Any, answer: Any, _: str) -> list[dict[str, Any]]:
    asked = {"name": name, "arguments": json.dumps(arguments)}
    return [
        {"role": "assistant", "content": None, "function_call": asked},
        {"role": "function", "name": name, "content": json.dumps(answer)},
    ]


def blocks(name: str, arguments: Any, answer: Any, number: str) -> list[dict[str, Any]]:
    asked = {"type": "tool_use", "id": number, "name": name, "input": arguments}
    text = [{"type": "text", "text": json.dumps(answer)}]
    given = {"type": "tool_result", "tool_use_id": number, "content": text}
    return [
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, asked]},
        {"role": "user", "content": [given]},
    ]


def items(name: str, arguments: Any, answer: Any, number: str) -> list[dict[str, Any]]:
    asked = {"call_id": number, "name": name, "arguments": json.dumps(arguments)}
    return [
        {"type": "function_call", "id": "fc", **asked},
        {"type": "function_call_output", "call_id": number, "output": json.dumps(answer)},
    ]


def parts(name: str, arguments: Any, answer: Any, number: str) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    text = [{"type": "text", "text": json.dumps(answer)}]
    return [
        {"role": "assistant", "tool_calls": [{"id": number, "function": function}]},
        {"role": "tool", "tool_call_id": number, "content": text},
    ]


@pytest.mark.parametrize("shape", [legacy, blocks, items, parts])
def test_every_shape_says_the_same(shape: Any) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "pay my bill"}]
    for number, step in enumerate(STEPS):
        messages += shape(*step, f"c{number}")
    transcript = read_messages(messages)
    assert [(one.action, one.arguments, one.value) for one in transcript.calls] == STEPS
    report = audit_transcript(BOOK, transcript, goal="pay", judge=judge)
    assert codes(report) == ["executed-against-condition"]


def test_a_result_block_that_is_an_error_is_a_failure() -> None:
    asked, given = blocks("login", {"user": "ann"}, "no such user", "c0")
    given["content"][0]["is_error"] = True
    (call,) = read_messages([asked, given]).calls
    assert not call.awaited
    assert not call.ok


def test_a_call_without_arguments_has_none_and_tools_of_the_dialog_are_left_out() -> None:
    messages = parts("login", None, True, "c0") + parts("hang_up", {}, True, "c1")
    messages[0]["tool_calls"][0]["function"]["arguments"] = None
    del messages[-1]["tool_call_id"]
    again = {"role": "tool", "name": "Hang_Up", "content": "bye"}
    transcript = read_messages([*messages, again], ignored=frozenset({"hang_up"}))
    assert [(call.action, call.arguments, call.ok) for call in transcript.calls] == [
        ("login", {}, True)
    ]


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        ("2026-01-02T10:00:00", "2026-01-02T09:00:00", True),
        ("2026-01-02T10:00:00+02:00", "2026-01-02T09:00:00Z", False),
        ("2026-01-02T09:00:00", 1_767_344_399, True),
        ("2026-01-02T09:00:00", 1_767_344_400, False),
        ("yesterday", "2026-01-02T09:00:00", False),
        ("2026-01-02T09:00:00", "soon", False),
        (True, 0, False),
    ],
)
def test_messages_out_of_order_by_their_times_are_refused(
    first: object, second: object, refused: bool
) -> None:
    """A time without a zone is UTC; a time that can't be read says nothing."""
    said = [
        {"role": "user", "content": "pay", "timestamp": first},
        {"role": "assistant", "content": "I look.", "timestamp": second},
    ]
    with pytest.raises(UserMistake) if refused else nullcontext():
        read_messages(said)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "toolCalls": [{"name": "pay"}]},
        {"role": "assistant", "tool_call": {"name": "pay"}},
        {"role": "assistant", "content": [{"type": "server_tool_use", "name": "pay"}]},
        {"role": "assistant", "content": [{"toolUse": {"name": "pay"}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "pay"}}]},
        {"type": "custom_tool_call", "name": "pay"},
        {"type": "mcp_call", "name": "pay"},
        {"role": "tool", "content": "paid"},
    ],
)
def test_what_looks_like_a_call_is_read_or_refused(message: dict[str, Any]) -> None:
    with pytest.raises(UserMistake, match="message 1") as refused:
        read_messages([{"role": "user", "content": "pay"}, message])
    assert refused.value.diagnostics[0].help


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("pay", "message 0: a message must be an object"),
        ({"tool_calls": {"name": "pay"}}, "`tool_calls` must be a list"),
        ({"tool_calls": ["pay"]}, "must name its function"),
        ({"tool_calls": [{"id": 1}]}, "must name its function"),
        ({"function_call": {"name": 5}}, "must name its function"),
        ({"type": "tool_use"}, "must name its function"),
        ({"toolCalls": [1], "function-output": 2}, "`toolCalls` looks like a tool call"),
        ({"type": "web_call", "toolCalls": [1]}, "`web_call` looks like a tool call"),
        ({"content": [{"type": "x_call_output"}]}, "`x_call_output` looks like a tool call"),
    ],
)
def test_what_cannot_be_read_is_said(message: object, says: str) -> None:
    with pytest.raises(UserMistake) as refused:
        read_messages([message])  # type: ignore[list-item]  # any shape may come
    assert says in str(refused.value)
