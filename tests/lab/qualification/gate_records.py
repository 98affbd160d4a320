"""Records and answers made by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sopilot.values.json import JSON
from sopilot_lab.qualification.cases import RunRecord
from sopilot_lab.qualification.probe import Cursor


def records(
    passed: Mapping[str, Mapping[int, bool]],
    *,
    goals: int = 10,
    after: Mapping[str, int] | None = None,
    tokens: Mapping[str, int] | None = None,
) -> Iterator[RunRecord]:
    """``passed``: arm → case → verdict. Even cases execute, odd ones refuse."""
    for arm, verdicts in passed.items():
        for case, good in verdicts.items():
            execute = case % 2 == 0
            yield RunRecord(
                case=f"c{case}",
                domain="d",
                goal=f"g{(case // 2) % goals}",
                kind="execute" if execute else "refuse",
                arm=arm,
                passed=good,
                ending="executed" if execute else "refused",
                post_goal_calls=(after or {}).get(arm, 0) if execute else None,
                prompt_tokens=(tokens or {}).get(arm, 100),
            )


def all_but(failed: range, cases: int = 60) -> dict[int, bool]:
    return {case: case not in failed for case in range(cases)}


def perfect(cursor: Cursor) -> dict[str, JSON]:
    """The right answer to the probe's question."""
    operation, name = sorted(cursor.licensed)[0]
    return {
        "function": cursor.function,
        "step": cursor.step,
        "results": dict(cursor.results),
        "callers": list(cursor.callers),
        "next": {"operation": operation, "name": name},
    }
