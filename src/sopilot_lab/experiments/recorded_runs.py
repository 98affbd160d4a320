"""The runs in folders of `lab run`, with the traces that were kept of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sopilot.files.text import read_text
from sopilot.messages.diagnostic import Diagnostic, Place
from sopilot.messages.errors import TraceError, UserMistake
from sopilot.trace.files import TraceFile, read_trace
from sopilot_lab.experiments.record import BenchRecord, RunConfiguration
from sopilot_lab.experiments.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A judged run; ``file`` is its trace, ``None`` where none was kept."""

    record: BenchRecord
    configuration: RunConfiguration
    file: Path | None

    def trace(self) -> TraceFile | None:
        if self.file is None:
            return None
        try:
            trace = read_trace(read_text(self.file))
        except TraceError as error:
            message = f"this trace cannot be read: {error}"
            raise UserMistake([Diagnostic("bad-trace", message, Place(str(self.file)))]) from error
        if trace.session_id != self.record.run_id:
            return None  # that of a run which was made again
        return trace


def recorded_runs(paths: Iterable[Path]) -> list[RecordedRun]:
    """Of each folder, or of the run folders in it."""
    results = []
    for path in paths:
        folders = _folders(path)
        if not folders:
            message, cure = "there are no runs in it", "name a folder that `lab run -o` made"
            raise UserMistake([Diagnostic("empty", message, Place(str(path)), cure)])
        for folder in folders:
            for task, record in folder.records().items():
                file = folder.trace_file(task)
                results.append(
                    RecordedRun(record, folder.configuration, file if file.exists() else None)
                )
    return results


def _folders(path: Path) -> list[RunFolder]:
    if (path / "configuration.json").exists():
        return [RunFolder.open(path)]
    return [RunFolder.open(each.parent) for each in sorted(path.glob("*/configuration.json"))]
