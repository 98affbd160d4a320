"""All 830 SOPBench tasks by the reference executor and by agents without a policy.

    python benchmarks/sweep.py [FOLDER] [--runner inspect|plain]

Runs every sweep in a fresh folder, or continues those in FOLDER, and writes
evidence/sopbench-reference.json. Exits 1 unless the reference executor passes everything that
can be passed, every failure has its proof, and the audit finds nothing in its runs.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from sopilot.bench import shared_upstream
from sopilot.bench.reach_survey import reach_cache, survey
from sopilot.bench.shard import Runner
from sopilot.bench.summary import summarise
from sopilot.bench.sweep import make_configuration, run_sweep, select_tasks

EVIDENCE = Path(__file__).parent.parent / "evidence" / "sopbench-reference.json"
LEAST = {"official": 814, "full-state": 822}
SWEEPS = [
    ("pg", "reference", "full-state"),
    ("pg", "reference", "official"),
    ("flat", "reference", "full-state"),
    ("flat", "reference", "official"),
    ("pg", "null", "official"),
    ("pg", "refuse-always", "official"),
    ("pg", "call-everything", "official"),
]
KEPT = (
    "n", "pass", "execute", "refuse", "reachable", "share_of_reachable", "balanced_accuracy",
    "over_refusal", "under_refusal", "sequence_only", "r2", "findings", "missing", "discarded",
    "seconds", "tasks_per_second", "overhead_ms_per_task", "loop_ms_per_task", "runner",
    "workers", "ran", "fingerprint",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--runner", choices=["inspect", "plain"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sopilot-sweeps-") as scratch:
        if not run_all(arguments.folder or Path(scratch), arguments.runner):
            sys.exit(1)


def run_all(base: Path, runner: Runner | None) -> bool:
    upstream = shared_upstream()
    references = select_tasks("all", upstream)
    rows: list[dict[str, Any]] = []
    for arm, model, tools in SWEEPS:
        configuration = make_configuration(upstream, arm=arm, model=model, tools=tools)
        folder = base / f"{model}-{arm}-{tools}"
        sweep = run_sweep(folder, configuration, references, runner=runner)
        reach = survey(references, tools, upstream, cache=reach_cache())
        summary = summarise(sweep, reach)
        if sweep.ran:
            sweep.folder.write_summary(summary)
        else:
            summary = json.loads((folder / "summary.json").read_text("utf-8"))
        unproved = [
            each["task"] for each in summary["failures"] if each["reachable"] or each["search_cut"]
        ]
        rows.append(
            {"arm": arm, "model": model, "tools": tools}
            | {key: summary[key] for key in KEPT}
            | {"failures_without_proof": unproved if model == "reference" else len(unproved)}
        )
        print(f"{model} {arm} {tools}: {summary['pass']}/{summary['n']} in {summary['seconds']} s")
    met = all(
        row["pass"] >= LEAST[row["tools"]]
        and not row["failures_without_proof"]
        and not row["findings"]
        for row in rows
        if row["model"] == "reference"
    )
    written = {
        "what": "all 830 SOPBench tasks, scored by the official evaluator",
        "met": met,
        "least": LEAST,
        "upstream_commit": upstream.checkout.commit,
        "python": platform.python_version(),
        "sweeps": rows,
    }
    EVIDENCE.write_text(json.dumps(written, indent=2) + "\n", "utf-8")
    print(f"met: {met}; written to {EVIDENCE.name}")
    return met


if __name__ == "__main__":
    main()
