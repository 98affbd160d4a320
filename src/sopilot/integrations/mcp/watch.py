"""What operators see of a server: is it there, is it ready, what it counts; a name a request."""

from __future__ import annotations

import asyncio
import gc
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
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
"""How long an answer about the store holds."""


_GAUGE_SECONDS = 30.0


_NEW_VALUES = 10_000
"""After which the young ones are looked through."""


@contextmanager
def settled() -> Iterator[None]:
    """What is there now stays: looking through it again and again for circles finds nothing, and
    a call leaves hardly any behind."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_NEW_VALUES, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


async def require_there(store: Store) -> None:
    """Raises where the store cannot be asked. A session that is damaged is no reason."""
    with suppress(UnknownSession):
        await store.record("")


@dataclass
class Watch:
    """One server's health. Once it is ``stopping``, it is not ready any more, and nobody need
    listen for changes."""

    store: Store
    meter: NoMetrics = field(default_factory=NoMetrics)
    sweep_seconds: float = 2.0
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _asked_at: float = -1e9
    _answer: str = ""
    _states: set[str] = field(default_factory=set)

    async def problem(self) -> str:
        """Why no request should come here now; empty if all is well."""
        if self.stopping.is_set():
            return "it is being stopped"
        if time.monotonic() - self._asked_at > _READY_SECONDS:
            try:
                await asyncio.wait_for(require_there(self.store), 5)
                self._answer = ""
            except (SopilotError, TimeoutError) as problem:
                self._answer = f"the store: {problem}"
            self._asked_at = time.monotonic()
        return self._answer

    async def keep_looking(
        self, tidy: Callable[[], Awaitable[None]], seats: Callable[[], int]
    ) -> None:
        """Until cancelled: what was left open goes on record, gauges are set."""
        counted_at = -1e9
        while True:
            try:
                for one in await sweep(self.store):
                    self.meter.count("orphans")
                    fields = {"fields": one.as_json()}
                    LOG.warning(
                        "session %s: call %s of %s was left open by an owner who is gone; "
                        "its outcome is unknown: sopilot approve settle",
                        one.session_id, one.call_id, one.action, extra=fields,
                    )  # fmt: skip
                self.meter.set("seats", seats())
                if time.monotonic() - counted_at >= _GAUGE_SECONDS:
                    await self._count()
                    counted_at = time.monotonic()
            except Exception as problem:  # whatever it is: it is looked for again
                self.meter.count("sweep_failures")
                LOG.warning("calls left open cannot be looked for: %s", problem)
            with suppress(SopilotError):
                await tidy()
            await asyncio.sleep(self.sweep_seconds)

    async def _count(self) -> None:
        now = SystemClock().now()
        found = await self.store.states()
        found.pop(JOURNAL_STATE, None)
        self._states |= found.keys()
        for state in self._states:  # the last one may have left a state
            self.meter.set("sessions", found.get(state, 0), state=state)
        self.meter.set("unknown_outcomes", len(await self.store.unresolved(now=now)))
        held = await self.store.records.actions(Wanted(outcome="held", now=now))
        waiting = [row.at for _, row in held if json.loads(row.rest).get("awaits") == "approval"]
        self.meter.set("approvals_waiting", len(waiting))
        self.meter.set("approvals_oldest_seconds", now - min(waiting) if waiting else 0)


class Observed:
    """In front of everything: health without a token, which tells nothing, and a name for every
    request, the client's own if it gives one."""

    def __init__(self, app: ASGIApp, watch: Watch) -> None:
        self._app = app
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = await health(self._watch, scope["path"])
        if answer is not None:
            await answer(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_HEADER, "")
        name = given if given.isascii() and given.isprintable() else ""
        name = name[:_LONGEST_NAME] or secrets.token_hex(8)
        statuses: list[int] = []

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_HEADER] = name
                statuses.append(message["status"])
            await send(message)

        with about(request=name), self._watch.meter.timing("request"):
            status = "unanswered"
            try:
                if scope["method"] == "GET":
                    await self._until_stopped(self._app(scope, receive, named), send, statuses)
                else:
                    await self._app(scope, receive, named)
            except Exception:
                status = "500"  # what the server in front answers then
                raise
            finally:
                status = str(statuses[0]) if statuses else status
                self._watch.meter.count("requests", status=status)

    async def _until_stopped(
        self, listening: Awaitable[None], send: Send, statuses: list[int]
    ) -> None:
        """A stream that is only listened on ends when the server does, without a word."""
        task = asyncio.ensure_future(listening)
        stopping = asyncio.ensure_future(self._watch.stopping.wait())
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


async def health(watch: Watch, path: str) -> Response | None:
    if path == "/healthz":
        return PlainTextResponse("ok\n")
    if path == "/readyz":
        problem = await watch.problem()
        if problem:
            LOG.warning("not ready: %s", problem)
        return PlainTextResponse("not ready\n" if problem else "ok\n", 503 if problem else 200)
    return None


class Admin:
    """Another address, for operators alone: metrics beside health."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = await health(self._watch, scope["path"])
        if answer is None and scope["path"] == "/metrics":
            try:
                text = self._watch.meter.text()
                answer = Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
            except SopilotError as problem:
                answer = PlainTextResponse(f"{problem}\n", 501)
        await (answer or PlainTextResponse("not found\n", 404))(scope, receive, send)
