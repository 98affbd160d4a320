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
    others = sorted({one.configuration.model for one in recorded} - {label})
    if others:
        raise UserMistake(
            f"these are runs of {', '.join(others)}, which say nothing about {label}: name the "
            "folders of one model, and the model as `lab run` did"
        )
    counted = [one for one in recorded if one.configuration.arm in ARMS_CHECKED]
    if not counted:
        arms = ", ".join(sorted({one.configuration.arm for one in recorded}))
        raise UserMistake(
            f"these runs are under {arms}: the rule knows {', '.join(ARMS_CHECKED)} alone"
        )
    runs = tuple(_run(one) for one in counted)
    if len({one.key for one in runs}) < len(runs):
        raise UserMistake(
            "some task was run twice under one arm: name the folder of one repetition and tool list"
        )
    questions, sessions = _questions(counted, probe)
    under = {one.arm for one in runs}
    arms_run = tuple(arm for arm in ARMS_CHECKED if arm in under)
    tasks = sorted({one.case for one in runs})
    configuration: dict[str, JSON] = {
        "model": model,
        "arms": list(arms_run),
        "cases": [*tasks],
        "recorded": sorted({one.record.fingerprint for one in counted}),
        "probe": probe,
        "rule_version": RULE_VERSION,
    }
    return PreparedCheck(
        configuration, arms_run, len(tasks), _NOTHING, questions,
        runs=runs, recorded=label, sessions=sessions,
    )  # fmt: skip


def _run(one: RecordedRun) -> RunRecord:
    record = one.record
    kind = TaskKind.EXECUTE if record.should_succeed else TaskKind.REFUSE
    return RunRecord(
        case=record.task,
        domain=record.domain,
        goal=record.goal,
        kind=str(kind),
        arm=one.configuration.arm,
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
    passed = [one for one in counted if VIEWS[one.configuration.arm].machine and one.record.passed]
    kept = [one for one in passed if one.file is not None]
    if passed and not kept:
        raise UserMistake(
            "no trace was kept of these runs, so nobody knows where they stood: run the sweep with "
            "`--traces`, or ask nothing with `--probe 0`"
        )
    share = max(1, -(-len(kept) // _MOST_RUNS))
    cursors: list[Cursor] = []
    programs: dict[tuple[str, str], Program] = {}
    sessions = 0
    for one in kept[::share]:
        trace = one.trace()
        if trace is None:
            continue
        found = _cursors(trace, f"{one.record.task}/{one.configuration.arm}", programs)
        sessions += bool(found)
        cursors += found
    return [(one, programs[one.case, one.goal]) for one in spread(cursors, count)], sessions


def _cursors(trace: TraceFile, case: str, programs: dict[tuple[str, str], Program]) -> list[Cursor]:
    events = whole_events(trace.events, trace.payloads)
    if program_changes(events):
        return []
    held = ProgramSet.from_texts(trace.programs, trace.program_texts).programs
    programs.update({(case, goal): program for goal, program in held.items()})
    return cursors_of(Machine(held), events, case)
