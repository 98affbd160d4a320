from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sopbench_checkout import NEEDS_SOPBENCH

pytestmark = [
    *NEEDS_SOPBENCH,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra `ray`"),
]
TASKS = 40


def command(folder: Path, *options: str) -> list[str]:
    run = [sys.executable, "-m", "sopilot.cli.main", "lab", "run", "--domain", "healthcare"]
    choice = ["--limit", str(TASKS), "--runner", "plain", "--workers", "2", "--json"]
    return [*run, *choice, "-o", str(folder), *options]


def shard_workers(ancestor: int) -> list[int]:
    """Ray workers that run a shard, below a process that this test started."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "stat").read_text()
            names[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])

    def below(pid: int) -> bool:
        while pid in parents and pid != ancestor:
            pid = parents[pid]
        return pid == ancestor

    return [pid for pid, name in names.items() if "ray::run_shard" in name and below(pid)]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the workers in /proc")
def test_a_killed_worker_costs_nothing(tmp_path: Path) -> None:
    local = subprocess.run(
        command(tmp_path / "local"), check=True, capture_output=True, text=True, timeout=300
    )
    sweep = subprocess.Popen(
        command(tmp_path / "ray", "--on", "ray"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    killed = None
    until = time.monotonic() + 120
    while killed is None and time.monotonic() < until and sweep.poll() is None:
        written = list((tmp_path / "ray" / "records").glob("*.jsonl"))
        if sum(path.read_bytes().count(b"\n") for path in written) >= 3:
            for pid in shard_workers(sweep.pid)[:1]:
                os.kill(pid, signal.SIGKILL)
                killed = pid
        time.sleep(0.02)
    answer, _ = sweep.communicate(timeout=300)
    assert killed is not None, "the sweep ended before a worker could be killed"
    assert sweep.returncode == 0
    on_ray, here = json.loads(answer), json.loads(local.stdout)
    assert on_ray["n"] == here["n"] == TASKS
    assert on_ray["pass"] == here["pass"]
    scores = [(tmp_path / name / "scores.jsonl").read_bytes() for name in ("local", "ray")]
    assert scores[0] == scores[1]
    records = [
        json.loads(line)["task"]
        for path in (tmp_path / "ray" / "records").glob("*.jsonl")
        for line in path.read_bytes().split(b"\n")[:-1]
    ]
    assert len(records) == len(set(records)) == TASKS
    assert len(list((tmp_path / "ray" / "records").glob("*.jsonl"))) >= 2
