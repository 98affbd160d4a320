"""Every function of the room returns what it says it does, over whole lives of sessions."""

from __future__ import annotations

import asyncio
import random
import sys

import pytest
from promised_types import held_to, promised_by
from store_lives import StoreLife

PROMISED = promised_by(
    {name: one for name, one in sys.modules.items() if name.startswith("sopilot.runtime.session")}
)


def test_what_is_promised_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(PROMISED) > 150
    lives = [StoreLife(random.Random(number), monkeypatch) for number in range(100, 108)]

    async def live_all() -> None:
        for one in lives:
            await one.live(40)

    with held_to(PROMISED) as broken:
        asyncio.run(live_all())
    assert broken == {}
