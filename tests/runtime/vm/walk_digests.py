"""Digests of walks, kept beside this file."""

from __future__ import annotations

import json
import os
from pathlib import Path

GOLDEN = Path(__file__).with_name("walk_digests.json")


def as_they_were(of: str, found: dict[str, str]) -> None:
    kept: dict[str, dict[str, str]] = {}
    if GOLDEN.exists():
        kept = json.loads(GOLDEN.read_text("utf-8"))
    if os.environ.get("SOPILOT_REGOLD"):
        kept[of] = kept.get(of, {}) | found
        GOLDEN.write_text(json.dumps(kept, indent=0) + "\n", "utf-8")
    assert found == {seed: kept.get(of, {}).get(seed) for seed in found}
