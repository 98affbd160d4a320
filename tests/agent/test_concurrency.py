"""Sessions of one process wait for their models side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

STEPS = Path(__file__).parents[2] / "benchmarks" / "steps.py"


def test_sessions_do_not_wait_for_each_other(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    options = ("--sessions", "40", "--latency", "0.2", "--json", str(file))
    command = [sys.executable, str(STEPS), "concurrent", *options]
    subprocess.run(command, capture_output=True, text=True, check=False)
    figures = json.loads(file.read_text())
    assert figures["wrong"] == 0
    # One after the other they would take forty times as long.
    assert figures["times_ideal"] < 3
    assert figures["peak_bytes"] < 2**31
