"""``sopilot lab``: the research commands."""

from __future__ import annotations

import click

from sopilot.cli.lazy_group import LazyGroup

COMMANDS = {
    "run": ("run.run", "Run tasks and score them with the official evaluator."),
    "study": ("study.study", "Plan, run and report a whole study from one file."),
    "report": ("report.report", "Print every table of the study from folders of runs."),
    "archive": ("archive.archive", "Pack folders of runs for publication."),
    "verify": ("archive.verify", "Check an archive and recompute its tables."),
    "lens": ("lens.command", "Show where an open-weight model looks in a recorded session."),
    "sopbench": ("sopbench.sopbench", "Check SOPBench itself: reach, defects, recordings, text."),
    "stats": ("stats.command", "Test paired outcomes: exact tests, intervals, power."),
    "play": ("sopilot.cli.play:command", "Let any agent play a task, one move at a time."),
}


@click.group(cls=LazyGroup, package=__package__, commands_on_use=COMMANDS)
def command() -> None:
    """Run experiments on SOPBench and on your own handbooks, and analyse them.

    SOPBench is read from a checkout at SOPBENCH_HOME. Statistics need the extra `lab`.
    """
