"""``sopilot bench``: SOPBench, scored by its own oracle."""

from __future__ import annotations

import importlib

import click

# command → (module, attribute, one line of help)
COMMANDS: dict[str, tuple[str, str, str]] = {
    "run": (
        "sopilot.doors.cli.bench_run",
        "run",
        "Run tasks and score them by the official evaluator.",
    ),
    "study": ("sopilot.doors.cli.bench_study", "study", "A whole study as one file."),
    "reach": ("sopilot.doors.cli.bench_reach", "reach", "Which tasks a perfect executor can pass."),
    "baselines": (
        "sopilot.doors.cli.bench_recorded",
        "baselines",
        "Official configurations, recomputed from their recordings.",
    ),
    "defects": ("sopilot.doors.cli.bench_reach", "defects", "Replay the screened goals."),
    "screen": ("sopilot.doors.cli.bench_recorded", "screen", "Goals that no recorded run passes."),
    "wording": (
        "sopilot.doors.cli.bench_wording",
        "wording",
        "Check the official arms against SOPBench's own text.",
    ),
    "report": (
        "sopilot.doors.cli.bench_report",
        "report",
        "The study's tables from folders of runs.",
    ),
    "archive": (
        "sopilot.doors.cli.bench_archive",
        "archive",
        "Pack folders of runs for publication.",
    ),
    "verify": (
        "sopilot.doors.cli.bench_archive",
        "verify",
        "Check an archive and count its tables again.",
    ),
}


class BenchGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.group(cls=BenchGroup, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """SOPBench, read from a checkout at SOPBENCH_HOME and scored by its own oracle."""
