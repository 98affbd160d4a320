from __future__ import annotations

from sopilot.cli.output import progress as show_progress
from sopilot.cli.output import say
from sopilot_lab.experiments.record import BenchRecord


class SweepWatcher:
    """Says at once what broke; counts for whoever watches."""

    def __init__(self, asked: int) -> None:
        self._asked = asked
        self.judged = 0

    def __call__(self, record: BenchRecord) -> None:
        self.judged += not record.discarded
        if record.discarded:
            show_progress("", same_line=True)
            say(f"broken ({record.fault or 'provider'}): {record.task}: {record.reason}", err=True)
        else:
            show_progress(f"{self.judged}/{self._asked} {record.task}", same_line=True)
