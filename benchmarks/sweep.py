"""All 830 SOPBench tasks: by the reference executor, by agents without a policy, and in words.

    python benchmarks/sweep.py reference [--folder FOLDER] [--runner inspect|plain] [--only SWEEP]
                                         [--limit N] [--json FILE]
    python benchmarks/sweep.py wording [--domain NAME] [--json FILE]

`reference` runs every sweep in a fresh folder, or continues those in FOLDER. `--only` names one
(`reference-pg-official`), `--limit` takes a part of the tasks. Exits 1 unless the reference
executor passes everything that can be passed, every failure has its proof, and the audit finds
nothing in its runs. The figures include the sweeps on record that were not run just now, each
with the commit that it was run at. `wording` compares the official arms with SOPBench's own text;
it exits 1 unless every text is upstream's byte for byte and every sentence corresponds.
"""

from __future__ import annotations

import json
import platform
import tempfile
from pathlib import Path
from typing import Any

from campaign import parts
from evidence import commit, figures_of
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.experiments.summary import summarise
from sopilot_lab.experiments.sweep import Runner, make_configuration, run_sweep
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.reach import reach_cache, survey
from sopilot_lab.sopbench.wording import check_official

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


def name(arm: str, model: str, tools: str) -> str:
    return f"{model}-{arm}-{tools}"


def run_all(base: Path, runner: Runner | None, only: str, limit: int | None) -> dict[str, Any]:
    known = [name(*sweep) for sweep in SWEEPS]
    if only not in ("", *known):
        raise SystemExit(f"no sweep is called `{only}`; there are: {', '.join(known)}")
    upstream = shared_upstream()
    references = select_tasks("all", upstream, limit=limit)
    rows: list[dict[str, Any]] = []
    for arm, model, tools in SWEEPS:
        if only not in ("", name(arm, model, tools)):
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
        row["pass"] >= (LEAST[row["tools"]] if limit is None else row["reachable"])
        and not row["failures_without_proof"]
        and not row["findings"]
        for row in rows
        if row["model"] == "reference"
    )
    return {
        "passed": met,
        "what": f"{len(references)} SOPBench tasks, scored by the official evaluator",
        "met": met,
        "least": LEAST,
        "upstream_commit": upstream.checkout.commit,
        "python": platform.python_version(),
        "sweeps": rows,
    }


def merged(written: dict[str, Any]) -> dict[str, Any]:
    """Add the sweeps on record that weren't run just now, if they have as many tasks."""
    kept = figures_of("sopbench/reference")
    made = {(row["arm"], row["model"], row["tools"]): row for row in written["sweeps"]}
    if kept["what"] != written["what"]:
        return written
    for row in kept["sweeps"]:
        key = (row["arm"], row["model"], row["tools"])
        made.setdefault(key, {"commit": kept.get("commit", "unknown")} | row)
    order = [each for each in SWEEPS if each in made]
    rows = [made[key] for key in order]
    return kept | written | {"met": written["met"] and kept["met"], "sweeps": rows}


def reference(folder: Path | None, runner: str, only: str, limit: int | None) -> dict[str, Any]:
    """Run the sweeps."""
    chosen: Runner | None = "plain" if runner == "plain" else "inspect" if runner else None
    with tempfile.TemporaryDirectory(prefix="sopilot-sweeps-") as scratch:
        return merged(run_all(folder or Path(scratch), chosen, only, limit))


def wording(domain: str) -> dict[str, Any]:
    """Compare the official arms with SOPBench's own text."""
    upstream = shared_upstream()
    report = check_official(select_tasks(domain, upstream), "official", upstream)
    commit = upstream.checkout.commit
    return {"passed": report.holds, **report.as_json(), "upstream_commit": commit}


if __name__ == "__main__":
    parts(
        __doc__,
        reference=(reference, {"folder": Path, "runner": "", "only": "", "limit": int}),
        wording=(wording, {"domain": "all"}),
    )
