"""Requests that go past the library's client, on the connection that it keeps.

For one request the client opens streams, scopes and tasks, of which nothing is left when it is
answered; that takes longer than the request itself. What a gateway asks again and again, the
tools' list and their calls, is written to the connection directly and its answer is taken before
the library sees it. Everything else that comes on the connection is the library's: notices, and
what the server asks back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import mcp_types as types
from mcp.shared.exceptions import MCPError
from opentelemetry.baggage import get_all
from opentelemetry.propagate import inject
from opentelemetry.trace import get_current_span
from pydantic import ValidationError

from sopilot.adapters.logs import LOG
from sopilot.doors.mcp._call_link import ProgressReport

Result = dict[str, Any]
_PROGRESS = "notifications/progress"


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


@dataclass(slots=True)
class _Waiting:
    answer: asyncio.Future[Result]
    progress: ProgressReport | None


class Waiting:
    """Who waits for which answer. Ids are words, so that none is ever one of the library's."""

    def __init__(self) -> None:
        self._made = 0
        self._by_id: dict[str, _Waiting] = {}
        self._reports: set[asyncio.Task[None]] = set()
        self.closed = False

    def begin(
        self, params: dict[str, Any], progress: ProgressReport | None
    ) -> tuple[str, asyncio.Future[Result]]:
        """The request's id, and what comes of it. ``params`` get what every request carries."""
        if self.closed:
            raise _closed()
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
        if type(message) is not dict:
            return False
        if "method" in message:
            return message["method"] == _PROGRESS and self._reported(message.get("params"))
        own_id = message.get("id")
        waiting = self._by_id.get(own_id) if isinstance(own_id, str) else None
        if waiting is None or message.get("jsonrpc") != "2.0":
            return False
        result, error = message.get("result"), message.get("error")
        if type(result) is dict and error is None:
            _settle(waiting.answer, result)
            return True
        if result is not None:
            return False
        try:
            said = types.ErrorData.model_validate(error, by_name=False)
        except ValidationError:
            return False
        _settle(waiting.answer, MCPError.from_error_data(said))
        return True

    def fail(self, own_id: str, problem: Exception) -> None:
        waiting = self._by_id.get(own_id)
        if waiting is not None:
            _settle(waiting.answer, problem)

    def close(self) -> None:
        """Nothing comes any more."""
        self.closed = True
        for waiting in tuple(self._by_id.values()):
            _settle(waiting.answer, _closed())

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
            report = self._report(waiting.progress, done, _number(params.get("total")), words)
            task = asyncio.create_task(report)
            self._reports.add(task)
            task.add_done_callback(self._reports.discard)
        return True

    async def _report(
        self, report: ProgressReport, progress: float, total: float | None, said: str | None
    ) -> None:
        try:
            await report(progress, total, said)
        except Exception:
            LOG.exception("progress was not passed on")


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None


def _settle(answer: asyncio.Future[Result], outcome: Result | Exception) -> None:
    if answer.done():
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def _closed() -> MCPError:
    return MCPError(types.CONNECTION_CLOSED, "Connection closed")
