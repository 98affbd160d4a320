"""The outcome of a run of a task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class TaskKind(StrEnum):
    """The right ending of a task: its goal is executed, or refused."""

    EXECUTE = "execute"
    REFUSE = "refuse"

    @classmethod
    def of(cls, should_succeed: bool) -> TaskKind:
        return cls.EXECUTE if should_succeed else cls.REFUSE


KINDS: Final = tuple(map(str, TaskKind))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """One run of one task under one arm by one model.

    ``task`` is unique within its domain. ``passed`` is ``None`` when the run was
    never judged (it broke, the oracle did not answer): such a run is left out
    and counted, not scored as a failure behind the reader's back.
    ``post_goal_calls`` is the number of domain calls after the goal action had
    succeeded, ``None`` where it never succeeded or was not measured.
    ``cluster`` overrides the unit that shares a program; it defaults to the goal
    within its domain.
    """

    task: str
    goal: str
    kind: TaskKind
    passed: bool | None
    arm: str = ""
    model: str = ""
    domain: str = ""
    cluster: str = ""
    run: int = 1
    post_goal_calls: int | None = None

    @property
    def unit(self) -> str:
        """The cluster that this outcome belongs to."""
        if self.cluster:
            return self.cluster
        return f"{self.domain}/{self.goal}" if self.domain else self.goal


def groups(outcomes: Iterable[RunOutcome]) -> dict[tuple[str, str], list[RunOutcome]]:
    """Outcomes by model and arm, in the order in which they first appear."""
    result: dict[tuple[str, str], list[RunOutcome]] = {}
    for outcome in outcomes:
        result.setdefault((outcome.model, outcome.arm), []).append(outcome)
    return result
