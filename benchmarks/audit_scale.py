"""Every session of a large store audited: `sopilot audit --all`, by one process and by two.

    python benchmarks/audit_scale.py [--sessions 100000] [--folder FOLDER] [--json FILE]

The store is that of `records_scale.py` (SQLite, one recorded walk a session), and stays in FOLDER.
All are judged by two processes, and the time counts; a twentieth of them by one process, by two
and, where the extra `ray` is installed, by one and two workers of a Ray cluster of this machine,
whose own start is taken off: how much faster two are is told. Exit 1 where a session is not
judged clean, or 100,000 would take more than ten minutes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from records_scale import filled_once
from sopilot.stores.sqlite import SQLiteStore

MOST_MINUTES = 10.0
SOPILOT = [sys.executable, "-m", "sopilot.cli.main"]
NOTHING, A_TWENTIETH = ("--from", "2027-06-01"), ("--from", "2026-12-13T18:00:00")
"""Of sessions spread over 2026."""


def audited(spec: str, *arguments: str) -> tuple[float, dict[str, Any]]:
    command = [*SOPILOT, "audit", "--all", "--store", spec, "--json", *arguments]
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - begun
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return seconds, json.loads(done.stdout)["batch"]


def one_and_two(spec: str, *where: str) -> dict[str, Any]:
    """Seconds for a twentieth, without those for none, which are the start's."""
    taken = {}
    for workers in ("1", "2"):
        beginning = audited(spec, "--workers", workers, *where, *NOTHING)[0]
        seconds, found = audited(spec, "--workers", workers, *where, *A_TWENTIETH)
        taken[workers] = seconds - beginning
    return {
        "sessions": found["sessions"],
        "seconds_of_one": round(taken["1"], 2),
        "seconds_of_two": round(taken["2"], 2),
        "ratio": round(taken["1"] / taken["2"], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        there = folder / "sqlite"
        there.mkdir(parents=True, exist_ok=True)
        spec = f"sqlite:{there / 's.db'}"
        filled_once(SQLiteStore(there / "s.db", synchronous="NORMAL"), given.sessions, there)
        seconds, found = audited(spec, "--workers", "2")
        figures: dict[str, Any] = {
            "sessions": found["sessions"],
            "clean": found["clean"],
            "seconds": round(seconds, 1),
            "minutes_for_100000": round(seconds / found["sessions"] * 1e5 / 60, 1),
            "processes": one_and_two(spec),
        }
        if importlib.util.find_spec("ray") is not None:
            figures["ray"] = one_and_two(spec, "--on", "ray")
    print(json.dumps(figures, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    passed = figures["clean"] == figures["sessions"] == given.sessions
    sys.exit(0 if passed and figures["minutes_for_100000"] <= MOST_MINUTES else 1)


if __name__ == "__main__":
    main()
