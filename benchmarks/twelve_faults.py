"""Sweeps against an endpoint that fails in twelve ways, one after the other, at 30 % each.

    python benchmarks/twelve_faults.py [--tasks 24] [--rate 0.3] [--arms pg flat] [--json FILE]

For every fault and arm the same tasks as against the clean endpoint. Exits 1 if the score of
a task that was judged differs from the clean one's, a task that was asked for is neither
judged nor named with its reason, a broken run has a verdict, or nothing failed at all.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from faulty_endpoint import FAULTS, Endpoint, serving
from sopilot.agent.providers import Retries
from sopilot_lab.experiments.entrants import Contestant, Patience
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.experiments.summary import summarise
from sopilot_lab.experiments.sweep import Sweep, make_configuration, run_sweep
from sopilot_lab.sopbench.process import Upstream, shared_upstream
from sopilot_lab.sopbench.reference import TaskReference

QUICK = Patience(Retries(attempts=5, first_seconds=0.01), redraws=2, most_missing=1.0)
BUDGETS = {"request_seconds": 1.0}


def sweep(
    folder: Path,
    address: str,
    arm: str,
    tasks: tuple[TaskReference, ...],
    upstream: Upstream,
    *,
    user: str = "",
) -> Sweep:
    played = Contestant(user, "user", served="any") if user else Contestant("default")
    configuration = make_configuration(
        upstream, arm=arm, model="scripted", tools="official", user=played.label, budgets=BUDGETS
    )
    return run_sweep(
        folder, configuration, tasks,
        contestant=Contestant(address, "scripted", price=(1.0, 2.0)), user=played,
        patience=QUICK, runner="plain",
    )  # fmt: skip


def compared(clean: Sweep, faulty: Sweep) -> dict[str, Any]:
    """What must hold of a sweep against a faulty endpoint, counted."""
    known = _scores(clean)
    scores = _scores(faulty)
    summary = summarise(faulty, {})
    named = {one["task"] for one in summary["missing_tasks"] if one["fault"] and one["reason"]}
    asked = {str(each) for each in faulty.asked}
    return {
        "asked": len(asked),
        "judged": len(scores),
        "missing": summary["missing"],
        "missing_by_reason": summary["missing_by_reason"],
        "runs_broken": summary["discarded"],
        "pass": summary["pass"],
        "clean_pass": sum(row["passed"] for row in known.values()),
        "bounds": summary["bounds"],
        "other_scores": sum(row != known[task] for task, row in scores.items()),
        "unnamed": len(asked - scores.keys() - named),
        "verdicts_of_broken_runs": sum(
            record.verdict is not None for record in faulty.folder.discarded()
        ),
    }


def _scores(sweep: Sweep) -> dict[str, dict[str, Any]]:
    folder = sweep.folder
    return {task: each.score(folder.configuration) for task, each in folder.records().items()}


def holds(row: dict[str, Any]) -> bool:
    within = row["bounds"][0] <= row["clean_pass"] / row["asked"] <= row["bounds"][1]
    return within and not (row["other_scores"] or row["unnamed"] or row["verdicts_of_broken_runs"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=24)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--arms", nargs="+", default=["pg", "flat"])
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), choices=FAULTS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    upstream = shared_upstream()
    tasks = select_tasks("all", upstream, limit=options.tasks)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for arm in options.arms:
            with serving(Endpoint()) as address:
                clean = sweep(Path(scratch, arm, "clean"), address, arm, tasks, upstream)
            for fault in options.faults:
                endpoint = Endpoint(fault, options.rate)
                with serving(endpoint) as address:
                    faulty = sweep(Path(scratch, arm, fault), address, arm, tasks, upstream)
                row = {"arm": arm, "fault": fault, "requests": endpoint.requests}
                row |= {"requests_failed": endpoint.failed, **compared(clean, faulty)}
                rows.append(row)
                print(json.dumps(row), file=sys.stderr)
    good = all(holds(row) and row["requests_failed"] for row in rows)
    figures = {
        "what": "sweeps against an endpoint that fails, compared with the clean endpoint",
        "rate": options.rate,
        "sweeps": len(rows),
        "asked": sum(row["asked"] for row in rows),
        "judged": sum(row["judged"] for row in rows),
        "other_scores": sum(row["other_scores"] for row in rows),
        "unnamed": sum(row["unnamed"] for row in rows),
        "verdicts_of_broken_runs": sum(row["verdicts_of_broken_runs"] for row in rows),
        "rows": rows,
    }
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in figures.items() if key != "rows"}, indent=1))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
