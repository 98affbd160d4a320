"""What a sweep came to, for people: what is missing stands before what passed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sopilot.language.diagnostics.plain_text import counted, table

_MOST_NAMED = 40


def summary_lines(summary: dict[str, Any]) -> Iterator[str]:
    configuration = summary["configuration"]
    if "stopped" in summary:
        yield f"stopped: {summary['stopped']}\n"
    if summary["missing"]:
        yield from _missing(summary, configuration["arm"])
    yield table(_rows(summary), ["", f"{configuration['model']}, {configuration['arm']}"])
    if "assumption" in summary:
        yield f"\n{summary['assumption']}"
    for each in summary["failures"]:
        yield f"\nfailed ({_state(each)}): {each['task']}"
        yield f"  {each['proof'] or ', '.join(each['objections']) or each['reason']}"
    proved = [each for each in summary["failures"] if _state(each) == "unreachable"]
    if proved:
        yield f"\n{len(proved)} of {len(summary['failures'])} failures cannot be avoided"


def _missing(summary: dict[str, Any], arm: str) -> Iterator[str]:
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
