"""Run the same tasks with 1, 2 and 4 workers and interrupted; compare archives and tables.

    python benchmarks/archive_order.py [--tasks 28] [--json FILE]

Each archive is packed from folders in another order and verified without SOPBench. Exits 1 if
`lab verify` rejects an untouched archive, or if a table differs in anything but seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

ARMS = ("flat", "pg-paper", "fused")
WAYS = {"1 worker": 1, "2 workers": 2, "4 workers": 4, "interrupted": 2}


def lab(*words: str) -> list[str]:
    return [sys.executable, "-m", "sopilot.cli.main", "lab", *words]


def sweep(folder: Path, arm: str, tasks: int, workers: int, *, interrupt: bool) -> None:
    words = ["run", "--domain", "all", "--limit", str(tasks), "--model", "sloppy", "--arm", arm]
    command = lab(*words, "--runner", "plain", "--workers", str(workers), "-o", str(folder))
    quiet = subprocess.DEVNULL
    if interrupt:
        first = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
        records = folder / "records"
        until = time.monotonic() + 60
        while time.monotonic() < until and first.poll() is None:
            if sum(one.stat().st_size for one in records.glob("*.jsonl")) > 0:
                break
            time.sleep(0.02)
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    subprocess.run(command, stdout=quiet, stderr=quiet, check=True)


def tables(archive: Path) -> dict[str, Any]:
    """Without the machine's seconds."""
    with zipfile.ZipFile(archive) as packed:
        found: dict[str, Any] = json.loads(packed.read("analysis/tables.json"))
    found.pop("wall-clock", None)
    for table in found.values():
        if "seconds" in table["header"]:
            place = table["header"].index("seconds")
            table["rows"] = [[*row[:place], *row[place + 1 :]] for row in table["rows"]]
    return found


def compare(base: Path, tasks: int) -> dict[str, Any]:
    elsewhere = {key: value for key, value in os.environ.items() if key != "SOPBENCH_HOME"}
    elsewhere["XDG_CACHE_HOME"] = str(base / "no-checkout")
    expected: dict[str, Any] | None = None
    rows = []
    for number, (way, workers) in enumerate(WAYS.items()):
        folders = [base / way / arm for arm in ARMS]
        for folder, arm in zip(folders, ARMS, strict=True):
            sweep(folder, arm, tasks, workers, interrupt=way == "interrupted")
        order = [*folders[number % 3 :], *folders[: number % 3]][:: -1 if number % 2 else 1]
        archive = base / f"{number}.zip"
        packed = lab("archive", *map(str, order), "-o", str(archive))
        subprocess.run(packed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        checked = subprocess.run(
            lab("verify", str(archive), "--json"),
            env=elsewhere, capture_output=True, text=True, check=False,
        )  # fmt: skip
        found = tables(archive)
        expected = expected or found
        differ = [name for name in found if found[name] != expected.get(name)]
        problems = json.loads(checked.stdout)["problems"]
        rows.append({"way": way, "verified": not problems, "tables": len(found), "differ": differ})
    passed = all(row["verified"] and not row["differ"] for row in rows)
    return {"tasks": tasks, "arms": list(ARMS), "archives": rows, "passed": passed}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=28)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = compare(Path(scratch), given.tasks)
    for row in found["archives"]:
        print(row)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(not found["passed"])


if __name__ == "__main__":
    sys.exit(main())
