"""The requests of a recorded session that a lens can look at."""

from __future__ import annotations

from sopilot.doors.sources._source import compile_source
from sopilot.doors.sources.audit_inputs import TraceInput
from sopilot.doors.sources.run_options import RunOptions
from sopilot.lab.lens import ReadMoment, moments_of, spread
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.agent import Briefing, ScriptedTools, arm_named
from sopilot.runtime.session.program_set import ProgramSet
from sopilot.runtime.session.recovery import program_changes, whole_events
from sopilot.runtime.vm import Machine


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
    units = [unit for unit in compile_source(source) if unit.procedure.name in trace.programs]
    if not units:
        raise UserMistake(f"`{source}` has none of the goals of this session")
    programs = ProgramSet.from_texts(trace.programs, trace.program_texts)
    briefing = Briefing(
        units[0].handbook,
        {unit.procedure.name: unit.program for unit in units},
        described.language if described is not None else "en",
    )
    arm = arm_named(arm_name or str(trace.about.get("arm") or "pg"))
    offered = ScriptedTools(briefing.handbook.actions, {}).schemas()
    found = moments_of(
        Machine(programs.programs),
        events,
        briefing,
        arm,
        offered,
        goal or (described.goal if described is not None else None),
    )
    if not found:
        raise UserMistake("no request to a model is recorded in this session")
    chosen = spread(found, count)
    if not chosen:
        raise UserMistake(
            "no request of this session has a right next move that is known; "
            "name what the user wants with --goal"
        )
    return chosen
