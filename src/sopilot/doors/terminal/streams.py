"""Streams that are closed, full or left by their reader."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

from sopilot.doors.terminal.output import say


def open_streams() -> None:
    """A stream that was closed is opened on nothing, before a file takes its number: reading
    ends at once, writing fails as it would have."""
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except OSError as problem:
        return lost(problem)
    return code


def lost(problem: OSError) -> int:
    """What was to be told went nowhere: a full disk, a closed stream, a reader that left."""
    # Or the interpreter would try again at its end, and print what came of it.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if problem.errno != errno.EPIPE:
        with suppress(OSError):
            say(f"sopilot: {problem.strerror or problem}", err=True)
    return 1
