"""A lock for tasks of several event loops: a session may be used from any of them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future


class Lock:
    """Like ``asyncio.Lock``, but for several loops. Serves tasks in the order of their requests."""

    def __init__(self) -> None:
        # A task that is dropped while it waits may end inside of another one's turn to write here.
        self._guarding = threading.RLock()
        self._held = False
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, Future[None]]] = deque()

    async def __aenter__(self) -> None:
        with self._guarding:
            if not self._held:
                self._held = True
                return
            turn: Future[None] = Future()
            self._waiting.append((asyncio.get_running_loop(), turn))
        try:
            await asyncio.wrap_future(turn)
        except BaseException:  # cancelled, or dropped with its loop
            if not turn.cancel():  # its turn has come meanwhile
                self._pass_on()
            raise

    async def __aexit__(self, *raised: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        with self._guarding:
            while self._waiting:
                loop, turn = self._waiting.popleft()
                if not loop.is_closed() and turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._held = False
