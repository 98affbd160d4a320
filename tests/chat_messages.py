"""Transcripts as OpenAI's chat messages, written as steps that a person can read."""

from __future__ import annotations

import json
from typing import Any

Message = dict[str, Any]
Made = tuple[str, Any, Any]
"""A call: its tool, its arguments, its answer."""
Step = Made | Message | str


def wanted(name: str, arguments: Any, call_id: str | None) -> Message:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call: Message = {"type": "function", "function": {"name": name, "arguments": text}}
    return call if call_id is None else {**call, "id": call_id}


def result(call_id: str, answer: Any, **more: Any) -> Message:
    content = answer if isinstance(answer, str) else json.dumps(answer)
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def agent(*calls: Message, says: str | None = None) -> Message:
    return {"role": "assistant", "content": says, **({"tool_calls": [*calls]} if calls else {})}


def messages(*steps: Step) -> list[Message]:
    """A step is a call with its answer, the user's words, the agent's behind `> `, or a message."""
    made: list[Message] = []
    for number, step in enumerate(steps):
        if isinstance(step, dict):
            made.append(step)
        elif isinstance(step, str):
            role = "assistant" if step.startswith("> ") else "user"
            made.append({"role": role, "content": step.removeprefix("> ")})
        else:
            name, arguments, answer = step
            made += [agent(wanted(name, arguments, f"s{number}")), result(f"s{number}", answer)]
    return made
