"""What a scripted model answers to Chat Completions requests, for models in other processes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from sopilot.models.wire import text
from sopilot.protocols import Message, ModelRequest, ToolCall, ToolSchema
from sopilot_lab.experiments.entrants import ControlModel

MODEL: Final = "scripted-1"


def request_from_wire(body: Mapping[str, Any]) -> ModelRequest:
    messages = [
        Message(
            message["role"],
            text(message.get("content"), "content"),
            tuple(
                ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
                for call in message.get("tool_calls") or ()
            ),
            message.get("tool_call_id"),
        )
        for message in body["messages"]
    ]
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    named = [
        Message(m.role, m.content, m.tool_calls, m.tool_call_id, names.get(m.tool_call_id or ""))
        for m in messages
    ]
    tools = [tool["function"] for tool in body.get("tools", ())]
    return ModelRequest(
        named,
        [
            ToolSchema(tool["name"], tool.get("description", ""), tool["parameters"])
            for tool in tools
        ],
    )


def scripted_answer(body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of `call-everything` in one half of the tasks and `refuse-always` in the
    other, so that some pass; a user says one sentence."""
    if not body.get("tools"):
        return {"role": "assistant", "content": "I have told you everything. ###END###"}
    request = next(text(m["content"], "") for m in body["messages"] if m["role"] == "user")
    refuses = hashlib.sha256(request.encode()).digest()[0] % 2
    control = ControlModel("refuse-always" if refuses else "call-everything")
    reply = asyncio.run(control.complete(request_from_wire(body)))
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in reply.tool_calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    return message | ({"tool_calls": calls} if calls else {})


def completion(message: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        "id": f"answer-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "system_fingerprint": "fp-1",
        "choices": [{"index": 0, "message": dict(message), "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    }
