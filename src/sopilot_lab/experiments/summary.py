"""The figures of a folder of runs, as data and at the terminal: missing runs before passed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sopilot.values.text import counted, table
from sopilot_lab.experiments.run_folder import NOT_RUN, BenchRecord, Missing, RunFolder
from sopilot_lab.experiments.sweep import Sweep
from sopilot_lab.sopbench.process import ToolList, Upstream
from sopilot_lab.sopbench.reach import Reach, survey_tasks
from sopilot_lab.sopbench.recorded import objections, tally
from sopilot_lab.statistics.outcomes import TaskKind

ASSUMPTION = (
    "verdicts of the reference executor come from upstream's own predicate functions on the "
    "task's state (the evidence-faithful assumption); everything else from frames, results and "
    "the user"
)


def whole_summary(sweep: Sweep, upstream: Upstream | None, tools: ToolList) -> dict[str, Any]:
    """Summarise a sweep, with the reachable tasks if there is a checkout, and its folder."""
    reach: Mapping[str, Reach] = {}
    if upstream is not None:
        wanted = {str(each) for each in sweep.planned} | set(sweep.folder.planned())
        reach = survey_tasks(wanted, tools, upstream)
    sweep.folder.write_summary(summarise_folder(sweep.folder, reach))
    return summarise(sweep, reach)


def summarise(sweep: Sweep, reach: Mapping[str, Reach]) -> dict[str, Any]:
    """The tasks of a sweep. ``reach`` is empty without a search."""
    wanted = {str(each) for each in sweep.planned}
    judged = [item for task, item in sweep.folder.records().items() if task in wanted]
    why = sweep.stopped and f"the sweep stopped before it: {sweep.stopped}"
    missing = [
        replace(item, reason=why) if item.fault == NOT_RUN and why else item
        for task, item in sweep.folder.missing().items()
        if task in wanted
    ]
    return {
        **summarise_folder(sweep.folder, reach, judged=judged, missing=missing),
        **({"stopped": sweep.stopped} if sweep.stopped else {}),
        **_times(sweep, judged),
    }


def summarise_folder(
    folder: RunFolder,
    reach: Mapping[str, Reach],
    *,
    judged: Sequence[BenchRecord] | None = None,
    missing: Sequence[Missing] | None = None,
) -> dict[str, Any]:
    """``n`` and ``pass`` are of the judged runs alone; ``intention_to_treat`` counts a missing
    task as failed, ``bounds`` as failed and as passed."""
    judged = list(folder.records().values()) if judged is None else judged
    missing = list(folder.missing().values()) if missing is None else missing
    counts = tally(record.verdict or {} for record in judged)
    reached_goal = [record.r2 for record in judged if record.r2 is not None]
    findings: Counter[str] = Counter()
    for record in judged:
        findings.update(record.findings or {})
    planned = len(judged) + len(missing)
    summary: dict[str, Any] = {
        "configuration": folder.configuration.as_json(),
        "fingerprint": folder.configuration.fingerprint,
        "asked": planned,
        "n": counts.n,
        "pass": counts.passed,
        "execute": {"n": counts.execute, "pass": counts.execute_passed},
        "refuse": {"n": counts.refuse, "pass": counts.refuse_passed},
        **_missing(missing, counts.passed, planned),
        **_redrawn(folder, judged),
        **_reachable(judged, reach),
        "balanced_accuracy": counts.balanced,
        "not_reached": counts.not_reached,
        "over_refusal": ends_not_reached(judged)["refused"],
        "not_reached_by_ending": dict(sorted(ends_not_reached(judged).items())),
        "under_refusal": counts.wrongly_reached,
        "sequence_only": counts.sequence_only,
        "r2": _share(sum(reached_goal), len(reached_goal)),
        "endings": dict(sorted(Counter(record.ending for record in judged).items())),
        "budgets_spent": dict(sorted(Counter(_budget(record) for record in judged).items())),
        "findings": dict(sorted(findings.items())),
        "used": _used(folder, judged),
        "failures": [_failure(record, reach) for record in judged if not record.passed],
    }
    summary["budgets_spent"].pop("", None)
    if folder.configuration.model == "reference" and reach:
        summary["assumption"] = ASSUMPTION
    return summary


def ends_not_reached(records: Iterable[BenchRecord]) -> Counter[str]:
    """How runs ended that should have reached their goal and did not: a refusal is only one
    way."""
    return Counter(
        record.ending
        for record in records
        if record.should_succeed and not (record.verdict or {})["action_successfully_called"]
    )


def _missing(missing: Sequence[Missing], passed: int, number: int) -> dict[str, Any]:
    reasons = Counter(item.fault for item in missing)
    return {
        "missing": len(missing),
        "missing_by_reason": dict(sorted(reasons.items())),
        "missing_by_kind": {
            "execute": sum(item.should_succeed for item in missing),
            "refuse": sum(not item.should_succeed for item in missing),
        },
        "intention_to_treat": _share(passed, number),
        "bounds": [_share(passed, number), _share(passed + len(missing), number)],
        "missing_tasks": [
            {"task": item.task, "fault": item.fault, "reason": item.reason, "runs": item.runs}
            for item in missing
        ],
    }


def _redrawn(folder: RunFolder, judged: Sequence[BenchRecord]) -> dict[str, Any]:
    """Broken runs that were made again: short runs survive more easily, so this shows
    the share of the redrawn tasks and the rate without them."""
    discarded = folder.discarded()
    broken = {record.task for record in discarded}
    again = [record for record in judged if record.task in broken]
    rest = [record for record in judged if record.task not in broken]
    return {
        "discarded": len(discarded),
        "discarded_by_reason": dict(sorted(Counter(r.fault or "?" for r in discarded).items())),
        "redrawn": {
            "tasks": len(again),
            "pass": sum(record.passed for record in again),
            "pass_without_them": _share(sum(record.passed for record in rest), len(rest)),
        },
    }


def _reachable(judged: Sequence[BenchRecord], reach: Mapping[str, Reach]) -> dict[str, Any]:
    if not reach:
        return {"reachable": None, "share_of_reachable": None}
    results = [record for record in judged if reach[record.task].reachable]
    share = _share(sum(record.passed for record in results), len(results))
    return {"reachable": len(results), "share_of_reachable": share}


def _used(folder: RunFolder, judged: Sequence[BenchRecord]) -> dict[str, Any]:
    """Tokens and money, of discarded runs and of the simulated user as well."""
    every = [*judged, *folder.discarded()]
    requests = [request for record in judged for request in record.requests]
    costs = [record.cost for record in every if record.cost is not None]
    return {
        "requests": sum(record.agent_turns for record in every),
        "attempts": sum(record.attempts for record in every),
        "prompt_tokens": sum(record.prompt_tokens for record in judged),
        "cached_tokens": sum(record.cached_tokens for record in judged),
        "completion_tokens": sum(record.completion_tokens for record in judged),
        "reasoning_tokens": sum(record.reasoning_tokens for record in judged),
        "simulator_tokens": sum(record.simulator_tokens for record in every),
        "discarded_tokens": sum(record.discarded_tokens for record in every)
        + sum(r.prompt_tokens + r.completion_tokens for r in every if r.discarded),
        "longest_prompt": max((request.get("prompt_tokens", 0) for request in requests), default=0),
        "finish_reasons": _counts(requests, "finish_reason"),
        "served_models": _counts(requests, "served_model"),
        "fingerprints": _counts(requests, "fingerprint"),
        "cost": round(sum(costs), 6) if costs else None,
    }


def _counts(requests: Sequence[Mapping[str, Any]], name: str) -> dict[str, int]:
    return dict(sorted(Counter(request[name] for request in requests if request.get(name)).items()))


def _budget(record: BenchRecord) -> str:
    """`context tokens`, `domain calls`, …: which of them a run spent, in the reason's words."""
    if record.ending != "budget":
        return ""
    words = record.reason.removesuffix(" is spent").split()
    return " ".join(words[4:])  # the budget of N …


