"""Several processes behind one address: who starts them, starts them again, and stops them.

Everything is imported once, by the supervisor; a worker is a fork of it, and serves a moment after
the one that it replaces has died. The supervisor itself opens no store and runs no loop: there is
nothing that two processes could not have in common.
"""

from __future__ import annotations

import gc
import mmap
import os
import secrets
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sopilot.messages.errors import mistake
from sopilot.session.opening import process_called

_POLL_SECONDS = 0.05


_TOO_SOON_SECONDS = 2.0


_MOST_IN_A_ROW = 5


_LONGEST_PAUSE_SECONDS = 2.0


_MOST_DEAD = 64
"""Who died before these has no lease any more."""


_STOPS = (signal.SIGTERM, signal.SIGINT)


_SIGNALS = (*_STOPS, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Worker:
    """What a worker has of its supervisor."""

    number: int
    sockets: Sequence[socket.socket]
    name: str
    dead: Sequence[str] = ()
    """Processes before it, as owners of sessions are called (`runtime.session.owners`)."""
    serves: Callable[[], None] = lambda: None
    """To be called once it is ready for requests."""
    again: bool = False
    """One has served before it: what an operator said for the start was done by then."""
    supervisor: int = 0
    """Its process. Without it nobody would replace or stop this one."""

    @property
    def is_orphan(self) -> bool:
        return os.getppid() != self.supervisor


class Supervisor:
    """Keeps a worker for each of ``sockets``. One that dies is started again: at once where it was
    killed or had served, after a pause that grows where it ended as soon as it had begun. Where
    none has ever come to serve, all is given up. ``reread`` is called at SIGHUP, before the workers
    are told: who is started after it begins with what was read then."""

    def __init__(
        self,
        sockets: Sequence[Sequence[socket.socket]],
        tell: Callable[[str], None],
        reread: Callable[[], None] = lambda: None,
    ) -> None:
        if not hasattr(os, "fork"):
            cure = "start several servers with --stateless, each on a port of its own"
            raise mistake("no-workers-here", "this system cannot fork processes", help=cure)
        self._sockets = sockets
        self._tell = tell
        self._reread = reread
        self._workers: dict[int, tuple[int, float, str]] = {}
        self._due: dict[int, float] = dict.fromkeys(range(len(sockets)), 0.0)
        self._dead: deque[str] = deque(maxlen=_MOST_DEAD)
        self._serving = mmap.mmap(-1, len(sockets))
        """Which worker has come to serve, told by itself in memory that all have in common."""
        self._failed = 0
        self._served = False
        # Handlers only count: whatever is done about a signal is done in its turn, by the loop.
        self._stops = 0
        self._stops_sent = 0
        self._reload = False

    def run(self) -> Worker | int:
        """In a worker: what it has. In the supervisor, when all have ended: the exit code."""
        handlers = {number: signal.signal(number, self._stopped) for number in _STOPS}
        signal.signal(signal.SIGHUP, self._reloaded)
        # Until it listens for it, a worker ends by it, and the next one has what was read again.
        handlers[signal.SIGHUP] = signal.SIG_DFL
        gc.collect()
        gc.freeze()  # what was loaded is never looked through again, and stays shared
        supervisor = os.getpid()
        while self._workers or self._due:
            self._heed()
            for index in [one for one, at in self._due.items() if at <= time.monotonic()]:
                if self._stops:
                    break
                del self._due[index]
                name = secrets.token_hex(8)
                self._served = self._served or any(self._serving[:])
                self._serving[index] = 0
                # Neither may a signal come to a child that still has this process's handlers, nor
                # one to this process before it knows the child.
                signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
                pid = os.fork()
                if pid == 0:
                    for number, handler in handlers.items():
                        signal.signal(number, handler)
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
                    return self._worker(index, name, supervisor)
                self._workers[pid] = (index, time.monotonic(), process_called(name, pid))
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            time.sleep(_POLL_SECONDS)
            self._look()
        return 1 if self._gave_up else 0

    def _heed(self) -> None:
        """What signals asked for since the last turn. Whoever stops twice means at once."""
        if self._reload:
            self._reload = False
            self._reread()
            self._send(signal.SIGHUP)
        if self._stops:
            self._due.clear()
        while self._stops_sent < self._stops:
            self._stops_sent += 1
            self._send(signal.SIGTERM)

    def _worker(self, index: int, name: str, supervisor: int) -> Worker:
        """Sockets of the others are closed in it: where nobody is left to serve one, nobody is
        sent there."""
        own = self._sockets[index]
        for one in (one for others in self._sockets for one in others if one not in own):
            one.close()

        def serves() -> None:
            self._serving[index] = 1

        dead = tuple(self._dead)
        return Worker(index, own, name, dead, serves, self._served, supervisor)

    @property
    def _gave_up(self) -> bool:
        return self._failed >= _MOST_IN_A_ROW and not self._served

    def _look(self) -> None:
        for pid, (index, begun, name) in tuple(self._workers.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            del self._workers[pid]
            self._dead.append(name)
            if not self._stops:
                self._replace(index, os.waitstatus_to_exitcode(status), time.monotonic() - begun)

    def _replace(self, index: int, code: int, lived: float) -> None:
        served = bool(self._serving[index])
        self._served = self._served or served
        in_vain = code > 0 and (not served or lived < _TOO_SOON_SECONDS)
        self._failed = self._failed + 1 if in_vain else 0
        if self._gave_up:
            self._tell("workers end as soon as they start; giving up")
            self._stopped(signal.SIGTERM, None)
            return
        self._tell(f"worker {index} ended with {code}, and is started again")
        pause = min(_LONGEST_PAUSE_SECONDS, 0.1 * 2**self._failed) if self._failed else 0.0
        self._due[index] = time.monotonic() + pause

    def _send(self, number: int) -> None:
        for pid in self._workers:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _stopped(self, number: int, frame: object) -> None:
        self._stops += 1

    def _reloaded(self, number: int, frame: object) -> None:
        self._reload = True
