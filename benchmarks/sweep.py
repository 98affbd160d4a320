"""All 830 SOPBench tasks by the reference executor and by agents without a policy.

    python benchmarks/sweep.py [FOLDER] [--runner inspect|plain] [--only SWEEP] [--limit N]
                               [--json FILE]

Runs every sweep in a fresh folder, or continues those in FOLDER. `--only` names one
(`reference-pg-official`), `--limit` takes a part of the tasks. Exits 1 unless the reference
executor passes everything that can be passed, every failure has its proof, and the audit finds
nothing in its runs. In FILE the sweeps that were not run just now stay as they are, each with
the commit that it was run at. `python benchmarks/evidence.py sopbench-reference` keeps the figures.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from evidence import commit
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.experiments.summary import summarise
from sopilot_lab.experiments.sweep import Runner, make_configuration, run_sweep
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.reach_survey import reach_cache, survey

LEAST = {"official": 814, "full-state": 822}
ARMS = ("pg-paper", "flat", "full-cursor", "flat-protocol", "pg", "fused")
SWEEPS = [
    *((arm, "reference", tools) for arm in ARMS for tools in ("full-state", "official")),
    ("pg", "null", "official"),
    ("pg", "refuse-always", "official"),
    ("pg", "call-everything", "official"),
]
KEPT = (
    "n", "pass", "execute", "refuse", "reachable", "share_of_reachable", "balanced_accuracy",
    "not_reached", "over_refusal", "under_refusal", "sequence_only", "r2", "findings",
    "missing", "discarded",
    "seconds", "tasks_per_second", "overhead_ms_per_task", "loop_ms_per_task", "runner",
    "workers", "ran", "fingerprint",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--runner", choices=["inspect", "plain"])
    parser.add_argument("--only", choices=[name(*each) for each in SWEEPS])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--json", type=Path, help="also write the figures there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sopilot-sweeps-") as scratch:
        written = run_all(arguments, arguments.folder or Path(scratch))
    if arguments.json:
        whole = merged(written, arguments.json)
        arguments.json.write_text(json.dumps(whole, indent=2) + "\n", "utf-8")
    print(f"met: {written['met']}")
    if not written["met"]:
        sys.exit(1)


def merged(written: dict[str, Any], file: Path) -> dict[str, Any]:
    """With the other sweeps that the file holds, if they have as many tasks."""
    if not file.exists():
        return written
    kept = json.loads(file.read_text("utf-8"))
    made = {(row["arm"], row["model"], row["tools"]): row for row in written["sweeps"]}
    if kept["what"] != written["what"]:
        return written
    for row in kept["sweeps"]:
        key = (row["arm"], row["model"], row["tools"])
        made.setdefault(key, {"commit": kept.get("commit", "unknown")} | row)
    order = [each for each in SWEEPS if each in made]
    rows = [made[key] for key in order]
    return kept | written | {"met": written["met"] and kept["met"], "sweeps": rows}


def name(arm: str, model: str, tools: str) -> str:
    return f"{model}-{arm}-{tools}"


def run_all(arguments: argparse.Namespace, base: Path) -> dict[str, Any]:
    runner: Runner | None = arguments.runner
    upstream = shared_upstream()
    references = select_tasks("all", upstream, limit=arguments.limit)
    rows: list[dict[str, Any]] = []
    for arm, model, tools in SWEEPS:
        if arguments.only not in (None, name(arm, model, tools)):
            continue
        configuration = make_configuration(upstream, arm=arm, model=model, tools=tools)
        folder = base / name(arm, model, tools)
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
            {"arm": arm, "model": model, "tools": tools, "commit": commit()}
            | {key: summary[key] for key in KEPT}
            | {"failures_without_proof": unproved if model == "reference" else len(unproved)}
        )
        print(f"{model} {arm} {tools}: {summary['pass']}/{summary['n']} in {summary['seconds']} s")
    met = all(
        row["pass"] >= (LEAST[row["tools"]] if arguments.limit is None else row["reachable"])
        and not row["failures_without_proof"]
        and not row["findings"]
        for row in rows
        if row["model"] == "reference"
    )
    return {
        "what": f"{len(references)} SOPBench tasks, scored by the official evaluator",
        "met": met,
        "least": LEAST,
        "upstream_commit": upstream.checkout.commit,
        "python": platform.python_version(),
        "sweeps": rows,
    }


if __name__ == "__main__":
    main()
