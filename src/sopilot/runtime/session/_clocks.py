"""Where time comes from at the edge."""

from __future__ import annotations

import time


class SystemClock:
    def now(self) -> float:
        return time.time()
