"""A folder of requests and replies as a model: ``mailbox:DIR``.

    DIR/requests/ID.json   ``about`` the run, and a Chat Completions request
    DIR/replies/ID.json    the answer, in the shape of ``replay:`` or of a completion

DIR can name fields of ``about`` in braces: ``mailbox:box/{view}/{task}`` gives every task of
every view its own folder, so that each answerer sees only its own requests.

An id is the hash of the request and its run. A run that was killed and starts again finds its
earlier replies and repeats no request. A request that timed out can still be answered later.
Files appear whole. An unusable reply is renamed to ``replies/ID.json.refused-N``, and the request
is open again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sopilot.agent.retries import ProviderError
from sopilot.files.text import whole_text, write_whole
from sopilot.messages.errors import UserMistake
from sopilot.models.replay import reply_from_json
from sopilot.models.wire import provider_says, read_reply, read_served, read_usage, usable
from sopilot.models.wire import wire_request as wire
from sopilot.protocols import ModelReply, ModelRequest

FORMAT: Final = 1
_SHORTEST_WAIT, _LONGEST_WAIT = 0.01, 0.25

_STILL_WRITING: Final = 2.0
"""Seconds for which a reply that isn't JSON may be unfinished."""


class MailboxModel:
    """This process and others can have several open requests at once."""

    def __init__(self, folder: str, *, about: Mapping[str, str] | None = None) -> None:
        if not folder:
            raise UserMistake("name the folder of the mailbox: mailbox:DIR")
        self._about = dict(about or {})
        self._folder = Path(re.sub(r"\{(\w+)\}", self._named, folder))

    @property
    def name(self) -> str:
        return f"mailbox:{self._folder.name}"

    def _named(self, field: re.Match[str]) -> str:
        if field[1] not in self._about:
            known = ", ".join(self._about) or "none"
            raise UserMistake(f"`{field[0]}` in mailbox:DIR isn't known here; known: {known}")
        return re.sub(r"[^\w.+-]+", "-", self._about[field[1]])

    async def complete(self, request: ModelRequest) -> ModelReply:
        query = wire(request, self.name)
        del query["model"]  # a folder that was moved holds the same requests
        content = {"about": self._about, "request": query}
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        key = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
        reply = self._folder / "replies" / f"{key}.json"
        open_request = self._folder / "requests" / f"{key}.json"
        if not open_request.exists():
            reply.parent.mkdir(parents=True, exist_ok=True)
            document = {"sopilot_request": FORMAT, "id": key, **content}
            write_whole(open_request, json.dumps(document, ensure_ascii=False, indent=1) + "\n")
        wait = _SHORTEST_WAIT
        while (answer := _written(reply)) is None:
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        try:
            return _reply(answer)
        except ProviderError:
            _set_aside(reply)
            raise


def _written(path: Path) -> Any:
    """Read the file; ``None`` while it is missing or unfinished."""
    try:
        text = whole_text(path)
        return json.loads(text)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError, OSError) as error:
        try:
            age = time.time() - path.stat().st_mtime
        except OSError:
            return None
        return {"error": f"it cannot be read: {error}"} if age > _STILL_WRITING else None


def _reply(answer: Any) -> ModelReply:
    if not isinstance(answer, Mapping):
        raise ProviderError("the reply is not an object", kind="wrong-schema")
    if "choices" in answer:
        return read_reply(answer)
    text = provider_says(answer)
    if text is not None:
        raise text
    try:
        reply = reply_from_json(answer)
    except UserMistake as mistake:
        raise ProviderError(str(mistake), kind="wrong-schema") from mistake
    messages = {"choices": [{"finish_reason": answer.get("finish_reason")}], **answer}
    usage, served = read_usage(answer.get("usage")), read_served(messages)
    return usable(ModelReply(reply.content, reply.tool_calls, usage, served))


def _set_aside(path: Path) -> None:
    number = 1
    while (stored := path.with_name(f"{path.name}.refused-{number}")).exists():
        number += 1
    path.replace(stored)
