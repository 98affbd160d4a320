"""The requests of a recorded session that a lens can look at."""

from __future__ import annotations

from pathlib import Path

from sopilot.agent.approvers import ScriptedTools
from sopilot.machine.machine import Machine
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.replay import program_changes, whole_events
from sopilot.messages.errors import UserMistake, mistake
from sopilot.runner.audit_inputs import TraceInput
from sopilot.runner.options import RunOptions
from sopilot.runner.sources import compile_source
from sopilot.trace.events import Event
from sopilot.trace.redaction import is_reference
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named
from sopilot_lab.experiments.run_folder import recorded_runs
from sopilot_lab.lens.moments import ReadMoment, moments_of, spread
from sopilot_lab.sopbench.reference import is_sopbench


def sweep_moments(
    folder: Path, arm_name: str | None, sessions: int, count: int
) -> tuple[list[ReadMoment], int]:
    """Of the runs of a sweep that passed, evenly over at most so many of them, and of how many."""
    passed = [
        recorded_run for recorded_run in recorded_runs([folder]) if recorded_run.record.passed
    ]
    stored = [entry for entry in passed if entry.file is not None]
    if not stored:
        raise UserMistake(
            "no trace of a passing run is kept here: run the sweep with `--traces`"
            if passed
            else "no run in this folder passed"
        )
    if len(stored) > sessions:
        stored = [stored[number * len(stored) // sessions] for number in range(sessions)]
    read_moments: list[ReadMoment] = []
    taken = 0
    for item in stored:
        trace = item.trace()
        if trace is None:
            continue
        task = item.record.task
        source = task if is_sopbench(task) else task.rpartition("/")[0]
        recorded = TraceInput(trace, source, True, item.record.goal)
        arm = arm_name or item.configuration.arm
        read_moments += chosen_moments(recorded, None, source, arm, item.record.goal, count)
        taken += 1
    return read_moments, taken


def chosen_moments(
    recorded: TraceInput,
    described: RunOptions | None,
    handbook: str | None,
    arm_name: str | None,
    goal: str | None,
    count: int,
) -> list[ReadMoment]:
    trace = recorded.trace
    events = whole_events(trace.events, trace.payloads)
    if program_changes(events):
        raise UserMistake("this session changed its programs on the way: no lens on it")
    source = handbook or (described.source if described is not None else None)
    if source is None:
        raise UserMistake("name the SOP of the trace with --handbook")
    if any(map(_keeps_words_back, events)):
        message = "this trace keeps back words that the model read: no request can be made again"
        cure = "look at the session in its store: sopilot lab lens ID --store STORE"
        raise mistake("withheld-words", message, help=cure)
    units = [unit for unit in compile_source(source) if unit.procedure.name in trace.programs]
    if not units:
        raise UserMistake(f"`{source}` has none of the goals of this session")
    programs = ProgramSet.from_texts(trace.programs, trace.program_texts)
    language = described.language if described is not None else "en"
    briefing = Briefing(
        units[0].handbook,
        {unit.procedure.name: unit.program for unit in units},
        language,
        units[0].own_text(language),
    )
    arm = view_named(arm_name or str(trace.about.get("view") or "pg"))
    offered = ScriptedTools(briefing.handbook.actions, {}).schemas()
    result = moments_of(
        Machine(programs.programs),
        events,
        briefing,
        arm,
        offered,
        goal or (described.goal if described is not None else None),
    )
    if not result:
        raise UserMistake("no request to a model is recorded in this session")
    chosen = spread(result, count)
    if not chosen:
        raise UserMistake(
            "no request of this session has a right next move that is known; "
            "name what the user wants with --goal"
        )
    return chosen


def _keeps_words_back(event: Event) -> bool:
    details = event.payload.get("details")
    calls = details.get("calls") if isinstance(details, dict) else details
    return is_reference(event.payload.get("text")) or is_reference(calls)
