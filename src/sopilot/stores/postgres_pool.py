"""A few connections to PostgreSQL, for any number of conversations, threads and event loops."""

from __future__ import annotations

import asyncio
import select
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from sopilot.messages.errors import StoreUnavailable

if TYPE_CHECKING:
    from psycopg import AsyncConnection


_IDLE = 0
"""libpq's number for a connection outside of any transaction."""


class ConnectionPool:
    """At most ``size`` connections, each used by one task at a time. An idle connection belongs to
    no event loop: the next task of any loop gets it. A task waits ``wait_seconds`` for one."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[AsyncConnection]],
        *,
        size: int,
        wait_seconds: float,
    ) -> None:
        self._connect = connect
        self.size = size
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._idle: list[AsyncConnection] = []
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self.opened = 0
        """Connections that are open now."""

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection]:
        taken = await self._take()
        try:
            yield taken
        finally:
            self._give_back(taken)

    def close(self) -> None:
        """Close idle connections. Busy ones are closed by the next close, or with the process."""
        with self._lock:
            idle, self._idle = self._idle, []
            self.opened -= len(idle)
        for item in idle:
            item.pgconn.finish()

    async def _take(self) -> AsyncConnection:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._wait_seconds
        while True:
            with self._lock:
                while self._idle:
                    result = self._idle.pop()
                    if _is_quiet(result):
                        return result
                    result.pgconn.finish()
                    self.opened -= 1
                if self.opened < self.size:
                    self.opened += 1
                    break
                free = loop.create_future()
                self._waiting.append((loop, free))
            await self._until(free, deadline - loop.time())
        try:
            return await self._connect()
        except BaseException:
            with self._lock:
                self.opened -= 1
            self._wake()
            raise

    async def _until(self, free: asyncio.Future[None], seconds: float) -> None:
        try:
            await asyncio.wait_for(free, max(0.0, seconds))
        except BaseException as problem:
            if free.done() and not free.cancelled():
                self._wake()  # the connection came too late for this task: pass it on
            if not isinstance(problem, TimeoutError):
                raise
            raise StoreUnavailable(
                f"all {self.size} connections to PostgreSQL are in use for "
                f"{self._wait_seconds:g} s; nothing was written"
            ) from None

    def _give_back(self, connection: AsyncConnection) -> None:
        whole = not connection.closed and connection.pgconn.transaction_status == _IDLE
        if not whole:
            connection.pgconn.finish()
        with self._lock:
            if whole:
                self._idle.append(connection)
            else:
                self.opened -= 1
        self._wake()

    def _wake(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    return
                loop, free = self._waiting.popleft()
            if free.done():
                continue
            try:
                loop.call_soon_threadsafe(_settle, free)
            except RuntimeError:
                continue  # its event loop is gone
            return


def _settle(free: asyncio.Future[None]) -> None:
    if not free.done():
        free.set_result(None)


def _is_quiet(connection: AsyncConnection) -> bool:
    """Whether the server has sent nothing: to an idle connection it only says goodbye."""
    if connection.closed:
        return False
    if not hasattr(select, "poll"):
        return True
    watched = select.poll()
    watched.register(connection.pgconn.socket, select.POLLIN)
    return not watched.poll(0)
