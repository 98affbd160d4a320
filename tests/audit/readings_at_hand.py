"""Events, places and findings for readings by hand."""

from __future__ import annotations

from typing import Any

from vm_programs import TRANSFER
from vm_runs import ARGUMENTS, Run, decided

from sopilot.audit.audit import audit_trace
from sopilot.audit.state import FrameView, ProcessView, read_program
from sopilot.trace.events import Event, SelectBranch

REF = {"$ref": "00", "bytes": 5}
CODE = read_program("transfer", TRANSFER)


def event(kind: str = "domain_call", seq: int = 9, actor: str = "model", **payload: Any) -> Event:
    return Event(seq, float(seq), actor, kind, "p1", "", payload)


def at(label: str, values: dict[str, Any] | None = None, code: Any = CODE) -> ProcessView:
    given = dict(ARGUMENTS) if values is None else values
    frame = FrameView(code.entry, label, dict(given), None, 0, code.goal)
    return ProcessView("p1", code, [frame], given, dict(given))


def findings(run: Run, *more: Event, **options: Any) -> list[tuple[int, str, str]]:
    programs = {goal: one.program for goal, one in run.machine.programs.layouts.items()}
    found = audit_trace(programs, [*run.events, *more], **options).findings
    return [(one.seq, one.code, one.explanation) for one in found]


def accepted() -> Run:
    """At the goal's own call."""
    run = decided()
    run.ok(SelectBranch())
    return run


def ending(run: Run, kind: str, place: str, **payload: Any) -> Event:
    seq = len(run.events)
    return Event(seq, float(seq), "model", kind, "p1", place, payload)
