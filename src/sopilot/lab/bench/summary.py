"""The figures of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sopilot.lab.bench._reach import Reach
from sopilot.lab.bench._tally import objections, tally
from sopilot.lab.bench.record import BenchRecord
from sopilot.lab.bench.reference import task_reference
from sopilot.lab.bench.sweep import Sweep

ASSUMPTION = (
    "verdicts of the reference executor come from upstream's own predicate functions on the "
    "task's state (the evidence-faithful assumption); everything else from frames, results and "
    "the user"
)


def summarise(sweep: Sweep, reach: Mapping[str, Reach]) -> dict[str, Any]:
    """``reach`` knows every task of the sweep. Tasks without a judged run count as ``missing``,
    neither as passed nor as failed."""
    records = sweep.folder.records()
    judged = [records[str(each)] for each in sweep.asked if str(each) in records]
    counts = tally(record.verdict or {} for record in judged)
    reachable = [record for record in judged if reach[record.task].reachable]
    reached_goal = [record.r2 for record in judged if record.r2 is not None]
    findings: Counter[str] = Counter()
    for record in judged:
        findings.update(record.findings or {})
    summary: dict[str, Any] = {
        "configuration": sweep.folder.configuration.as_json(),
        "fingerprint": sweep.folder.configuration.fingerprint,
        "n": counts.n,
        "pass": counts.passed,
        "execute": {"n": counts.execute, "pass": counts.execute_passed},
        "refuse": {"n": counts.refuse, "pass": counts.refuse_passed},
        "reachable": len(reachable),
        "share_of_reachable": _share(sum(record.passed for record in reachable), len(reachable)),
        "balanced_accuracy": counts.balanced,
        "not_reached": counts.not_reached,
        "over_refusal": ends_not_reached(judged)["refused"],
        "not_reached_by_ending": dict(sorted(ends_not_reached(judged).items())),
        "under_refusal": counts.wrongly_reached,
        "sequence_only": counts.sequence_only,
        "r2": _share(sum(reached_goal), len(reached_goal)),
        "findings": dict(sorted(findings.items())),
        "missing": len(sweep.asked) - len(judged),
        "discarded": len(sweep.folder.discarded()),
        "failures": [_failure(record, reach) for record in judged if not record.passed],
        **_times(sweep, judged),
    }
    if sweep.folder.configuration.model == "reference":
        summary["assumption"] = ASSUMPTION
    return summary


def whole_folder(sweep: Sweep) -> Sweep:
    """The same with every task that the folder holds: a folder may be filled by several
    commands, one a domain, and its summary is about all of them."""
    held = (task_reference(task) for task in sweep.folder.records())
    return replace(sweep, asked=tuple(dict.fromkeys([*held, *sweep.asked])))


def ends_not_reached(records: Iterable[BenchRecord]) -> Counter[str]:
    """How runs ended that should have reached their goal and did not: a refusal is only one
    way."""
    return Counter(
        record.ending
        for record in records
        if record.should_succeed and not (record.verdict or {})["action_successfully_called"]
    )


def _failure(record: BenchRecord, reach: Mapping[str, Reach]) -> dict[str, Any]:
    found = reach[record.task]
    return {
        "task": record.task,
        "kind": "execute" if record.should_succeed else "refuse",
        "ending": record.ending,
        "reason": record.reason,
        "objections": objections(record.verdict or {}),
        "reachable": found.reachable,
        "proof": found.proof,
        "search_cut": found.cut,
    }


def _times(sweep: Sweep, judged: list[BenchRecord]) -> dict[str, Any]:
    """``overhead_ms_per_task`` is everything that is neither model nor simulator, start of the
    workers and logs included; only the tasks that ran just now have a time."""
    loop = _share(sum(record.overhead_seconds for record in judged), len(judged))
    times: dict[str, Any] = {
        "ran": sweep.ran,
        "runner": sweep.runner,
        "workers": sweep.workers,
        "seconds": round(sweep.seconds, 3),
        "tasks_per_second": None,
        "overhead_ms_per_task": None,
        "loop_ms_per_task": None if loop is None else round(1000 * loop, 3),
    }
    if sweep.ran:
        times["tasks_per_second"] = round(sweep.ran / sweep.seconds, 3)
        if sweep.ran == len(judged):
            elsewhere = sum(each.model_seconds + each.world_seconds for each in judged)
            busy = sweep.seconds * sweep.workers - elsewhere
            times["overhead_ms_per_task"] = round(1000 * max(0.0, busy) / sweep.ran, 3)
    return times


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
