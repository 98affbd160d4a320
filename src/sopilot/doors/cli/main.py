"""The command group. Commands load on use, so that ``sopilot --help`` is instant."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from sopilot import __version__
from sopilot.language.diagnostics import RunEnded, SopilotError, UserMistake, did_you_mean

COMMANDS = {
    "demo": "One request carried out, one refused, with everything to see.",
    "run": "Run one session of a handbook.",
    "resume": "Go on with an interrupted session.",
    "chat": "Play the user yourself.",
    "new": "A handbook to start from, with scenarios.",
    "compile": "Handbooks to verified programs.",
    "check": "Verify handbooks and programs, a line a finding.",
    "test": "Scenario tests of a handbook, and what none of them reached.",
    "format": "Lay handbooks out; comments and order stay.",
    "schema": "The JSON Schema of handbooks, for editors.",
    "show": "What a model would see of an SOP.",
    "explain": "Why a guard is there, which recipe won, what was factored.",
    "sessions": "Sessions that are kept, and where each one stands.",
    "register": "Every action of all sessions: when, what, who approved, how far proven.",
    "seal": "Seal the log of all sessions, and send the head elsewhere.",
    "verify": "Hold a store against a sealed head: what is missing, what was altered.",
    "prove": "Proofs that a session stands in the log, or that the log only grew.",
    "approve": "Approve, reject or amend a call that waits for people.",
    "trace": "Export, sign and verify traces.",
    "audit": "Judge a session, a trace or a transcript by its SOP.",
    "bench": "SOPBench, scored by its own oracle; sweeps and reports.",
    "stats": "Exact paired tests, clustered permutation, intervals.",
    "gate": "Know your model before you page: the discipline check.",
    "lens": "Where an open-weight model looks in a recorded session.",
    "play": "Let any agent play a task, move by move.",
    "mcp": "Serve a handbook over MCP; stand in front of MCP servers.",
}
"""With a line of help each. The module of that name has the click command `command`."""


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"sopilot.doors.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], COMMANDS)
            raise click.UsageError(f"no such command `{args[0]}`; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sopilot")
def sopilot() -> None:
    """Compile standard operating procedures into programs, run them, prove what was checked.

    Exit codes: 0 good, 1 findings or failed checks, 2 misuse.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    try:
        sopilot.main(args=list(arguments) if arguments is not None else None, prog_name="sopilot")
    except UserMistake as mistake:
        click.echo(str(mistake), err=True)
        sys.exit(2)
    except (RunEnded, SopilotError) as ended:
        click.echo(f"sopilot: {ended}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
