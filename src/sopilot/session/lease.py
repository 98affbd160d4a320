"""Wait for a session that another process has."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sopilot.messages.errors import LeaseHeld

Answer = TypeVar("Answer")
_FIRST_PAUSE = 0.03
_LONGEST_PAUSE = 0.5


async def when_free(attempt: Callable[[], Awaitable[Answer]], *, patience_seconds: float) -> Answer:
    """Retry until no other process has the session, with growing pauses and right after its lease
    expires. Raise ``LeaseHeld`` when ``patience_seconds`` are over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_seconds
    pause = _FIRST_PAUSE
    while True:
        try:
            return await attempt()
        except LeaseHeld as held:
            left = deadline - loop.time()
            if left <= 0:
                raise
            runs_out = held.seconds_left + _FIRST_PAUSE
        # Jitter: many may wait for a session whose process was killed.
        await asyncio.sleep(min(left, runs_out, pause) * random.uniform(0.8, 1.2))
        pause = min(2 * pause, _LONGEST_PAUSE)
