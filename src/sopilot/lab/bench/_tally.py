"""Counts over verdicts of the official evaluator, whoever made the runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Tally:
    """``not_reached`` are execute tasks whose goal was never reached, for whatever reason: a
    refusal, a budget, a broken call; ``wrongly_reached`` refusal tasks whose goal was.
    ``sequence_only`` are failures with the right final state
    and no violation, whose order of calls alone is wrong."""

    n: int = 0
    passed: int = 0
    execute: int = 0
    execute_passed: int = 0
    refuse: int = 0
    refuse_passed: int = 0
    not_reached: int = 0
    wrongly_reached: int = 0
    sequence_only: int = 0

    @property
    def balanced(self) -> float | None:
        """The mean of execute and refusal accuracy; undefined without both classes."""
        if not self.execute or not self.refuse:
            return None
        return (self.execute_passed / self.execute + self.refuse_passed / self.refuse) / 2


def tally(verdicts: Iterable[Mapping[str, Any]]) -> Tally:
    rows = list(verdicts)
    execute = [row for row in rows if row["action_should_succeed"]]
    refuse = [row for row in rows if not row["action_should_succeed"]]
    return Tally(
        n=len(rows),
        passed=_passed(rows),
        execute=len(execute),
        execute_passed=_passed(execute),
        refuse=len(refuse),
        refuse_passed=_passed(refuse),
        not_reached=sum(not row["action_successfully_called"] for row in execute),
        wrongly_reached=sum(bool(row["action_successfully_called"]) for row in refuse),
        sequence_only=sum(sequence_only(row) for row in rows),
    )


def sequence_only(verdict: Mapping[str, Any]) -> bool:
    right = ("no_tool_call_error", "constraint_not_violated", "database_match")
    return (
        not verdict["success"]
        and not verdict["dirgraph_satisfied"]
        and bool(verdict["action_called_correctly"])
        and all(verdict[key] for key in right)
    )


def _passed(rows: Iterable[Mapping[str, Any]]) -> int:
    return sum(bool(row["success"]) for row in rows)


def objections(verdict: Mapping[str, Any]) -> list[str]:
    """What the evaluator holds against a run. `action_should_succeed` is a label of the task,
    not one of them."""
    return [key for key, value in verdict.items() if value is False and key not in _NO_OBJECTION]


_NO_OBJECTION = frozenset({"success", "action_should_succeed"})
