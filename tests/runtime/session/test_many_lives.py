"""Lives of sessions by chance, told as they were: a line says what happened how often, and ends
with a digest of all that was said, stored and refused. ``SOPILOT_REGOLD=1`` rewrites them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_lives import StoreLife

from sopilot.runtime.vm.values import canonical

GOLDEN = Path(__file__).parent / "golden" / "lives.txt"
LIVES, STEPS = 60, 40


def lines(patch: pytest.MonkeyPatch) -> Iterator[str]:
    for number in range(LIVES):
        life = StoreLife(random.Random(number), patch)
        asyncio.run(life.live(STEPS))
        told = hashlib.sha256(canonical(life.told)).hexdigest()[:12]
        counted = ", ".join(f"{name} {count}" for name, count in sorted(life.said.items()))
        yield f"{number}: {counted} {told}"


def test_lives_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(lines(monkeypatch))
    if os.environ.get("SOPILOT_REGOLD"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text("\n".join(found) + "\n", "utf-8")
    assert found == GOLDEN.read_text("utf-8").splitlines()
