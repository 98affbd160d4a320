"""The one command that prints every performance figure works, part by part."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ("compile", "machine", "store", "concurrency", "tokens", "growth", "gateway", "sopbench")
WITHOUT_ROWS = "machine"


def test_every_part_of_the_small_run() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks"), "--small"],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    last = max(done.stdout.rfind("\ncompile "), 0)
    table = done.stdout[last:].strip().splitlines()
    verdicts: dict[str, str] = {}
    rows: dict[str, list[float]] = {}
    for line in table:
        if line.startswith("  "):
            ratio = re.match(r"  .*?(-?\d+\.\d\d)  ", line + "  ")
            assert ratio is not None, line
            rows[[*verdicts][-1]].append(float(ratio.group(1)))
        else:
            title, verdict = re.split(r"\s+", line, maxsplit=1)
            verdicts[title] = verdict
            rows[title] = []
    assert (*verdicts,) == PARTS
    for title, verdict in verdicts.items():
        assert verdict.startswith(("met", "missed", "left out")), (title, verdict)
        ran = not verdict.startswith("left out")
        assert bool(rows[title]) == (ran and title != WITHOUT_ROWS)
        assert all(ratio > 0 for ratio in rows[title])
    # These do not depend on how busy the machine is.
    for title in ("tokens", "growth"):
        assert not verdicts[title].startswith("missed")
