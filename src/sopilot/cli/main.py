"""The command group. Commands load on use, so that ``sopilot --help`` is instant."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from sopilot import __version__
from sopilot.cli.lazy_group import LazyGroup
from sopilot.cli.output import flushed, lost, open_streams, print_json, say
from sopilot.messages.diagnostic import Diagnostic, Place, render_diagnostics
from sopilot.messages.errors import SopilotError, UserMistake, mistake
from sopilot.values.text import visible

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
    "export": "Records of a time as a bundle, with a verifier that runs offline.",
    "prove": "Proofs that a session stands in the log, or that the log only grew.",
    "approve": "Approve, reject or amend a call that waits for people.",
    "people": "Who may decide: tokens, roles, limits, deputies.",
    "trace": "Export, sign and verify traces.",
    "audit": "Judge a session, a trace or a transcript by its SOP.",
    "deviations": "What was found wrong, and what was done about it.",
    "handbooks": "Versions: who wrote and signed them, when they hold.",
    "privacy": "Contents: who reads them, how long they stay, erasing them.",
    "qualify": (
        "sopilot_lab.cli.qualify:command",
        "Check whether a model qualifies for paging.",
    ),
    "lab": (
        "sopilot_lab.cli.lab:command",
        "Research: SOPBench runs, studies, reports, archives, statistics.",
    ),
    "mcp": "Serve a handbook over MCP; stand in front of MCP servers.",
}


@click.group(cls=LazyGroup, package=__package__, commands_on_use=COMMANDS)
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
        return flushed(ended.code if isinstance(ended.code, int) else int(bool(ended.code)))
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
        return lost(problem) if problem.filename is None else _failed(given, [_of(problem)], 2)
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
        return lost(problem)
    return code


if __name__ == "__main__":
    main()
