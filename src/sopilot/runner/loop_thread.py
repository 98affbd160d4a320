"""An event loop in a thread of its own, for agents that are not asynchronous."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from sopilot.messages.errors import mistake

Answer = TypeVar("Answer")

_STOPS_A_LOOP = (StopIteration, SystemExit, KeyboardInterrupt)
"""The event loop ends at these, or the future that it waits for never does."""


class Caller:
    """The thread that waits. What it alone can do (its tools, with its own context) it does
    while it waits, so that no pool of threads stands between."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._stopped_by: BaseException | None = None

    async def run(self, function: Callable[[], Answer]) -> Answer:
        """In the waiting thread; the result, or what it raised. An exception that would stop the
        loop is a ``RuntimeError`` here; ``wait`` raises it in the end."""
        done: Future[Answer] = Future()

        def work() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                done.set_result(function())
            except _STOPS_A_LOOP as problem:
                self._stopped_by = problem
                done.set_exception(RuntimeError(f"it raised {type(problem).__name__}"))
            except BaseException as problem:
                done.set_exception(problem)

        self._work.put(work)
        return await asyncio.wrap_future(done)

    def wait(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        running.add_done_callback(lambda _: self._work.put(None))
        while (request := self._work.get()) is not None:
            request()
        if self._stopped_by is not None:
            raise self._stopped_by
        return running.result()


_STARTING = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def caller() -> Caller:
    """One loop serves all hooks of the process, however many threads call."""
    global _loop
    with _STARTING:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="sopilot-hooks", daemon=True).start()
    if asyncio._get_running_loop() is _loop:
        message = "an asynchronous function would wait here for the event loop that runs it"
        raise mistake("waits-for-itself", message, help="guard an `async def` and `await` it")
    return Caller(_loop)
