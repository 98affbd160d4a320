"""A Python that has loaded already what a test's processes need.

The MCP library takes most of a second to load, Inspect two, and scores of tests start such a
process or two. What they start is forked from one that has loaded it once: a process of its own
in all that a test can see of one, with its own arguments, environment, folder and streams; it
takes signals, and goes when whoever started it goes. Tests of the start itself, and those
that look at the processes, use ``sys.executable``.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path

STARTER = Path(__file__).with_name("warm_start.py")
GATEWAY = ("sopilot.cli.serve", "sopilot.integrations.mcp.serve", "mcp.server.stdio")


def warm_python(*modules: str) -> tuple[str, ...]:
    """Stands where ``sys.executable`` would: before ``-m MODULE`` or a script. With
    ``MODULE:FUNCTION`` among the modules, what that function keeps is there too."""
    loaded = ",".join(modules or GATEWAY)
    return (sys.executable, "-I", "-S", str(STARTER), _address(), loaded)


@cache
def _address() -> str:
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    address = str(Path(folder.name) / "socket")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        server = subprocess.Popen(
            [sys.executable, __file__, str(listening.fileno())],
            pass_fds=[listening.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )

    def end() -> None:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(timeout=30)
        folder.cleanup()

    atexit.register(end)
    return address


class Server:
    """Forks what is asked for, until its own input ends."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._started: dict[int, socket.socket] = {}

    def serve(self) -> list[str] | None:
        """The words of a command, in the process that is to be it; none, where all is over."""
        woken, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            askers = self._started.values()
            readable, _, _ = select.select([0, woken, self._listening, *askers], [], [])
            if 0 in readable:
                for pid in self._started:
                    os.kill(pid, signal.SIGKILL)
                return None
            for pid, asker in list(self._started.items()):
                if asker in readable:  # it says nothing: it is gone
                    os.kill(pid, signal.SIGKILL)
                    asker.close()
                    del self._started[pid]
            if woken in readable:
                os.read(woken, 4096)
                self._tell_endings()
            if self._listening in readable:
                asker, _ = self._listening.accept()
                words = self._start(asker)
                if words is not None:
                    os.close(woken)
                    os.close(wakes)
                    return words

    def _tell_endings(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            asker = self._started.pop(pid, None)
            if asker is not None:
                asker.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
                asker.close()

    def _start(self, asker: socket.socket) -> list[str] | None:
        text, streams, _, _ = socket.recv_fds(asker, 1 << 16, 3)
        while not text.endswith(b"\n"):
            text += asker.recv(1 << 16)
        asked = json.loads(text)
        for name in asked["loaded"].split(","):
            with suppress(ImportError):  # the command will say what it lacks
                found = pkgutil.resolve_name(name)
                if callable(found):
                    found()
        gc.freeze()
        pid = os.fork()
        if pid:
            for stream in streams:
                os.close(stream)
            self._started[pid] = asker
            asker.sendall(b"%d\n" % pid)
            return None
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        for other in (self._listening, asker, *self._started.values()):
            other.close()
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        words: list[str] = asked["words"]
        return words


def main() -> None:
    words = Server(socket.socket(fileno=int(sys.argv[1]))).serve()
    if words is None:
        return
    code = 0
    try:
        be(words)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        code = 1
        traceback.print_exc()
    # Without taking apart all that was loaded: those pages are shared until they are touched.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


def be(words: list[str]) -> None:
    first, *rest = words
    if first == "-m":
        sys.path[0] = ""
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(first).parent)
        sys.argv = words
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main()
