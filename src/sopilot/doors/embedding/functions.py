"""What needs no desk: compile, check, audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path

from sopilot.adapters.text_files import read_text
from sopilot.doors.sources import compile_source
from sopilot.doors.sources.audit_inputs import file_input, transcript_input
from sopilot.doors.sources.checking import check_text
from sopilot.language.diagnostics import Diagnostic, UserMistake
from sopilot.language.program import Program
from sopilot.runtime.audit import Report
from sopilot.runtime.session.protocols import JSON


def compile_programs(source: str | PathLike[str], *, goal: str | None = None) -> dict[str, Program]:
    """The programs of a handbook, verified, by their goals."""
    return {unit.procedure.name: unit.program for unit in compile_source(fspath(source), goal=goal)}


def check(path: str | PathLike[str]) -> list[Diagnostic]:
    """Everything that is wrong with a handbook, program or scenario file."""
    return check_text(read_text(Path(path)), fspath(path))


def audit(
    what: str | PathLike[str] | Sequence[Mapping[str, JSON]],
    *,
    handbook: str | PathLike[str] | None = None,
    goal: str | None = None,
) -> Report:
    """A trace file, or what any agent said and did (a file or a list of messages), judged by its
    SOP. Sessions that are kept are judged by their desk."""
    source = fspath(handbook) if handbook is not None else None
    if isinstance(what, str | PathLike):
        given = file_input(fspath(what), handbook=source, goal=goal)
    else:
        given = transcript_input("transcript", list(what), source, goal)
    reports = [one.report for one in given.audit()]
    if len(reports) != 1:
        raise UserMistake(f"{len(reports)} transcripts are in it: use `sopilot audit`")
    return reports[0]
