"""The small local model for real: the discipline check, and the lens on a recorded session.

    python benchmarks/local_model.py [--minutes 25] [--moments 2] [--json FILE]

Needs the extras `local` and `lens`. Exits 1 if the check takes longer than half an hour or
recommends paging, or if the lens fails its own sanity (shares sum to 1, removing nothing
changes nothing).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LONGEST_CHECK = 1_800.0
_LONG = ("session", "parity_by_layer_and_head", "moments")


def sopilot(home: Path, *words: str) -> dict[str, Any]:
    """One command with ``--json``; a run that ends in a finding is an answer too."""
    done = subprocess.run(
        [sys.executable, "-m", "sopilot.doors.cli.main", *words, "--json"],
        env={**os.environ, "SOPILOT_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def checked(home: Path, minutes: float) -> dict[str, Any]:
    found = sopilot(home, "gate", "--model", "local", "--minutes", str(minutes))
    keys = ("page", "arm", "representation", "cases", "planned", "stopped_by", "rule_version")
    return {key: found[key] for key in keys} | {
        "conditions": {one["name"]: one["found"] for one in found["conditions"]},
        "not_met": [one["name"] for one in found["conditions"] if not one["met"]],
        "arms": {
            arm: {key: one[key] for key in ("n", "pass", "requests", "prompt_tokens")}
            for arm, one in found["arms"].items()
        },
        "probe": {key: found["probe"][key] for key in ("questions", "localisation", "score")},
        "used": found["used"],
    }


def looked_at(home: Path, moments: int) -> dict[str, Any]:
    run = sopilot(home, "run", "bank-desk", "--goal", "transfer", "--arm", "pg")
    found = sopilot(home, "lens", run["session"], "--moments", str(moments))
    return {key: value for key, value in found.items() if key not in _LONG}


def sane(lens: dict[str, Any]) -> bool:
    sums: dict[tuple[str, str], float] = {}
    for line in lens["regions"]:
        for share in ("length_share", "attention_share"):
            key = (line["presentation"], share)
            sums[key] = sums.get(key, 0.0) + line[share]
    nothing = lens["removed"]["nothing"]["nats"]
    return all(abs(one - 1) < 1e-6 for one in sums.values()) and abs(nothing) < 1e-6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--moments", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check = checked(Path(folder), options.minutes)
        lens = looked_at(Path(folder), options.moments)
    met = {
        "do not page": not check["page"],
        "on enough pairs": "enough" not in check["not_met"],
        "within half an hour": check["used"]["seconds"] <= LONGEST_CHECK,
        "lens sane": sane(lens),
    }
    text = json.dumps({"check": check, "lens": lens, "met": met}, indent=1)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    print(text)
    sys.exit(0 if all(met.values()) else 1)


if __name__ == "__main__":
    main()
