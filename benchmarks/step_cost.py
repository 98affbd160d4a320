"""What a step costs now against an earlier revision, on one machine, in one run.

Run: python benchmarks/step_cost.py [REVISION] [ROUNDS]

Each revision is checked out into a folder of its own and runs its own `vm_step.py` (the machine
alone) and `session_step.py` of today (a session in memory, with and without a guarded goal); the
two take turns, and the best round of each is compared, because a shared machine only ever adds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAST_RELEASE = "e12f0f3"
"""The revision before values were proven."""
MOST = {"machine": 1.15, "session": 1.15, "guarded session": 1.35}
"""Where something is guarded, every verdict also gets its grade, which it did not get before."""
STEPS = {
    "machine": ("vm_step.py", re.compile(r"^step .*best round ([0-9.]+)", re.MULTILINE)),
    "session": ("session_step.py", re.compile(r"unguarded: best walk ([0-9.]+)")),
    "guarded session": ("session_step.py", re.compile(r" guarded: best walk ([0-9.]+)")),
}


def best_rounds(checkout: Path) -> dict[str, float]:
    found = {}
    for name, (script, figure) in STEPS.items():
        printed = _run(checkout, script)
        match = figure.search(printed)
        if match is None:
            raise SystemExit(f"no figure in what {checkout.name} printed:\n{printed}")
        found[name] = float(match.group(1))
    return found


def _run(checkout: Path, script: str) -> str:
    paths = os.pathsep.join([str(checkout / "src"), str(checkout / "benchmarks")])
    return subprocess.run(
        [sys.executable, str(checkout / "benchmarks" / script)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def compare(revision: str, rounds: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        then = Path(folder) / "then"
        subprocess.run(
            ["git", "-C", str(ROOT), "worktree", "add", "--detach", "-q", str(then), revision],
            check=True,
        )
        # That revision knows no such script; beside its own, it walks what that walks.
        shutil.copy(ROOT / "benchmarks" / "session_step.py", then / "benchmarks")
        try:
            before, after = [], []
            for _ in range(rounds):
                before.append(best_rounds(then))
                after.append(best_rounds(ROOT))
        finally:
            subprocess.run(
                ["git", "-C", str(ROOT), "worktree", "remove", "--force", str(then)], check=True
            )
    steps: dict[str, dict[str, float]] = {}
    for name in STEPS:
        was, now = (min(each[name] for each in taken) for taken in (before, after))
        steps[name] = {
            "microseconds_before": was,
            "microseconds_now": now,
            "ratio": round(now / was, 3),
            "at_most": MOST[name],
        }
    return {
        "command": f"python benchmarks/step_cost.py {revision} {rounds}",
        "date": date.today().isoformat(),
        "revision": revision,
        "rounds": rounds,
        "steps": steps,
        "passed": all(each["ratio"] <= each["at_most"] for each in steps.values()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?", default=LAST_RELEASE)
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    revision, rounds = options.revision, options.rounds
    if rounds < 1:
        raise SystemExit("at least one round is needed")
    found = compare(revision, rounds)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(found, indent=2))
    return 0 if found["passed"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
