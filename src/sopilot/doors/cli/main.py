"""The command group. Commands load on use, so that ``sopilot --help`` is instant."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from sopilot import __version__
from sopilot.doors.cli.output import print_json, say
from sopilot.language.diagnostics import (
    Diagnostic,
    Place,
    SopilotError,
    UserMistake,
    did_you_mean,
    mistake,
    render_diagnostics,
    visible,
)

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
    "store": "Make and renew the tables of a store; find calls that were left open.",
    "seal": "Seal the log of all sessions, and send the head elsewhere.",
    "verify": "Hold a store against a sealed head: what is missing, what was altered.",
    "prove": "Proofs that a session stands in the log, or that the log only grew.",
    "approve": "Approve, reject or amend a call that waits for people.",
    "people": "Who may decide: tokens, roles, limits, deputies.",
    "trace": "Export, sign and verify traces.",
    "audit": "Judge a session, a trace or a transcript by its SOP.",
    "deviations": "What was found wrong, and what was done about it.",
    "handbooks": "Versions: who wrote and signed them, when they hold.",
    "privacy": "Contents: who reads them, how long they stay, erasing them.",
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
    open_streams()
    given = list(arguments) if arguments is not None else sys.argv[1:]
    sys.exit(run(given))


def run(given: Sequence[str]) -> int:
    """The exit code. Whatever is wrong is told; nothing escapes but a fault of ours, by name."""
    try:
        _check_text(given)
        code = sopilot.main(args=list(given), prog_name="sopilot", standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as ended:
        return _flushed(ended.code if isinstance(ended.code, int) else int(bool(ended.code)))
    except click.Abort:
        say("\nstopped", err=True)
        return 130
    except click.ClickException as misuse:
        return _failed(given, [Diagnostic("usage", misuse.format_message())], 2, _usage(misuse))
    except UserMistake as mistake:
        return _failed(given, mistake.diagnostics, 2)
    except SopilotError as ended:
        return _failed(given, [Diagnostic("ended", str(ended))], 1, visible(f"sopilot: {ended}"))
    except OSError as problem:
        return _lost(problem) if problem.filename is None else _failed(given, [_of(problem)], 2)
    except RecursionError:
        deep = Diagnostic("too-deep", "something that was given is nested too deeply to be read")
        return _failed(given, [deep], 2)
    return code if isinstance(code, int) else 0


def _check_text(given: Sequence[str]) -> None:
    for argument in given:
        try:
            argument.encode()
        except UnicodeEncodeError:
            cure = "write it in the encoding of this terminal"
            raise mistake(
                "not-text", f"`{argument}` holds bytes that are no text", help=cure
            ) from None


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except OSError as problem:
        return _lost(problem)
    return code


def _usage(misuse: click.ClickException) -> str:
    text = f"Error: {misuse.format_message()}"
    ctx = misuse.ctx if isinstance(misuse, click.UsageError) else None
    if ctx is None:
        return text
    return f"{ctx.get_usage()}\nTry '{ctx.command_path} --help' for help.\n\n{text}"


def _of(problem: OSError) -> Diagnostic:
    message = f"the file cannot be used: {problem.strerror}"
    return Diagnostic("unusable-file", message, Place(str(problem.filename)))


def _failed(
    given: Sequence[str], found: Sequence[Diagnostic], code: int, text: str | None = None
) -> int:
    """A person reads stderr; who asked for JSON gets an object in any case."""
    try:
        say(text if text is not None else render_diagnostics(found), err=True)
        if "--json" in given:
            print_json({"errors": [one.as_json() for one in found]}, indent=None)
        sys.stdout.flush()
    except OSError as problem:
        return _lost(problem)
    return code


def _lost(problem: OSError) -> int:
    """What was to be told went nowhere: a full disk, a closed stream, a reader that left."""
    # Or the interpreter would try again at its end, and print what came of it.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if problem.errno != errno.EPIPE:
        with suppress(OSError):
            say(f"sopilot: {problem.strerror or problem}", err=True)
    return 1


def open_streams() -> None:
    """A stream that was closed is opened on nothing, before a file takes its number: reading
    ends at once, writing fails as it would have."""
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


if __name__ == "__main__":
    main()
