"""What a step costs now against an earlier revision, on one machine, in one run.

Run: python benchmarks/step_cost.py [REVISION] [ROUNDS]

Each revision is checked out into a folder of its own and runs its own `vm_step.py`; the two
take turns, and the best round of each is compared, because a shared machine only ever adds.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from keeping import keep

ROOT = Path(__file__).resolve().parent.parent
LAST_RELEASE = "e12f0f3"
"""The revision before values were proven."""
MOST = 1.15
_BEST = re.compile(r"^step .*best round ([0-9.]+)", re.MULTILINE)


def best_round(checkout: Path) -> float:
    paths = os.pathsep.join([str(checkout / "src"), str(checkout / "benchmarks")])
    done = subprocess.run(
        [sys.executable, str(checkout / "benchmarks" / "vm_step.py")],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    found = _BEST.search(done.stdout)
    if found is None:
        raise SystemExit(f"no figure in what {checkout.name} printed:\n{done.stdout}")
    return float(found.group(1))


def compare(revision: str, rounds: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        then = Path(folder) / "then"
        subprocess.run(
            ["git", "-C", str(ROOT), "worktree", "add", "--detach", "-q", str(then), revision],
            check=True,
        )
        try:
            before, after = [], []
            for _ in range(rounds):
                before.append(best_round(then))
                after.append(best_round(ROOT))
        finally:
            subprocess.run(
                ["git", "-C", str(ROOT), "worktree", "remove", "--force", str(then)], check=True
            )
    ratio = min(after) / min(before)
    return {
        "command": f"python benchmarks/step_cost.py {revision} {rounds}",
        "date": date.today().isoformat(),
        "revision": revision,
        "rounds": rounds,
        "microseconds_before": min(before),
        "microseconds_now": min(after),
        "ratio": round(ratio, 3),
        "at_most": MOST,
        "passed": ratio <= MOST,
    }


def main() -> int:
    revision = sys.argv[1] if len(sys.argv) > 1 else LAST_RELEASE
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    if rounds < 1:
        raise SystemExit("at least one round is needed")
    found = compare(revision, rounds)
    keep(found, ROOT / "evidence" / "step-cost.json")
    print(json.dumps(found, indent=2))
    return 0 if found["passed"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
