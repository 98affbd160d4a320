"""A recorded session as a model, for tests and debugging."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sopilot.agent.result import SessionResult
from sopilot.files.text import whole_text
from sopilot.messages.errors import RunEnded, UserMistake
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolCall
from sopilot.values.json import JSON

FORMAT = 1


class ReplayModel:
    """Returns the recorded replies in order. A run that needs more has diverged and ends."""

    def __init__(self, replies: Sequence[ModelReply], *, name: str = "replay") -> None:
        self._replies = tuple(replies)
        self._name = name
        self._next = 0

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self._next >= len(self._replies):
            raise RunEnded(f"the recording has {len(self._replies)} replies and the run needs more")
        reply = self._replies[self._next]
        self._next += 1
        return reply


def record(result: SessionResult) -> str:
    """The replies of a run as JSON, for `replay:FILE`."""
    replies = [_to_json(message) for message in result.messages if message.role == "assistant"]
    document = {"sopilot_replies": FORMAT, "session": result.session_id, "replies": replies}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def load_replay(path: str) -> ReplayModel:
    try:
        document = json.loads(whole_text(Path(path)))
    except OSError as error:
        raise UserMistake(f"the recording `{path}` cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UserMistake(f"the recording `{path}` is not JSON") from error
    if not isinstance(document, Mapping) or document.get("sopilot_replies") != FORMAT:
        raise UserMistake(f"`{path}` is not a recording of replies")
    return ReplayModel(
        [reply_from_json(reply) for reply in document.get("replies", ())], name=f"replay:{path}"
    )


def _to_json(message: Message) -> JSON:
    calls = [
        {"id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]
    return {"content": message.content, "tool_calls": calls}


def reply_from_json(value: Any) -> ModelReply:
    """Read ``{content, tool_calls: [{id, name, arguments}]}``. ``arguments`` are JSON text, as a
    model writes them, or an object."""
    try:
        calls = tuple(_call(call) for call in value.get("tool_calls", ()))
        return ModelReply(str(value.get("content", "")), calls)
    except (AttributeError, KeyError, TypeError) as error:
        raise UserMistake("a reply is {content, tool_calls: [{id, name, arguments}]}") from error


def _call(call: Mapping[str, Any]) -> ToolCall:
    value = call.get("arguments", "{}")
    arguments = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return ToolCall(str(call.get("id", "")), str(call["name"]), arguments)
