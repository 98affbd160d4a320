"""TASK: one task of any source, by its name."""

from __future__ import annotations

from pathlib import Path

from sopilot.desks.bundled import bundled_names
from sopilot.desks.tasks import Task
from sopilot.doors.sources._source import FolderSource, open_source
from sopilot.language.diagnostics import UserMistake, did_you_mean, mistake


def is_sopbench(reference: str) -> bool:
    return reference.startswith("sopbench:")


def is_task(reference: str) -> bool:
    """Whether it names one task, and not a whole source."""
    desk, slash, _ = reference.partition("/")
    return is_sopbench(reference) or "#" in reference or (desk in bundled_names() and bool(slash))


def lasting(reference: str) -> str:
    """The reference as a session keeps it: from another folder the file is still found."""
    source, mark, name = reference.rpartition("#")
    if not mark or is_sopbench(reference) or source in bundled_names():
        return reference
    return f"{Path(source).resolve()}#{name}"


def named_task(reference: str, *, tools: str = "official", language: str = "en") -> Task:
    """``tools`` matters to SOPBench alone."""
    if is_sopbench(reference):
        from sopilot.lab.bench.tasks import sopbench_task

        return sopbench_task(reference, tools=tools, language=language)
    source, mark, name = reference.rpartition("#")
    if not mark:
        source, mark, name = reference.partition("/")
        if source not in bundled_names() or not name:
            raise mistake(
                "unknown-task",
                f"`{reference}` names no task",
                help="write `bank-desk/TASK`, `my-desk.yaml#SCENARIO` or "
                f"`sopbench:bank/get_loan#3`; {did_you_mean(source, bundled_names())}",
            )
    opened = open_source(source)
    if isinstance(opened, FolderSource):
        raise UserMistake("the tools of a workflow folder are real: its tasks are run, not played")
    return opened.task(name, language=language)
