"""Every function of the room returns what it says it does, over whole lives of sessions, and takes
for granted what is written down."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import ClassVar

import pytest
from promised_types import held_to, promised_by
from store_lives import StoreLife
from written_defaults import as_written

from sopilot.runtime import session as room

MODULES = {
    f"sopilot.runtime.session.{one.name}": import_module(f"sopilot.runtime.session.{one.name}")
    for one in iter_modules(room.__path__)
}
PROMISED = promised_by(MODULES)


class Verifying(StoreLife):
    """With more of what is done seldom."""

    acts: ClassVar[Mapping[str, float]] = {
        name: weight if weight > 2 else 3 for name, weight in StoreLife.acts.items()
    }


def test_what_is_promised_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    as_written(MODULES, Path(__file__).parent / "golden" / "defaults.txt")
    assert len(PROMISED) > 150
    lives = [Verifying(random.Random(number), monkeypatch) for number in range(100, 108)]

    async def live_all() -> None:
        for one in lives:
            await one.live(40)

    with held_to(PROMISED) as broken:
        asyncio.run(live_all())
    assert broken == {}
