"""Kill a running sweep at random moments, continue it, and compare its scores byte by byte.

    python benchmarks/kill_sweep.py [--kills 20] [--tasks 60] [--runner plain|inspect]

Writes evidence/sopbench-kills.json.
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

EVIDENCE = Path(__file__).parent.parent / "evidence" / "sopbench-kills.json"


def command(folder: Path, tasks: int, runner: str) -> list[str]:
    run = [sys.executable, "-m", "sopilot.cli.main", "bench", "run", "--domain", "all"]
    options = ["--limit", str(tasks), "--runner", runner, "--workers", "2", "--json"]
    return [*run, *options, "-o", str(folder)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--runner", default="plain", choices=["plain", "inspect"])
    parser.add_argument("--seed", type=int, default=27)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as scratch:
        whole, killed = Path(scratch, "whole"), Path(scratch, "killed")
        begun = time.monotonic()
        subprocess.run(
            command(whole, arguments.tasks, arguments.runner), check=True, stdout=subprocess.DEVNULL
        )
        seconds = time.monotonic() - begun
        progress: list[int] = []
        only_leader = 0
        while len(progress) < arguments.kills:
            before = len(records(killed))
            sweep = subprocess.Popen(
                command(killed, arguments.tasks, arguments.runner),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            # Some kills fall into the start, most into the work.
            if draw.random() < 0.8:
                while sweep.poll() is None and len(records(killed)) == before:
                    time.sleep(0.01)
            time.sleep(draw.uniform(0, 0.5 * seconds / arguments.kills))
            if draw.random() < 0.3:  # workers that outlive their leader must stop by themselves
                sweep.kill()
                only_leader += 1
            else:
                os.killpg(sweep.pid, signal.SIGKILL)
            sweep.wait()
            progress.append(len(records(killed)))
        subprocess.run(
            command(killed, arguments.tasks, arguments.runner),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        tasks = [json.loads(line)["task"] for line in records(killed)]
        scores = [(folder / "scores.jsonl").read_bytes() for folder in (whole, killed)]
    written = {
        "what": "a sweep killed at random moments and continued, against an uninterrupted one",
        "kills": len(progress),
        "of_the_leader_alone": only_leader,
        "tasks": arguments.tasks,
        "runner": arguments.runner,
        "records_after_each_kill": progress,
        "tasks_run_twice": len(tasks) - len(set(tasks)),
        "identical": scores[0] == scores[1],
        "sha256": hashlib.sha256(scores[0]).hexdigest(),
    }
    EVIDENCE.write_text(json.dumps(written, indent=2) + "\n", "utf-8")
    print(json.dumps(written, indent=2))
    if not written["identical"] or written["tasks_run_twice"]:
        sys.exit(1)


def records(folder: Path) -> list[bytes]:
    return [
        line
        for path in sorted(folder.glob("records/*.jsonl"))
        for line in path.read_bytes().split(b"\n")[:-1]
    ]


if __name__ == "__main__":
    main()
