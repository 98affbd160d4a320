"""Records and answers made by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.model import Handbook
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot_lab.experiments.run_folder import BenchRecord, RecordedRun
from sopilot_lab.qualification.plan import arm_configuration
from sopilot_lab.qualification.probe import Cursor


def briefing_of(handbook: Handbook) -> Briefing:
    programs = {goal: one.program for goal, one in compile_handbook(handbook).items()}
    return Briefing(handbook, programs)


def records(
    passed: Mapping[str, Mapping[int, bool]],
    *,
    goals: int = 10,
    after: Mapping[str, int] | None = None,
    tokens: Mapping[str, int] | None = None,
) -> Iterator[RecordedRun]:
    """``passed``: arm → case → verdict. Even cases execute, odd ones refuse."""
    for arm, verdicts in passed.items():
        configuration = arm_configuration("m", arm)
        for case, good in verdicts.items():
            execute = case % 2 == 0
            record = BenchRecord(
                run_id=f"{arm}-{case}",
                task=f"c{case}",
                domain="d",
                goal=f"g{(case // 2) % goals}",
                fingerprint=configuration.fingerprint,
                handbook_sha256="",
                program_sha256="",
                ending="executed" if execute else "refused",
                verdict={"success": good, "action_should_succeed": execute},
                r2=(after or {}).get(arm, 0) if execute else None,
                prompt_tokens=(tokens or {}).get(arm, 100),
            )
            yield RecordedRun(record, configuration, execute)


def changed(run: RecordedRun, **fields: object) -> RecordedRun:
    return replace(run, record=replace(run.record, **fields))  # type: ignore[arg-type]


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
