"""Liveness, readiness and metrics of a server, and an id for every request."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sopilot.integrations.logs import LOG, about
from sopilot.integrations.metrics import NoMetrics
from sopilot.messages.errors import SopilotError, UnknownSession
from sopilot.protocols import SystemClock
from sopilot.records.journal import STATE as JOURNAL_STATE
from sopilot.records.selection import Wanted
from sopilot.records.store import Store
from sopilot.session.orphans import sweep

REQUEST_HEADER = "x-request-id"
_LONGEST_NAME = 64
_READY_SECONDS = 1.0
"""How long a check of the store is reused."""
_GAUGE_SECONDS = 30.0


async def require_store(store: Store) -> None:
    """Raise if the store doesn't answer. One damaged session doesn't matter."""
    with suppress(UnknownSession):
        await store.record("")


@dataclass
class Health:
    """One server's health. Once it is ``stopping``, it is no longer ready."""

    store: Store
    meter: NoMetrics = field(default_factory=NoMetrics)
    sweep_seconds: float = 2.0
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _checked_at: float = -1e9
    _problem: str = ""
    _states: set[str] = field(default_factory=set)

    async def problem(self) -> str:
        """Why no request should come here now; empty if all is well."""
        if self.stopping.is_set():
            return "the server is stopping"
        if time.monotonic() - self._checked_at > _READY_SECONDS:
            try:
                await asyncio.wait_for(require_store(self.store), 5)
                self._problem = ""
            except (SopilotError, TimeoutError) as problem:
                self._problem = f"the store: {problem}"
            self._checked_at = time.monotonic()
        return self._problem

    async def watch(
        self, tidy: Callable[[], Awaitable[None]], live_sessions: Callable[[], int]
    ) -> None:
        """Until cancelled, record orphaned calls and set the gauges."""
        counted_at = -1e9
        while True:
            try:
                for orphan in await sweep(self.store):
                    self.meter.count("orphans")
                    LOG.warning(
                        "session %s: call %s of %s was orphaned; "
                        "its outcome is unknown: sopilot approvals resolve",
                        orphan.session_id,
                        orphan.call_id,
                        orphan.action,
                        extra={"fields": orphan.as_json()},
                    )
                self.meter.set("seats", live_sessions())
                if time.monotonic() - counted_at >= _GAUGE_SECONDS:
                    await self._count()
                    counted_at = time.monotonic()
            except Exception as problem:  # whatever it is, the next sweep tries again
                self.meter.count("sweep_failures")
                LOG.warning("the sweep for orphaned calls failed: %s", problem)
            with suppress(SopilotError):
                await tidy()
            await asyncio.sleep(self.sweep_seconds)

    async def _count(self) -> None:
        now = SystemClock().now()
        states = await self.store.states()
        states.pop(JOURNAL_STATE, None)
        self._states |= states.keys()
        for state in self._states:  # a state may have no session any more
            self.meter.set("sessions", states.get(state, 0), state=state)
        self.meter.set("unknown_outcomes", len(await self.store.unresolved(now=now)))
        held = await self.store.records.actions(Wanted(outcome="held", now=now))
        waiting = [row.at for _, row in held if json.loads(row.rest).get("awaits") == "approval"]
        self.meter.set("approvals_waiting", len(waiting))
        self.meter.set("approvals_oldest_seconds", now - min(waiting) if waiting else 0)


class ObservedApp:
    """The outermost application: health without a token, and an id for every request."""

    def __init__(self, app: ASGIApp, health: Health) -> None:
        self._app = app
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = await _answer(self._health, scope["path"])
        if answer is not None:
            await answer(scope, receive, send)
            return
        name = Headers(scope=scope).get(REQUEST_HEADER, "")
        if not (name.isascii() and name.isprintable()):
            name = ""
        name = name[:_LONGEST_NAME] or secrets.token_hex(8)
        statuses: list[int] = []

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_HEADER] = name
                statuses.append(message["status"])
            await send(message)

        with about(request=name), self._health.meter.timing("request"):
            status = "unanswered"
            try:
                if scope["method"] == "GET":
                    await self._until_stopped(self._app(scope, receive, named), send, statuses)
                else:
                    await self._app(scope, receive, named)
            except Exception:
                status = "500"  # what uvicorn answers then
                raise
            finally:
                status = str(statuses[0]) if statuses else status
                self._health.meter.count("requests", status=status)

    async def _until_stopped(
        self, listening: Awaitable[None], send: Send, statuses: list[int]
    ) -> None:
        """End a stream that is only listened on when the server stops."""
        task = asyncio.ensure_future(listening)
        stopping = asyncio.ensure_future(self._health.stopping.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        if not task.cancelled():
            task.result()
        elif statuses:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _answer(health: Health, path: str) -> Response | None:
    if path == "/healthz":
        return PlainTextResponse("ok\n")
    if path == "/readyz":
        problem = await health.problem()
        if problem:
            LOG.warning("not ready: %s", problem)
        return PlainTextResponse("not ready\n" if problem else "ok\n", 503 if problem else 200)
    return None


class AdminApp:
    """Health and metrics at an address of their own, for operators."""

    def __init__(self, health: Health) -> None:
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = await _answer(self._health, scope["path"])
        if answer is None and scope["path"] == "/metrics":
            try:
                text = self._health.meter.text()
                answer = Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
            except SopilotError as problem:
                answer = PlainTextResponse(f"{problem}\n", 501)
        await (answer or PlainTextResponse("not found\n", 404))(scope, receive, send)
