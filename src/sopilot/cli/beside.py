"""Work of a command that a second core can do meanwhile."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Answer = TypeVar("Answer")


@contextmanager
def beside(
    work: Callable[[str | None], Answer], text: str | None, *, worth: bool
) -> Iterator[Callable[[], Answer | None]]:
    """``work`` begun at once in a process of its own, and what came of it: nothing where it is
    not ``worth`` one, or none is to be had. A process with threads is not forked."""
    alone = sys.platform == "linux" and threading.active_count() == 1 and (os.cpu_count() or 1) > 1
    if not (worth and alone):
        yield lambda: None
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        begun = pool.submit(work, text)

        def answer() -> Answer | None:
            try:
                return begun.result()
            except Exception:  # whatever it is: who does the work itself will be told
                return None
            finally:
                pool.shutdown(wait=False)  # it goes while the answer is worked with

        yield answer
