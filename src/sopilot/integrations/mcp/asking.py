"""Requests that go past the library's client, on the connection that it keeps.

For one request the client opens streams, scopes and tasks, of which nothing is left when it is
answered; that takes longer than the request itself. What a gateway asks again and again, the
tools' list and their calls, is written to the connection directly and its answer is taken before
the library sees it. Everything else that comes on the connection is the library's: notices, and
what the server asks back.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import mcp_types as types
from mcp.shared.exceptions import MCPError
from opentelemetry.baggage import get_all
from opentelemetry.propagate import inject
from opentelemetry.trace import get_current_span
from pydantic import ValidationError

from sopilot.integrations.logs import LOG
from sopilot.integrations.mcp.call_link import ProgressReport

Result = dict[str, Any]


_PROGRESS = "notifications/progress"


_CHANGED = "notifications/tools/list_changed"


class Wire(Protocol):
    """One connection to a server. ``ask`` writes the request before it returns; cancelling what
    it gives tells the server that nobody waits any more. ``off``: not this one, any more."""

    off: bool

    def ask(
        self,
        method: str,
        params: dict[str, Any],
        headers: Mapping[str, str],
        progress: ProgressReport | None,
    ) -> asyncio.Future[Result]: ...


_MOST_REPORTS = 100
"""That a client has not read yet; of more, those that are oldest are left out."""


_OWN_ID = re.compile(rb'"id"\s{0,9}:\s{0,9}"(sopilot-[0-9]{1,20})"')


_LARGEST = 1e300


_UNREADABLE = "its answer cannot be read"


@dataclass(slots=True)
class _Waiting:
    answer: asyncio.Future[Result]
    progress: ProgressReport | None
    reports: deque[tuple[float, float | None, str | None]] | None = None
    """What is being passed on, one after the other."""


class NotSent(MCPError):
    """There was no connection any more to write the request to."""

    def __init__(self) -> None:
        super().__init__(types.CONNECTION_CLOSED, "Connection closed")


class Waiting:
    """Who waits for which answer. Ids are words, so that none is ever one of the library's.
    ``changed`` is told at once that a server's tools are others: what was written before may be
    read before the next call is made."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._made = 0
        self._by_id: dict[str, _Waiting] = {}
        self._reports: set[asyncio.Task[None]] = set()
        self.closed = False

    def begin(
        self, params: dict[str, Any], progress: ProgressReport | None
    ) -> tuple[str, asyncio.Future[Result]]:
        """The request's id, and what comes of it. ``params`` get what every request carries."""
        if self.closed:
            raise NotSent
        self._made += 1
        own_id = f"sopilot-{self._made}"
        meta = dict(params.get("_meta") or ())
        if progress is not None:
            meta["progressToken"] = own_id
        if get_current_span().get_span_context().is_valid or get_all():
            inject(meta)
        if meta:
            params["_meta"] = meta
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._by_id[own_id] = _Waiting(answer, progress)
        return own_id, answer

    def end(self, own_id: str) -> None:
        self._by_id.pop(own_id, None)

    def take(self, message: object) -> bool:
        """Whether it was for one of those who wait here."""
        if type(message) is list:  # nothing that we ask is asked in one go with something else
            taken = [self.take(one) for one in message if type(one) is dict]
            return True in taken
        if type(message) is not dict:
            return False
        if "method" in message:
            return self._told(message)
        own_id = message.get("id")
        waiting = self._by_id.get(own_id) if isinstance(own_id, str) else None
        if waiting is None:
            return False
        result, error = message.get("result"), message.get("error")
        if message.get("jsonrpc") == "2.0" and type(result) is dict and error is None:
            _settle(waiting.answer, result)
            return True
        # Whatever else it is, no other answer follows.
        problem = MCPError(types.PARSE_ERROR, _UNREADABLE)
        if message.get("jsonrpc") == "2.0" and result is None:
            with suppress(ValidationError):
                said = types.ErrorData.model_validate(error, by_name=False)
                problem = MCPError.from_error_data(said)
        _settle(waiting.answer, problem)
        return True

    def spoilt(self, line: bytes) -> bool:
        """Whether something that cannot be read was meant for one of them. Ids of our own are not
        printed by chance; where it names several, nobody knows."""
        named = {one.decode() for one in _OWN_ID.findall(line)} & self._by_id.keys()
        if len(named) != 1:
            return False
        self.fail(named.pop(), MCPError(types.PARSE_ERROR, _UNREADABLE))
        return True

    def fail(self, own_id: str, problem: Exception) -> None:
        waiting = self._by_id.get(own_id)
        if waiting is not None:
            _settle(waiting.answer, problem)

    def close(self) -> None:
        """Nothing comes any more."""
        self.closed = True
        for waiting in tuple(self._by_id.values()):
            _settle(waiting.answer, MCPError(types.CONNECTION_CLOSED, "Connection closed"))

    def _told(self, message: dict[str, Any]) -> bool:
        method = message["method"]
        if method == _CHANGED and "id" not in message:
            self._changed()
            return True
        return method == _PROGRESS and self._reported(message.get("params"))

    def _reported(self, params: object) -> bool:
        if not isinstance(params, dict):
            return False
        token, progress = params.get("progressToken"), params.get("progress")
        waiting = self._by_id.get(token) if isinstance(token, str) else None
        if waiting is None:
            return False
        done = _number(progress)
        if waiting.progress is not None and done is not None:
            said = params.get("message")
            words = said if isinstance(said, str) else None
            if waiting.reports is None:
                waiting.reports = deque(maxlen=_MOST_REPORTS)
                task = asyncio.create_task(self._pass_on(waiting, waiting.progress))
                self._reports.add(task)
                task.add_done_callback(self._reports.discard)
            waiting.reports.append((done, _number(params.get("total")), words))
        return True

    async def _pass_on(self, waiting: _Waiting, report: ProgressReport) -> None:
        while waiting.reports:
            try:
                await report(*waiting.reports.popleft())
            except Exception:
                LOG.exception("progress was not passed on")
        waiting.reports = None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _LARGEST else None


def _settle(answer: asyncio.Future[Result], outcome: Result | Exception) -> None:
    if answer.done():
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
