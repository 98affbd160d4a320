"""A person at the terminal, as the model or as the user."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from collections.abc import Callable

import click

from sopilot.agent.reference.reading import ASK, STATED
from sopilot.messages.errors import UserMistake
from sopilot.protocols import Model, ModelReply, ModelRequest, ToolCall
from sopilot.values.json import JSON
from sopilot.values.text import LINES, visible
from sopilot.views.step_tool import TOOL_NAME

PERSON = "person"

HELP = (
    "Enter makes the move in brackets. `TOOL {JSON}` calls a tool, `step {JSON}` moves the "
    "program, anything else is said to the user."
)


class PersonModel:
    """``adviser`` proposes each move; the person makes it or another move."""

    def __init__(self, adviser: Model) -> None:
        self._adviser = adviser
        self._seen = 0
        self._made = 0
        self._helped = False

    @property
    def name(self) -> str:
        return PERSON

    async def complete(self, request: ModelRequest) -> ModelReply:
        proposed = await self._adviser.complete(request)
        self._show(request)
        shown = visible(f"[{_spelled(proposed)}]", LINES)
        text = await asyncio.to_thread(
            click.prompt, f"{shown}\nmove", prompt_suffix="> ", default="", show_default=False
        )
        return self._reply(str(text).strip(), proposed, request)

    def _show(self, request: ModelRequest) -> None:
        if not self._helped:
            click.echo(HELP)
            self._helped = True
        news = [m for m in request.messages[self._seen :] if m.role in ("tool", "user")]
        for message in news:
            click.echo(visible(f"{message.role}: {message.content}", LINES))
        self._seen = len(request.messages) - 1
        if request.messages and request.messages[-1].role == "system":
            click.secho(visible(request.messages[-1].content, LINES), dim=True)

    def _reply(self, text: str, proposed: ModelReply, request: ModelRequest) -> ModelReply:
        if not text:
            return proposed
        word, _, rest = text.partition(" ")
        name = TOOL_NAME if word == "step" else word
        if name not in {tool.name for tool in request.tools}:
            return ModelReply(text)
        self._made += 1
        return ModelReply("", (ToolCall(f"person_{self._made}", name, rest.strip() or "{}"),))


def _spelled(reply: ModelReply) -> str:
    moves = []
    for call in reply.tool_calls:
        word = "step" if call.name == TOOL_NAME else call.name
        moves.append(f"{word} {_shortened(call.arguments)}")
    return "; ".join(moves) or reply.content


def _shortened(arguments: str, longest: int = 160) -> str:
    text = json.dumps(json.loads(arguments), ensure_ascii=False)
    return text if len(text) <= longest else text[:longest] + "…"


PROMPT = "you> "


ReadValue = Callable[[str, str], JSON]
"""The value that a text stands for under a name."""

_QUESTION = re.compile(re.escape(ASK) + r"((?:(?:, )?`\w+`)+)\?$", re.MULTILINE)


class HumanUser:
    """The user of a chat. An empty line or the end of the input ends the dialog. If the reference
    executor asks for a value by name, a bare answer is that value."""

    def __init__(
        self, request: str | None = None, read: ReadValue = lambda name, text: text
    ) -> None:
        self._request = request
        self._read = read

    def opening(self) -> str:
        while not self._request:
            click.echo(PROMPT, nl=False)
            line = sys.stdin.readline()
            if not line:
                raise UserMistake("the input ended before the first request")
            self._request = line.strip()
        return self._request

    async def reply(self, message: str) -> str | None:
        text = await self._line(PROMPT)
        question = _QUESTION.search(message)
        if not text or question is None or STATED.match(text):
            return text or None
        stated = []
        for name in question.group(1).replace("`", "").split(", "):
            value = self._read(name, text or await self._line(f"{name}> "))
            stated.append(f"{name}: {json.dumps(value, ensure_ascii=False)}")
            text = ""
        return "\n".join(stated)

    async def _line(self, prompt: str) -> str:
        click.echo(prompt, nl=False)
        await _typed()
        return sys.stdin.readline().strip()


async def _typed() -> None:
    """Wait for input. Meanwhile the lease is renewed, and an interrupt takes effect at once; a
    thread that waits for a line would block both."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        descriptor = sys.stdin.fileno()
        loop.add_reader(descriptor, ready.set)
    except (io.UnsupportedOperation, PermissionError, NotImplementedError):
        # Not a terminal or a pipe: reading does not block.
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
