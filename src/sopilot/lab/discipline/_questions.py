"""What identifies the programs of a plan, and which of its places the probe asks about."""

from __future__ import annotations

from collections.abc import Sequence

from sopilot.desks.tasks import Task
from sopilot.lab.discipline._cursor import Cursor
from sopilot.lab.discipline._probe import spread
from sopilot.lab.discipline._rehearsal import Rehearsal
from sopilot.language.program import Program
from sopilot.language.program.codec import program_hash
from sopilot.runtime.session.protocols import JSON


def program_hashes(plan: Sequence[Task]) -> dict[str, JSON]:
    return {
        f"{case.source}/{goal}": program_hash(program)
        for case in plan
        for goal, program in case.briefing.programs.items()
    }


def chosen_questions(
    plan: Sequence[Task], rehearsal: Rehearsal, count: int
) -> list[tuple[Cursor, Program]]:
    programs = {case.key: case.briefing.programs for case in plan}
    usable = [cursor for cursor in rehearsal.cursors if cursor.case in programs]
    return [(one, programs[one.case][one.goal]) for one in spread(usable, count)] if count else []
