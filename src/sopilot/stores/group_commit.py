"""Writes of many sessions that share one transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from sopilot.messages.errors import StoreUnavailable

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class WriteRefused(StoreUnavailable):
    """The database is available and wrote nothing of the batch."""


@dataclass(slots=True)
class _Queue(Generic[Item, Answer]):
    """The writes of one event loop."""

    waiting: list[tuple[str, Item, asyncio.Future[Answer]]] = field(default_factory=list)
    in_flight: int = 0
    last_writer: str | None = None
    """The session that wrote alone in this turn of the loop, and may write again."""
    batches: set[asyncio.Task[None]] = field(default_factory=set)


class GroupCommit(Generic[Item, Answer]):
    """The first writer of a loop turn goes at once. Others of that turn, or while ``concurrent``
    writes are in flight, share the next batch.

    A commit to SQLite blocks the event loop, so a write keeps its place until the loop's next turn:
    writers that got ready meanwhile share the next flush. ``write_many`` returns an answer per
    item; if it raises ``WriteRefused`` for several, each is tried alone."""

    def __init__(
        self,
        write_many: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]],
        *,
        concurrent: int,
        batch: int = 200,
    ) -> None:
        self._write_many = write_many
        self._concurrent = concurrent
        self._batch = batch
        self._lock = threading.Lock()
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue[Item, Answer]] = (
            WeakKeyDictionary()
        )

    async def write(self, session_id: str, item: Item) -> Answer:
        loop = asyncio.get_running_loop()
        queue = self._queues.get(loop) or self._new_queue(loop)
        if queue.last_writer == session_id:
            return (await self._write_many((item,)))[0]
        if queue.in_flight >= self._concurrent:
            answer: asyncio.Future[Answer] = loop.create_future()
            queue.waiting.append((session_id, item, answer))
            try:
                return await answer
            finally:
                del answer  # the exception that it raises would form a cycle with it
        queue.in_flight += 1
        queue.last_writer = session_id
        try:
            return (await self._write_many((item,)))[0]
        finally:
            loop.call_soon(self._next, loop, queue)

    def _new_queue(self, loop: asyncio.AbstractEventLoop) -> _Queue[Item, Answer]:
        with self._lock:
            return self._queues.setdefault(loop, _Queue())

    def _next(self, loop: asyncio.AbstractEventLoop, queue: _Queue[Item, Answer]) -> None:
        """Free the place of a finished write, or let the waiting writes have it."""
        queue.last_writer = None
        if not queue.waiting:
            queue.in_flight -= 1
            return
        items, queue.waiting = queue.waiting[: self._batch], queue.waiting[self._batch :]
        task = loop.create_task(self._flush(loop, queue, items))
        queue.batches.add(task)
        task.add_done_callback(queue.batches.discard)

    async def _flush(
        self,
        loop: asyncio.AbstractEventLoop,
        queue: _Queue[Item, Answer],
        items: list[tuple[str, Item, asyncio.Future[Answer]]],
    ) -> None:
        answers: Sequence[Answer | BaseException]
        try:
            answers = await self._answers([item for _, item, _ in items])
        except BaseException as problem:  # an interrupted batch must wake everybody, too
            answers = [problem] * len(items)
        for (_, _, future), answer in zip(items, answers, strict=True):
            _set(future, answer)
        if len(items) == 1:
            queue.last_writer = items[0][0]
        # Writers go on before this runs: their next writes share the next batch.
        loop.call_soon(self._next, loop, queue)

    async def _answers(self, items: Sequence[Item]) -> Sequence[Answer | BaseException]:
        try:
            return await self._write_many(items)
        except WriteRefused as refused:
            if len(items) == 1:
                return [refused]
        answers: list[Answer | BaseException] = []
        for item in items:
            try:
                answers += await self._write_many((item,))
            except Exception as problem:
                answers.append(problem)
        return answers


def _set(future: asyncio.Future[Answer], answer: Answer | BaseException) -> None:
    if future.done():
        return  # the writer was cancelled
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)
