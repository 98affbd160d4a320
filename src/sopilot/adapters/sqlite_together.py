"""One flush for what many sessions write to a SQLite file in the same moment."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sopilot.adapters.gathering import PerLoop, settle
from sopilot.adapters.sqlite_connection import SQLiteFile
from sopilot.language.diagnostics import RunEnded

Item = TypeVar("Item")
_FLUSHING = ""


@dataclass(slots=True)
class _Moment(Generic[Item]):
    """Of one event loop: who has written since it last came round, and who waits for that."""

    writer: str | None = None
    waiting: list[tuple[str, Item, asyncio.Future[None]]] = field(default_factory=list)
    flushing: asyncio.Task[None] | None = None


class Together(Generic[Item]):
    """A commit keeps the event loop until the disk has it. So the first to write does so at once,
    and so does who writes alone; those who come before the loop has gone round share the next
    transaction. Each is refused by itself, and acknowledged when all of it is durable."""

    def __init__(
        self, file: SQLiteFile, write: Callable[[sqlite3.Connection, Item], object]
    ) -> None:
        self._file = file
        self._write = write
        self._moments: PerLoop[_Moment[Item]] = PerLoop(_Moment)

    async def add(self, writer: str, item: Item) -> None:
        loop = asyncio.get_running_loop()
        moment = self._moments.of(loop)
        if moment.writer is not None and moment.writer != writer:
            done = loop.create_future()
            moment.waiting.append((writer, item, done))
            try:
                await done
            finally:
                del done  # else what it raises would hold it, and be held by it
            return
        if moment.writer is None:
            moment.writer = writer
            loop.call_soon(self._come_round, loop, moment)
        async with self._file.writing() as db:
            self._write(db, item)

    def _come_round(self, loop: asyncio.AbstractEventLoop, moment: _Moment[Item]) -> None:
        moment.writer = None
        if moment.waiting:
            moment.writer = _FLUSHING
            moment.flushing = loop.create_task(self._flush(loop, moment))

    async def _flush(self, loop: asyncio.AbstractEventLoop, moment: _Moment[Item]) -> None:
        together, moment.waiting = moment.waiting, []
        answers: list[BaseException | None] = []
        try:
            async with self._file.writing() as db:
                for _, item, _ in together:
                    answers.append(self._refusal(db, item))
        except BaseException as problem:  # whatever it is: nobody waits for ever
            answers = [problem] * len(together)
        for (_, _, done), answer in zip(together, answers, strict=True):
            settle(done, answer)
        # They go on before this: what they write next waits for it, unless one was alone.
        if len(together) == 1:
            moment.writer = together[0][0]
        loop.call_soon(self._come_round, loop, moment)

    def _refusal(self, db: sqlite3.Connection, item: Item) -> Exception | None:
        db.execute("SAVEPOINT one")
        try:
            self._write(db, item)
        except RunEnded as problem:
            db.execute("ROLLBACK TO one")
            return problem
        finally:
            db.execute("RELEASE one")
        return None