def _failure(record: BenchRecord, reach: Mapping[str, Reach]) -> dict[str, Any]:
    result = reach.get(record.task)
    return {
        "task": record.task,
        "kind": str(TaskKind.of(record.should_succeed)),
        "ending": record.ending,
        "reason": record.reason,
        "objections": objections(record.verdict or {}),
        "reachable": result.reachable if result else None,
        "proof": result.proof if result else "",
        "search_cut": result.cut if result else None,
    }


def _times(sweep: Sweep, judged: Sequence[BenchRecord]) -> dict[str, Any]:
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


_MOST_NAMED = 40


def summary_lines(summary: dict[str, Any]) -> Iterator[str]:
    configuration = summary["configuration"]
    if "stopped" in summary:
        yield f"stopped: {summary['stopped']}\n"
    if summary["missing"]:
        yield from _missing_summary_text(summary, configuration["arm"])
    yield table(_rows(summary), ["", f"{configuration['model']}, {configuration['arm']}"])
    if "assumption" in summary:
        yield f"\n{summary['assumption']}"
    for each in summary["failures"]:
        yield f"\nfailed ({_state(each)}): {each['task']}"
        yield f"  {each['proof'] or ', '.join(each['objections']) or each['reason']}"
    proved = [each for each in summary["failures"] if _state(each) == "unreachable"]
    if proved:
        yield f"\n{len(proved)} of {len(summary['failures'])} failures cannot be avoided"


