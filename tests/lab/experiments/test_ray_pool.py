from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from sopbench_checkout import NEEDS_SOPBENCH
from sweep_faults import lab_run, records, shard_workers

pytestmark = [
    *NEEDS_SOPBENCH,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra `ray`"),
]
TASKS = 40


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the workers in /proc")
def test_a_killed_worker_costs_nothing(tmp_path: Path) -> None:
    here, there = tmp_path / "local", tmp_path / "ray"
    command = lab_run(here, TASKS, "plain", "--workers", 2)
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    sweep = subprocess.Popen(
        lab_run(there, TASKS, "plain", "--workers", 2, "--on", "ray"), stdout=subprocess.DEVNULL
    )
    killed = None
    until = time.monotonic() + 120
    while killed is None and time.monotonic() < until and sweep.poll() is None:
        if len(records(there)) >= 3 and (workers := shard_workers(sweep.pid)):
            killed = workers[0]
            os.kill(killed, signal.SIGKILL)
        time.sleep(0.02)
    assert sweep.wait(300) == 0
    assert killed is not None, "the sweep ended before a worker could be killed"
    assert (here / "scores.jsonl").read_bytes() == (there / "scores.jsonl").read_bytes()
    written = [json.loads(line)["task"] for line in records(there)]
    assert len(written) == len(set(written)) == TASKS
    assert len(list((there / "records").glob("*.jsonl"))) >= 2
