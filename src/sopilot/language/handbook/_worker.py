"""The process that ``bounded`` asks: a line of JSON in, a line of JSON out."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sopilot.language.handbook.bounded import CPU_SECONDS, MEMORY_BYTES
from sopilot.language.handbook.cel import VerdictError, evaluate_here


def main() -> None:
    _limit_memory()
    for line in sys.stdin.buffer:
        _limit_time(CPU_SECONDS)
        answer: dict[str, object]
        try:
            answer = {"answer": _answer(json.loads(line))}
        except (VerdictError, re.error, MemoryError, RecursionError) as problem:
            answer = {"failed": str(problem) or type(problem).__name__}
        _limit_time(0)
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


def _answer(request: Mapping[str, Any]) -> object:
    if "pattern" in request:
        return re.search(request["pattern"], request["text"], re.ASCII) is not None
    return evaluate_here(request["expression"], request["data"])


def _limit_memory() -> None:
    # Where the system knows no such limit, time alone is bounded.
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time(seconds: float) -> None:
    """The signal ends the process, whatever it is in the middle of."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
