"""Records made by hand, for the tests of the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sopilot_lab.qualification.cases import RunRecord


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
