"""Kill a running sweep at random moments, continue it, and compare its scores byte by byte.

    python benchmarks/kill_sweep.py [--kills 20] [--tasks 200] [--runner inspect plain] [--ray]

Every runner is killed as often as that. `--ray` adds a sweep on two local Ray workers, one of
which is killed. Writes evidence/sopbench-kills.json; exits 1 if one byte differs or a task
was run twice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def command(folder: Path, tasks: int, runner: str, on: str = "local") -> list[str]:
    run = [sys.executable, "-m", "sopilot.cli.main", "lab", "run", "--domain", "all"]
    options = ["--limit", str(tasks), "--runner", runner, "--workers", "2", "--on", on, "--json"]
    return [*run, *options, "-o", str(folder)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=200)
    runners = ["inspect", "plain"]
    parser.add_argument("--runner", nargs="+", default=runners, choices=runners)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch, "whole")
        begun = time.monotonic()
        finish(command(whole, arguments.tasks, "plain"))
        seconds = time.monotonic() - begun
        scores = (whole / "scores.jsonl").read_bytes()
        sweeps = []
        for runner in arguments.runner:
            draw = random.Random(f"{arguments.seed} {runner}")
            folder = Path(scratch, runner)
            killed = kill_and_continue(
                folder, arguments.tasks, runner, arguments.kills, draw, seconds
            )
            sweeps.append({"runner": runner, "on": "local"} | killed | compared(folder, scores))
        if arguments.ray:
            folder = Path(scratch, "ray")
            killed = kill_a_ray_worker(folder, arguments.tasks)
            sweeps.append({"runner": "plain", "on": "ray"} | killed | compared(folder, scores))
    written = {
        "what": "sweeps killed at random moments and continued, against an uninterrupted one",
        "tasks": arguments.tasks,
        "sha256": hashlib.sha256(scores).hexdigest(),
        "sweeps": sweeps,
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(written, indent=2))
    if not all(one["identical"] and not one["tasks_run_twice"] for one in sweeps):
        sys.exit(1)


def finish(sweep: list[str]) -> None:
    subprocess.run(sweep, check=True, stdout=subprocess.DEVNULL)


def kill_and_continue(
    folder: Path, tasks: int, runner: str, kills: int, draw: random.Random, seconds: float
) -> dict[str, Any]:
    progress: list[int] = []
    only_leader = after_the_end = 0
    while len(progress) < kills:
        before = len(records(folder))
        sweep = subprocess.Popen(
            command(folder, tasks, runner),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        # Some kills fall into the start, most into the work.
        if draw.random() < 0.8:
            while sweep.poll() is None and len(records(folder)) == before:
                time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.5 * seconds / kills))
        after_the_end += sweep.poll() is not None
        if draw.random() < 0.3:  # workers that outlive their leader must stop by themselves
            sweep.kill()
            only_leader += 1
        else:
            os.killpg(sweep.pid, signal.SIGKILL)
        sweep.wait()
        progress.append(len(records(folder)))
    finish(command(folder, tasks, runner))
    return {
        "kills": kills,
        "of_the_leader_alone": only_leader,
        "after_the_end": after_the_end,
        "records_after_each_kill": progress,
    }


def kill_a_ray_worker(folder: Path, tasks: int) -> dict[str, Any]:
    sweep = subprocess.Popen(command(folder, tasks, "plain", "ray"), stdout=subprocess.DEVNULL)
    written = 0
    while sweep.poll() is None:
        written = len(records(folder))
        workers = shard_workers(sweep.pid) if written >= tasks // 4 else []
        if workers:
            os.kill(workers[0], signal.SIGKILL)
            break
        time.sleep(0.02)
    if sweep.wait() != 0:
        sys.exit("the sweep on Ray failed")
    return {"kills": 1, "workers": 2, "records_after_each_kill": [written]}


def shard_workers(ancestor: int) -> list[int]:
    """Ray workers that run a shard, below the process that leads the sweep."""
    parents: dict[int, int] = {}
    working: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status, name = (entry / "stat").read_text(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
        if b"ray::run_shard" in name:
            working.append(int(entry.name))

    def below(pid: int) -> bool:
        while pid in parents and pid != ancestor:
            pid = parents[pid]
        return pid == ancestor

    return [pid for pid in working if below(pid)]


def compared(folder: Path, scores: bytes) -> dict[str, Any]:
    tasks = [json.loads(line)["task"] for line in records(folder)]
    return {
        "tasks_run_twice": len(tasks) - len(set(tasks)),
        "identical": (folder / "scores.jsonl").read_bytes() == scores,
    }


def records(folder: Path) -> list[bytes]:
    return [
        line
        for path in sorted(folder.glob("records/*.jsonl"))
        for line in path.read_bytes().split(b"\n")[:-1]
    ]


if __name__ == "__main__":
    main()
