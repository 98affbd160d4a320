"""Events, places and findings for readings by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vm_programs import TRANSFER
from vm_runs import ARGUMENTS, Run, decided

from sopilot.audit.audit import audit_trace
from sopilot.audit.state import AuditState, ProcessView
from sopilot.machine.layout import Position, ProgramLayout, lay_out, locate
from sopilot.machine.replay import Replay
from sopilot.machine.state import Configuration, Frame, Process
from sopilot.program.model import Program
from sopilot.trace.events import Event, SelectBranch
from sopilot.values.json import Judge

REF = {"$ref": "00", "bytes": 5}
TRANSFERS = {"transfer": TRANSFER}
CODE = lay_out(TRANSFER)


def audit_state(programs: Mapping[str, Program], judge: Judge | None = None) -> AuditState:
    return AuditState(Replay(programs), judge)


def event(kind: str = "domain_call", seq: int = 9, actor: str = "model", **payload: Any) -> Event:
    return Event(seq, float(seq), actor, kind, "p1", "", payload)


def at(label: str, values: dict[str, Any] | None = None, code: ProgramLayout = CODE) -> ProcessView:
    given = dict(ARGUMENTS) if values is None else values
    goal = code.program.entry
    frame = Frame(goal, label, given, {}, 0, goal)
    state = Process("p1", goal, "", given, (frame,), known=given)
    return ProcessView("p1", goal, code, state)


def position(run: AuditState, process: ProcessView) -> Position:
    """Where the process stands, as the active one of the run."""
    run.processes["p1"] = process
    run.configuration = Configuration({"p1": process.state}, "p1")
    here = locate(run.replay.machine.programs, run.configuration)
    assert here is not None
    return here


def findings(run: Run, *more: Event, **options: Any) -> list[tuple[int, str]]:
    programs = {goal: one.program for goal, one in run.machine.programs.layouts.items()}
    found = audit_trace(programs, [*run.events, *more], **options).findings
    return [(one.seq, one.code) for one in found]


def accepted() -> Run:
    """At the goal's own call."""
    run = decided()
    run.ok(SelectBranch())
    return run


def ending(run: Run, kind: str, place: str, **payload: Any) -> Event:
    seq = len(run.events)
    return Event(seq, float(seq), "model", kind, "p1", place, payload)
