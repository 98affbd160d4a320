"""One case of a check: a request in a world that can be opened as often as there are arms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sopilot.lab.stats import Kind
from sopilot.runtime.agent import Briefing, Judge, Operator, SessionResult
from sopilot.runtime.session.protocols import Tools, User
from sopilot.runtime.vm import Event

JudgeRun = Callable[[SessionResult, Sequence[Event]], Sequence[str]]
"""Why the run failed; nothing for a pass."""


@dataclass(frozen=True, slots=True)
class World:
    """A fresh one for every run."""

    tools: Tools
    user: User
    judge: JudgeRun
    operator: Operator | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """``domain`` is the handbook's name, ``goal_action`` the action that carries the goal out,
    ``reader`` judges evidence for the reference executor."""

    id: str
    domain: str
    goal: str
    kind: Kind
    briefing: Briefing
    goal_action: str
    open: Callable[[], World]
    reader: Judge

    @property
    def key(self) -> str:
        return f"{self.domain}/{self.id}"
