"""The small local model for real: the qualification, and the lens on a recorded session.

    python benchmarks/local_model.py [--minutes 25] [--moments 2] [--json FILE]

Needs the extras `local` and `lens`. Exits 1 if the check finds nothing (too few cases, a broken
endpoint), takes longer than half an hour or says anything but *do not page*, or if the lens fails
its own sanity (shares sum to 1, removing nothing changes nothing).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from campaign import main

LONGEST_CHECK = 1_800.0
_LONG = ("session", "parity_by_layer_and_head", "moments")


def sopilot(home: Path, *words: str) -> dict[str, Any]:
    """One command with ``--json``; a run that ends in a finding is an answer too."""
    done = subprocess.run(
        [sys.executable, "-m", "sopilot.cli.main", *words, "--json"],
        env={**os.environ, "SOPILOT_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def checked(home: Path, minutes: float) -> dict[str, Any]:
    verdict = sopilot(home, "qualify", "--model", "local", "--minutes", str(minutes))
    keys = ("answer", "page", "arm", "representation", "cases", "planned", "stopped_by",
            "rule_version")  # fmt: skip
    return {key: verdict[key] for key in keys} | {
        "conditions": {
            condition["name"]: condition["figures"] for condition in verdict["conditions"]
        },
        "not_met": [
            condition["name"] for condition in verdict["conditions"] if not condition["met"]
        ],
        "arms": {
            arm: {key: row[key] for key in ("n", "pass", "requests", "prompt_tokens")}
            for arm, row in verdict["arms"].items()
        },
        "probe": {key: verdict["probe"][key] for key in ("questions", "localisation", "score")},
        "used": verdict["used"],
    }


def looked_at(home: Path, moments: int) -> dict[str, Any]:
    run = sopilot(home, "run", "bank", "--goal", "transfer", "--view", "pg")
    report = sopilot(home, "lab", "lens", run["session"], "--moments", str(moments))
    return {key: value for key, value in report.items() if key not in _LONG}


def sane(lens: dict[str, Any]) -> bool:
    sums: dict[tuple[str, str], float] = {}
    for line in lens["regions"]:
        for share in ("length_share", "attention_share"):
            key = (line["presentation"], share)
            sums[key] = sums.get(key, 0.0) + line[share]
    nothing = lens["removed"]["nothing"]["nats"]
    return all(abs(share - 1) < 1e-6 for share in sums.values()) and abs(nothing) < 1e-6


def judged(check: dict[str, Any], lens: dict[str, Any]) -> dict[str, Any]:
    """A check with too few pairs has found nothing, so it has not passed."""
    met = {
        "found something": check["answer"] not in ("too few", "broken"),
        "do not page": check["answer"] == "do not page",
        "within half an hour": check["used"]["seconds"] <= LONGEST_CHECK,
        "lens sane": sane(lens),
    }
    return {"check": check, "lens": lens, "met": met}


def measure(minutes: float, moments: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        figures = judged(checked(Path(folder), minutes), looked_at(Path(folder), moments))
    return {"passed": all(figures["met"].values()), **figures}


if __name__ == "__main__":
    main(__doc__, measure, minutes=25.0, moments=2)
