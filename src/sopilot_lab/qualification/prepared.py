"""A check before it begins: the cases and arms, what it asks, what it takes, what identifies it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sopilot.messages.errors import UserMistake
from sopilot.program.codec import program_hash
from sopilot.program.model import Program
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.task import Task
from sopilot.values.json import JSON
from sopilot_lab.qualification.cursor import Cursor
from sopilot_lab.qualification.plan import planned
from sopilot_lab.qualification.probe import spread
from sopilot_lab.qualification.record import RunRecord
from sopilot_lab.qualification.rehearsal import Rehearsal, rehearse
from sopilot_lab.qualification.rule import ARMS_CHECKED, RULE_VERSION

READ_BY_REFERENCE: Final = frozenset({"flat", "pg", "fused", "full-cursor"})


Questions = list[tuple[Cursor, Program]]


@dataclass(frozen=True, slots=True)
class PreparedCheck:
    """``configuration`` identifies it; ``planned`` cases are to be run under ``arms``. One on
    runs that are there already has ``runs`` and no ``cases``; ``recorded`` is whose they are,
    ``sessions`` how many the questions come from."""

    configuration: dict[str, JSON]
    arms: tuple[str, ...]
    planned: int
    rehearsal: Rehearsal
    questions: Questions
    cases: tuple[Task, ...] = ()
    runs: tuple[RunRecord, ...] = ()
    recorded: str = ""
    sessions: int = 0


async def rehearsed_check(
    model: str, tasks: Sequence[Task], wanted: Sequence[str], cases: int, probe: int, scope: str
) -> PreparedCheck:
    """As many of the given cases as are wanted, without those that the reference fails."""
    arms = tuple(
        arm
        for arm in ARMS_CHECKED
        if arm in wanted and (model != "reference" or arm in READ_BY_REFERENCE)
    )
    plan = planned(tasks, cases)
    if not plan:
        raise UserMistake("there is no case that ends in an execution or a refusal")
    rehearsal = await rehearse(plan, arms, store_for=MemoryStore)
    plan = [case for case in plan if case.key not in rehearsal.unreachable]
    configuration: dict[str, JSON] = {
        "model": model,
        "arms": list(arms),
        "cases": [case.key for case in plan],
        "programs": _program_hashes(plan),
        "scope": scope,
        "probe": probe,
        "rule_version": RULE_VERSION,
    }
    questions = _chosen_questions(plan, rehearsal, 0 if model == "reference" else probe)
    return PreparedCheck(configuration, arms, len(plan), rehearsal, questions, tuple(plan))


def _program_hashes(plan: Sequence[Task]) -> dict[str, JSON]:
    return {
        f"{case.source}/{goal}": program_hash(program)
        for case in plan
        for goal, program in case.briefing.programs.items()
    }


def _chosen_questions(plan: Sequence[Task], rehearsal: Rehearsal, count: int) -> Questions:
    programs = {case.key: case.briefing.programs for case in plan}
    usable = [cursor for cursor in rehearsal.cursors if cursor.case in programs]
    return (
        [(item, programs[item.case][item.goal]) for item in spread(usable, count)] if count else []
    )
