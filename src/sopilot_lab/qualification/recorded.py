"""A check on runs that are there already: a model's own sweeps, and where it stood in them."""

from __future__ import annotations

from collections.abc import Sequence

from sopilot.machine.machine import Machine
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.replay import program_changes, whole_events
from sopilot.messages.errors import UserMistake
from sopilot.program.model import Program
from sopilot.trace.files import TraceFile
from sopilot.values.json import JSON
from sopilot.views.catalogue import VIEWS
from sopilot_lab.experiments.recorded_runs import RecordedRun
from sopilot_lab.qualification.cursor import Cursor, cursors_of
from sopilot_lab.qualification.prepared import PreparedCheck, Questions
from sopilot_lab.qualification.probe import spread
from sopilot_lab.qualification.record import RunRecord
from sopilot_lab.qualification.rehearsal import Rehearsal
from sopilot_lab.qualification.rule import ARMS_CHECKED, RULE_VERSION
from sopilot_lab.statistics.outcomes import TaskKind

_MOST_RUNS = 60
"""A cursor costs a replay: so many runs have more places than a probe has questions."""


_NOTHING = Rehearsal({}, {}, (), ())


def recorded_check(
    model: str, label: str, recorded: Sequence[RecordedRun], probe: int
) -> PreparedCheck:
    """The runs of one model, by its ``label`` in them, under the arms that a check knows. The
    probe asks about places in those that passed under a machine."""
    others = sorted({item.configuration.model for item in recorded} - {label})
    if others:
        raise UserMistake(
            f"these are runs of {', '.join(others)}, which say nothing about {label}: name the "
            "folders of one model, and the model as `lab run` did"
        )
    counted = [item for item in recorded if item.configuration.arm in ARMS_CHECKED]
    if not counted:
        arms = ", ".join(sorted({item.configuration.arm for item in recorded}))
        raise UserMistake(
            f"these runs are under {arms}: the rule knows {', '.join(ARMS_CHECKED)} alone"
        )
    runs = tuple(_run(item) for item in counted)
    if len({run.key for run in runs}) < len(runs):
        raise UserMistake(
            "some task was run twice under one arm: name the folder of one repetition and tool list"
        )
    questions, sessions = _questions(counted, probe)
    under = {run.arm for run in runs}
    arms_run = tuple(arm for arm in ARMS_CHECKED if arm in under)
    tasks = sorted({run.case for run in runs})
    configuration: dict[str, JSON] = {
        "model": model,
        "arms": list(arms_run),
        "cases": [*tasks],
        "recorded": sorted({item.record.fingerprint for item in counted}),
        "probe": probe,
        "rule_version": RULE_VERSION,
    }
    return PreparedCheck(
        configuration, arms_run, len(tasks), _NOTHING, questions,
        runs=runs, recorded=label, sessions=sessions,
    )  # fmt: skip


def _run(recorded_run: RecordedRun) -> RunRecord:
    record = recorded_run.record
    kind = TaskKind.EXECUTE if record.should_succeed else TaskKind.REFUSE
    return RunRecord(
        case=record.task,
        domain=record.domain,
        goal=record.goal,
        kind=str(kind),
        arm=recorded_run.configuration.arm,
        passed=record.passed,
        ending=record.ending,
        reasons=(record.reason,) if record.reason else (),
        post_goal_calls=record.r2,
        requests=record.agent_turns,
        domain_calls=len(record.calls),
        prompt_tokens=record.prompt_tokens,
        cached_tokens=record.cached_tokens,
        completion_tokens=record.completion_tokens,
        seconds=record.seconds,
    )


def _questions(counted: Sequence[RecordedRun], count: int) -> tuple[Questions, int]:
    if not count:
        return [], 0
    passed = [
        entry for entry in counted if VIEWS[entry.configuration.arm].machine and entry.record.passed
    ]
    stored = [entry for entry in passed if entry.file is not None]
    if passed and not stored:
        raise UserMistake(
            "no trace was kept of these runs, so nobody knows where they stood: run the sweep with "
            "`--traces`, or ask nothing with `--probe 0`"
        )
    share = max(1, -(-len(stored) // _MOST_RUNS))
    cursors: list[Cursor] = []
    programs: dict[tuple[str, str], Program] = {}
    sessions = 0
    for item in stored[::share]:
        trace = item.trace()
        if trace is None:
            continue
        result = _cursors(trace, f"{item.record.task}/{item.configuration.arm}", programs)
        sessions += bool(result)
        cursors += result
    return [(entry, programs[entry.case, entry.goal]) for entry in spread(cursors, count)], sessions


def _cursors(trace: TraceFile, case: str, programs: dict[tuple[str, str], Program]) -> list[Cursor]:
    events = whole_events(trace.events, trace.payloads)
    if program_changes(events):
        return []
    held = ProgramSet.from_texts(trace.programs, trace.program_texts).programs
    programs.update({(case, goal): program for goal, program in held.items()})
    return cursors_of(Machine(held), events, case)
