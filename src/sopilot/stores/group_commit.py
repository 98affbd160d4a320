"""Writes of many sessions at once: what comes while enough are under way goes together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

Item = TypeVar("Item")


Answer = TypeVar("Answer")


Own = TypeVar("Own")


_MOST_TOGETHER = 200


class PerLoop(Generic[Own]):
    """What every event loop has one of; loops may ask from threads of their own."""

    def __init__(self, make: Callable[[], Own]) -> None:
        self._make = make
        self._of: WeakKeyDictionary[asyncio.AbstractEventLoop, Own] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def of(self, loop: asyncio.AbstractEventLoop) -> Own:
        found = self._of.get(loop)
        if found is None:
            with self._lock:
                found = self._of.setdefault(loop, self._make())
        return found


@dataclass(slots=True)
class _Queue(Generic[Item, Answer]):
    """Of one event loop."""

    waiting: list[tuple[Item, asyncio.Future[Answer]]] = field(default_factory=list)
    under_way: int = 0
    working: set[asyncio.Task[None]] = field(default_factory=set)


class Gathered(Generic[Item, Answer]):
    """``one`` writes an item by itself. ``many`` writes several in one transaction and gives an
    answer, or what to raise, for each; where it raises ``apart``, nothing was written, and each is
    tried by itself. While fewer than ``at_once`` are under way, nobody waits for anybody."""

    def __init__(
        self,
        one: Callable[[Item], Awaitable[Answer]],
        many: Callable[[Sequence[Item]], Awaitable[Sequence[Answer | Exception]]],
        *,
        apart: type[Exception],
        at_once: int,
    ) -> None:
        self._one = one
        self._many = many
        self._apart = apart
        self._at_once = at_once
        self._queues: PerLoop[_Queue[Item, Answer]] = PerLoop(_Queue)

    async def write(self, item: Item) -> Answer:
        loop = asyncio.get_running_loop()
        queue = self._queues.of(loop)
        if queue.under_way >= self._at_once:
            answer: asyncio.Future[Answer] = loop.create_future()
            queue.waiting.append((item, answer))
            try:
                return await answer
            finally:
                del answer  # else what it raises would hold it, and be held by it
        queue.under_way += 1
        try:
            return await self._one(item)
        finally:
            if queue.waiting:
                task = loop.create_task(self._work(queue))
                queue.working.add(task)
                task.add_done_callback(queue.working.discard)
            else:
                queue.under_way -= 1

    async def _work(self, queue: _Queue[Item, Answer]) -> None:
        try:
            while queue.waiting:
                together = queue.waiting[:_MOST_TOGETHER]
                del queue.waiting[:_MOST_TOGETHER]
                answers: Sequence[Answer | BaseException]
                try:
                    answers = await self._written([item for item, _ in together])
                except BaseException as problem:  # whatever it is: nobody waits for ever
                    answers = [problem] * len(together)
                for (_, future), answer in zip(together, answers, strict=True):
                    settle(future, answer)
        finally:
            queue.under_way -= 1

    async def _written(self, items: Sequence[Item]) -> Sequence[Answer | Exception]:
        if len(items) > 1:
            try:
                return await self._many(items)
            except self._apart:
                pass  # one of them spoils it for the others
            except Exception as problem:
                return [problem] * len(items)
        return [await self._by_itself(item) for item in items]

    async def _by_itself(self, item: Item) -> Answer | Exception:
        try:
            return await self._one(item)
        except Exception as problem:
            return problem


def given(answer: Answer | Exception) -> Answer:
    """The answer, or it is raised. Call it with what nothing else names: a frame that names what
    goes through it is held by it, until somebody looks for such circles."""
    if isinstance(answer, Exception):
        try:
            raise answer
        finally:
            del answer
    return answer


def settle(future: asyncio.Future[Answer], answer: Answer | BaseException) -> None:
    if future.done():
        return  # who asked has gone
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)
