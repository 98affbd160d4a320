"""The command that runs all performance campaigns works, part by part."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ["compile", "machine", "store", "concurrency", "tokens", "growth", "gateway", "sopbench"]


def test_every_part_of_the_small_run() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks"), "--small"],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split(maxsplit=1) for line in done.stdout.splitlines()[-len(PARTS) :]]
    verdicts = dict(rows)
    assert [*verdicts] == PARTS
    assert all(each.startswith(("met", "missed", "left out")) for each in verdicts.values())
    # These do not depend on how busy the machine is.
    assert not verdicts["tokens"].startswith("missed")
    assert not verdicts["growth"].startswith("missed")
