"""Several processes behind one address: who starts them, starts them again, and stops them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

VARIABLE = "SOPILOT_WORKER"
"""In a worker: its number, and the numbers of the sockets that it has inherited."""
_POLL_SECONDS = 0.1
_TOO_SOON_SECONDS = 2.0
_MOST_IN_A_ROW = 5
_ENTRY = "from sopilot.doors.cli.main import main; main()"


def is_worker() -> bool:
    return VARIABLE in os.environ


def inherited() -> tuple[int, list[socket.socket]]:
    """A worker's number and its sockets, once."""
    number, _, files = os.environ[VARIABLE].partition(":")
    return int(number), [socket.socket(fileno=int(one)) for one in files.split(",")]


class Supervisor:
    """Keeps ``count`` workers running the same command. One that dies is started again; when
    they die as soon as they start, all is given up."""

    def __init__(
        self,
        arguments: Sequence[str],
        sockets: Sequence[socket.socket],
        count: int,
        tell: Callable[[str], None],
    ) -> None:
        self._arguments = list(arguments)
        self._sockets = sockets
        self._count = count
        self._tell = tell
        self._workers: dict[int, tuple[subprocess.Popen[bytes], float]] = {}
        self._failed = 0
        self._stop = 0
        self._reload = False

    def run(self) -> int:
        """Until it is told to stop; the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stopped)
        signal.signal(signal.SIGHUP, self._reloaded)
        for index in range(self._count):
            self._start(index)
        while self._workers:
            time.sleep(_POLL_SECONDS)
            if self._reload:
                self._reload = False
                self._send(signal.SIGHUP)
            self._look()
            if self._failed >= _MOST_IN_A_ROW and not self._stop:
                self._tell("workers end as soon as they start; giving up")
                self._stopped(signal.SIGTERM, None)
        return 1 if self._failed >= _MOST_IN_A_ROW else 0

    def _start(self, index: int) -> None:
        files = [one.fileno() for one in self._sockets]
        value = f"{index}:{','.join(map(str, files))}"
        self._workers[index] = (
            subprocess.Popen(
                [sys.executable, "-c", _ENTRY, *self._arguments],
                env={**os.environ, VARIABLE: value},
                pass_fds=files,
            ),
            time.monotonic(),
        )

    def _look(self) -> None:
        for index, (process, begun) in tuple(self._workers.items()):
            code = process.poll()
            if code is None:
                continue
            del self._workers[index]
            if self._stop:
                continue
            soon = time.monotonic() - begun < _TOO_SOON_SECONDS
            self._failed = self._failed + 1 if soon else 0
            self._tell(f"worker {index} ended with {code}, and is started again")
            self._start(index)

    def _send(self, number: int) -> None:
        for process, _ in self._workers.values():
            with suppress(ProcessLookupError):
                process.send_signal(number)

    def _stopped(self, number: int, frame: object) -> None:
        self._stop += 1
        self._send(signal.SIGTERM)

    def _reloaded(self, number: int, frame: object) -> None:
        self._reload = True
