"""Messages as lines of two pipes, read and written by the event loop itself.

The library's own transports for standard streams hand every line to a thread and back, or through
several streams. Whoever takes a line here is asked first; the library has the rest, as messages on
the streams that it expects.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio
import mcp_types as types
import pydantic_core
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

Heard = SessionMessage | Exception


Streams = tuple[MemoryObjectReceiveStream[Heard], MemoryObjectSendStream[SessionMessage]]


_MOST_UNREAD = 100
"""Messages for the library; with more, nothing is read until it has caught up."""


LONGEST = 64 * 1024 * 1024
"""Bytes of one message: who sends more without an end has sent the last."""


class Lines(ABC):
    """``take`` is for whoever is asked first. The two pipes are there before ``open``."""

    incoming: asyncio.ReadTransport
    outgoing: asyncio.WriteTransport

    def __init__(self) -> None:
        self._rest = bytearray()
        self._unread: asyncio.Queue[Heard | None] = asyncio.Queue()
        self._paused = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._tasks: list[asyncio.Task[None]] = []

    @abstractmethod
    def take(self, message: Any) -> bool:
        """Whether that was not for the library."""

    @abstractmethod
    def take_unreadable(self, line: bytes, value: Any) -> bool:
        """The same of a line that is no message: a value, or not even JSON (``None``)."""

    def open(self) -> Streams:
        heard, read = anyio.create_memory_object_stream[Heard](0)
        write, said = anyio.create_memory_object_stream[SessionMessage](0)
        self._tasks = [
            asyncio.create_task(self._pass_on(heard)),
            asyncio.create_task(self._say(said)),
        ]
        return read, write

    async def said(self) -> None:
        """Until what the library has said is written; then nothing more is."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def write(self, message: Mapping[str, Any]) -> None:
        await self._writable.wait()
        self.write_now(message)

    def write_now(self, message: Mapping[str, Any]) -> None:
        if not self.outgoing.is_closing():
            self.outgoing.write(pydantic_core.to_json(message, inf_nan_mode="null") + b"\n")

    # --- what the pipes tell --------------------------------------------------------

    def read(self, data: bytes) -> None:
        self._rest += data
        if b"\n" in data:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._hear(bytes(line))
        if len(self._rest) > LONGEST:
            self._rest = bytearray()
            self.incoming.close()

    def ended(self) -> None:
        self._writable.set()
        self._unread.put_nowait(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # --- the library's side ---------------------------------------------------------

    def _hear(self, line: bytes) -> None:
        message: Any = None
        with suppress(ValueError):
            message = pydantic_core.from_json(line)
        if self.take(message):
            return
        # What cannot be read is the library's, too: it says what is wrong with it.
        heard = _message(line)
        if isinstance(heard, Exception) and self.take_unreadable(line, message):
            return
        self._unread.put_nowait(heard)
        if not self._paused and self._unread.qsize() > _MOST_UNREAD:
            self._paused = True
            self.incoming.pause_reading()

    async def _pass_on(self, heard: MemoryObjectSendStream[Heard]) -> None:
        async with heard:
            while (message := await self._unread.get()) is not None:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await heard.send(message)
                if self._paused and self._unread.empty():
                    self._paused = False
                    self.incoming.resume_reading()

    async def _say(self, said: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with said:
            async for one in said:
                await self._writable.wait()
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                if not self.outgoing.is_closing():
                    self.outgoing.write(text.encode() + b"\n")


def _message(line: bytes) -> Heard:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as problem:
        return problem
