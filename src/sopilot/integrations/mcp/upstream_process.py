"""A server in a process of its own.

The library's transport for its client, with the same life: the process gets a session of its own,
and in the end its input is closed, and who does not leave then is made to.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from sopilot.integrations.mcp.asking import NotSent, Result, Waiting
from sopilot.integrations.mcp.call_link import ProgressReport
from sopilot.integrations.mcp.lines import Lines, Streams

_LEAVE_SECONDS = 2.0
"""For a process to leave by itself, and once more when it is told to."""


_MOMENT_SECONDS = 0.02


class UpstreamProcess(Lines, asyncio.SubprocessProtocol):
    off = False

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._command = tuple(command)
        self._environment = dict(environment)
        self._waiting = Waiting(changed)
        self._gone = asyncio.Event()

    async def __aenter__(self) -> Streams:
        loop = asyncio.get_running_loop()
        self._process, _ = await loop.subprocess_exec(
            lambda: self,
            *self._command,
            stderr=None,
            env=self._environment,
            start_new_session=True,
        )
        self.outgoing = cast(asyncio.WriteTransport, self._process.get_pipe_transport(0))
        self.incoming = cast(asyncio.ReadTransport, self._process.get_pipe_transport(1))
        return self.open()

    async def __aexit__(self, *_: object) -> None:
        self._waiting.close()
        self.outgoing.close()  # when what was said is written
        stopping = asyncio.create_task(self._stop())
        try:
            await asyncio.shield(stopping)
        finally:
            if not stopping.done():
                self._signal(signal.SIGKILL)
            await self.said()

    async def _stop(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._gone.wait(), _LEAVE_SECONDS)
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            await self._all_gone()
        self._process.close()

    async def _all_gone(self) -> None:
        """With whatever it has started in its own group; what leaves that is not found."""
        tries = int(_LEAVE_SECONDS / _MOMENT_SECONDS)
        while tries and not (self._gone.is_set() and not self._signal(0)):
            tries -= 1
            await asyncio.sleep(_MOMENT_SECONDS)

    def _signal(self, number: int) -> bool:
        """Whether there is anybody to hear it."""
        try:
            os.killpg(self._process.get_pid(), number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def ask(
        self,
        method: str,
        params: dict[str, Any],
        headers: Mapping[str, str],
        progress: ProgressReport | None,
    ) -> asyncio.Future[Result]:
        if self.outgoing.is_closing():
            raise NotSent
        own_id, answer = self._waiting.begin(params, progress)
        self.write_now({"jsonrpc": "2.0", "id": own_id, "method": method, "params": params})

        def ended(answer: asyncio.Future[Result]) -> None:
            self._waiting.end(own_id)
            if answer.cancelled():
                told = {"requestId": own_id, "reason": "caller cancelled"}
                notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": told}
                self.write_now(notice)

        answer.add_done_callback(ended)
        return answer

    def take(self, message: Any) -> bool:
        return self._waiting.take(message)

    def take_unreadable(self, line: bytes, value: Any) -> bool:
        return value is None and self._waiting.spoilt(line)

    # --- what the process does ------------------------------------------------------

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.read(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._waiting.close()
        self.ended()

    def process_exited(self) -> None:
        self._gone.set()
