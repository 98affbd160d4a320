"""What a proof is read from, and the words in which it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sopilot.language.program.model import ActionFacts
from sopilot.runtime.audit._resolved_function import ResolvedFunction
from sopilot.runtime.audit._session_calls import SessionCall
from sopilot.runtime.audit._state import ProcessView
from sopilot.runtime.vm.values import JSON, Judge, shown


class AuditGrade(StrEnum):
    CLAIMED = "claimed"
    ATTESTED = "attested"
    STATED = "stated"
    PROVEN = "proven"


class Unreadable(Exception):
    """A value that the proof needs is withheld, or nobody can evaluate verdicts here."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What the trace shows by then. ``known`` are the process's values."""

    calls: Sequence[SessionCall]
    facts: Mapping[str, ActionFacts]
    goal_actions: frozenset[str]
    judge: Judge | None
    process: ProcessView
    known: Mapping[str, JSON]
    clock: str = ""
    """What the clock showed when it was noted last."""
    principals: tuple[ResolvedFunction, ...] = ()
    """The gates that are open for one customer at a time."""


@dataclass(frozen=True, slots=True)
class Lack:
    """Which finding it is that a clause fails, and why."""

    code: str
    why: str


@dataclass(frozen=True, slots=True)
class RecipeAnswers:
    """The answers to one whole recipe, by the names that it gives them (P7)."""

    named: Mapping[str, JSON]
    last: JSON
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LeafReading:
    """``holds`` is ``None`` where it is undecided; ``lack`` then says what is missing."""

    function: str
    predicate: str
    values: Mapping[str, JSON]
    holds: bool | None
    grade: AuditGrade = AuditGrade.CLAIMED
    evidence: tuple[int, ...] = ()
    lack: Lack | None = None


VALUE, NOTHING, OTHER, PART = (
    "unproven-value",
    "unproven-evidence",
    "evidence-wrong-arguments",
    "incomplete-evidence",
)
NEWER, STALE, VERDICT = "evidence-superseded", "evidence-stale", "unproven-verdict"
MODEL, GATE = "model-verdict", "gate-shut"
FURTHEST = (NOTHING, OTHER, VALUE, PART, NEWER, STALE, VERDICT)
"""Of several recipes the one that got furthest says what is missing."""


def told(action: str, arguments: Mapping[str, JSON]) -> str:
    values = ", ".join(f"{name}={shown(value)}" for name, value in arguments.items())
    return f"`{action}({values})`"