def _missing_summary_text(summary: dict[str, Any], arm: str) -> Iterator[str]:
    reasons = ", ".join(f"{name} ×{count}" for name, count in summary["missing_by_reason"].items())
    yield (
        f"{counted(summary['missing'], 'task')} of {summary['asked']} missing under `{arm}`: "
        f"{reasons}"
    )
    for each in summary["missing_tasks"][:_MOST_NAMED]:
        runs = counted(each["runs"], "run")
        yield f"  {each['task']}: {each['fault']} ({runs}): {each['reason']}"
    if summary["missing"] > _MOST_NAMED:
        yield f"  and {summary['missing'] - _MOST_NAMED} more: see --json"
    yield ""


def _rows(summary: dict[str, Any]) -> list[tuple[str, object]]:
    execute, refuse, used = summary["execute"], summary["refuse"], summary["used"]
    rows: list[tuple[str, object]] = [("pass, of the judged", _of(summary["pass"], summary["n"]))]
    if summary["missing"]:
        low, high = (100 * bound for bound in summary["bounds"])
        rows += [
            ("pass, of all asked (missing failed)", _of(summary["pass"], summary["asked"])),
            ("bounds (missing failed, passed)", f"{low:.1f}–{high:.1f} %"),
        ]
    if summary["reachable"] is not None:
        rows.append(("of the reachable", _of(summary["pass"], summary["reachable"])))
    rows += [
        ("execute", _of(execute["pass"], execute["n"])),
        ("refuse", _of(refuse["pass"], refuse["n"])),
        ("goal not reached", _endings(summary)),
        ("goal reached, should be refused", summary["under_refusal"]),
        ("sequence only", summary["sequence_only"]),
        ("R2", "–" if summary["r2"] is None else f"{summary['r2']:.3f}"),
    ]
    rows += [(f"ended by budget: {name}", n) for name, n in summary["budgets_spent"].items()]
    if summary["discarded"]:
        again = summary["redrawn"]
        rows += [
            ("runs broken", summary["discarded"]),
            ("pass among tasks made again", _of(again["pass"], again["tasks"])),
        ]
    if used["prompt_tokens"]:
        tokens = f"{used['prompt_tokens']} + {used['completion_tokens']}"
        rows += [("prompt and reply tokens", tokens), ("longest prompt", used["longest_prompt"])]
    rows += [
        (label, used[name])
        for label, name in (
            ("of these, reasoning", "reasoning_tokens"),
            ("tokens of discarded answers", "discarded_tokens"),
            ("tokens of the simulated user", "simulator_tokens"),
        )
        if used[name]
    ]
    if used["cost"] is not None:
        rows.append(("cost", f"{used['cost']:.4f}"))
    return [
        *rows,
        ("seconds", summary["seconds"]),
        ("tasks per second", summary["tasks_per_second"]),
        ("overhead, ms a task", summary["overhead_ms_per_task"]),
    ]


def _endings(summary: dict[str, Any]) -> str:
    by = ", ".join(f"{count} {name}" for name, count in summary["not_reached_by_ending"].items())
    return f"{summary['not_reached']}" + (f" ({by})" if by else "")


def _of(part: int, whole: int) -> str:
    return f"{part}/{whole}" + (f" ({100 * part / whole:.1f} %)" if whole else "")


def _state(failure: dict[str, Any]) -> str:
    if failure["reachable"] is None:
        return "not searched"
    if failure["reachable"]:
        return "reachable"
    return "unknown" if failure["search_cut"] else "unreachable"
