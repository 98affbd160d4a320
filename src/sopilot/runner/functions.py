"""Functions that need no runner: compile, check, audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path

from sopilot.audit.report import Report
from sopilot.files.text import read_text
from sopilot.messages.diagnostic import Diagnostic
from sopilot.messages.errors import UserMistake
from sopilot.program.model import Program
from sopilot.runner.audit_inputs import file_input, transcript_input
from sopilot.runner.check_findings import check_text
from sopilot.runner.sources import compile_source
from sopilot.values.json import JSON


def compile_programs(source: str | PathLike[str], *, goal: str | None = None) -> dict[str, Program]:
    """Compile a handbook; return its verified programs by goal."""
    return {unit.procedure.name: unit.program for unit in compile_source(fspath(source), goal=goal)}


def check(path: str | PathLike[str]) -> list[Diagnostic]:
    """Validate a handbook, program or scenario file."""
    return check_text(read_text(Path(path)), fspath(path))


def audit_trace(
    what: str | PathLike[str] | Sequence[Mapping[str, JSON]],
    *,
    handbook: str | PathLike[str] | None = None,
    goal: str | None = None,
) -> Report:
    """Judge a trace file, or any agent's messages (a file or a list), by its SOP. For stored
    sessions use ``Runner.audit``."""
    source = fspath(handbook) if handbook is not None else None
    if isinstance(what, str | PathLike):
        value = file_input(fspath(what), handbook=source, goal=goal)
    else:
        value = transcript_input("transcript", list(what), source, goal)
    reports = [item.report for item in value.audit()]
    if len(reports) != 1:
        raise UserMistake(f"this contains {len(reports)} transcripts: use `sopilot audit`")
    return reports[0]
