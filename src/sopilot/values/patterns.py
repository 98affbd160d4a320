"""Patterns of JSON Schema, with the meaning that they have there and within bounds.

They are ECMAScript's: `$` is the end of the text alone, where Python's is also the place before
a last line break, and digits, letters and word boundaries are ASCII's.

Work whose cost its input decides, in a process of its own with a bound on time and memory.

Expressions and patterns are other people's. The library that runs expressions bounds its
iterations, and not what one of them costs; Python's patterns can take years. What cannot be
cheap by its size is done by a worker that the system stops: the answer is then undecided.
Processor time counts, not the clock, so that a busy machine decides as an idle one does.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import selectors
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

CPU_SECONDS = 1.0


MEMORY_BYTES = 1 << 30
"""Of the worker's addresses, the library's own among them."""


WALL_SECONDS = 60.0
"""For a machine that does not count processor time, or has none to give."""


_TOO_MUCH = "it takes too much time or memory"


class Unbounded(Exception):
    """It was stopped, or it failed; ``str`` says which."""


def ask(request: Mapping[str, Any]) -> Any:
    """What the worker answers, or ``Unbounded``."""
    with _LOCK:
        global _worker
        if _worker is None or _worker.owner != os.getpid():
            # After a fork the pipes are the parent's.
            _worker = _Worker()
        try:
            answer = _worker.ask(request)
        except (OSError, ValueError):
            _worker.stop()
            _worker = None
            raise Unbounded(_TOO_MUCH) from None
    if "failed" in answer:
        raise Unbounded(str(answer["failed"]))
    return answer["answer"]


class _Worker:
    def __init__(self) -> None:
        self.owner = os.getpid()
        main = "from sopilot.handbook.expressions import main; main()"
        self._process = subprocess.Popen(
            # Nothing is imported from the present folder: it may be anybody's.
            [sys.executable, "-P", "-c", main],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # an interrupt at the terminal is the caller's
        )

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer: Mapping[str, Any] = json.loads(self._line())
        return answer

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            if not ready.select(WALL_SECONDS):
                raise OSError("no answer")
        return self._process.stdout.readline()

    def stop(self) -> None:
        if self.owner != os.getpid():
            return
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._process.wait()


_LOCK = threading.Lock()


_worker: _Worker | None = None


def _stop() -> None:
    if _worker is not None:
        _worker.stop()


atexit.register(_stop)


_SHORT = 1000


_REPETITION = re.compile(r"[*+?{]")


_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)


class UnreadablePattern(Exception):
    """``str`` says why nobody can tell whether a text has the form."""


def has_form(text: str, pattern: str) -> bool:
    """Whether the pattern is found in the text. One with several repetitions may take years to
    find nothing: those are bounded."""
    try:
        compiled = _compiled(pattern)
        if len(text) <= _SHORT and len(_REPETITION.findall(pattern)) <= 1:
            return compiled.search(text) is not None
        return ask({"pattern": compiled.pattern, "text": text}) is True
    except (re.error, RecursionError, OverflowError) as problem:
        raise UnreadablePattern("has a pattern that cannot be read") from problem
    except Unbounded as problem:
        raise UnreadablePattern(f"cannot be matched with its pattern: {problem}") from None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_PART.sub(lambda part: r"\Z" if part[0] == "$" else part[0], pattern), re.A)
