"""``sopilot bench``: SOPBench, scored by its own oracle."""

from __future__ import annotations

import click

from sopilot.cli.lazy_group import LazyGroup

COMMANDS = {
    "run": ("bench_run.run", "Run tasks and score them by the official evaluator."),
    "study": ("bench_study.study", "A whole study as one file."),
    "reach": ("bench_reach.reach", "Which tasks a perfect executor can pass."),
    "baselines": (
        "bench_recorded.baselines",
        "Official configurations, recomputed from their recordings.",
    ),
    "defects": ("bench_reach.defects", "Replay the screened goals."),
    "screen": ("bench_recorded.screen", "Goals that no recorded run passes."),
    "wording": ("bench_wording.wording", "Check the official arms against SOPBench's own text."),
    "report": ("bench_report.report", "The study's tables from folders of runs."),
    "archive": ("bench_archive.archive", "Pack folders of runs for publication."),
    "verify": ("bench_archive.verify", "Check an archive and count its tables again."),
}


@click.group(cls=LazyGroup, package=__package__, commands_on_use=COMMANDS)
def command() -> None:
    """SOPBench, read from a checkout at SOPBENCH_HOME and scored by its own oracle."""
