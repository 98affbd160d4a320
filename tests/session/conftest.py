from __future__ import annotations

import pytest

from counter_desk import HandClock
from sopilot.stores.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()
