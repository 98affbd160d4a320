"""The command group. Commands load on use, so that ``sopilot --help`` is instant."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from sopilot import __version__
from sopilot.cli.configuration import TOKEN_FILE, load_configuration
from sopilot.cli.lazy_group import LazyGroup
from sopilot.cli.output import (
    WANTS_JSON,
    Exit,
    Output,
    flushed,
    give,
    lost,
    open_streams,
    print_json,
    say,
)
from sopilot.messages.diagnostic import Diagnostic, Place, render_diagnostics
from sopilot.messages.errors import SopilotError, UserMistake, mistake
from sopilot.values.text import visible

GROUPS: dict[str, dict[str, str | tuple[str, str]]] = {
    "Author": {
        "new": ("author.new", "Write a handbook to start from, with scenarios."),
        "check": ("author.check", "Validate handbooks and programs."),
        "format": ("author.format_files", "Format handbooks; comments and order stay."),
        "test": (
            "author.test",
            "Run a handbook's scenarios and report uncovered steps and branches.",
        ),
        "compile": ("compile.command", "Compile handbooks to verified programs."),
        "show": ("compile.show", "Show what a model would see, or why each check is there."),
    },
    "Run": {
        "demo": "See a call blocked, proven and carried out, in a few seconds.",
        "run": "Run one session of a handbook.",
        "chat": ("run.chat", "Talk to an agent that follows a handbook."),
        "resume": ("run.resume", "Resume an interrupted session."),
        "serve": "Serve a handbook over MCP.",
        "gateway": ("serve.gateway", "Guard the tools of other MCP servers."),
        "guard": "Guard agents in other languages and coding agents.",
    },
    "Decide": {
        "approvals": "List, approve, reject, amend or resolve waiting calls.",
        "people": "Manage who may decide: roles, tokens, limits, deputies.",
        "handbooks": "Release, sign off, withdraw and compare handbook versions.",
    },
    "Audit": {
        "audit": "Judge a session, a trace or a transcript.",
        "sessions": "List sessions, show one, record orphaned calls.",
        "trace": "Export, sign and verify traces.",
        "records": "Query, seal, verify and export the records of all sessions.",
        "privacy": "Erase and disclose contents; set readers and retention periods.",
        "store": "Migrate, back up, restore, fence, measure and prune a store.",
    },
    "Research": {
        "qualify": (
            "sopilot_lab.cli.qualify:command",
            "Check whether a model qualifies for paging.",
        ),
        "lab": (
            "sopilot_lab.cli.lab:command",
            "Run SOPBench, studies, reports, archives, statistics.",
        ),
    },
}


@click.group(cls=LazyGroup, package=__package__, commands_on_use=GROUPS)
@click.version_option(__version__, prog_name="sopilot")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Configuration file. Default: the nearest sopilot.toml.",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with your access token. Default: $SOPILOT_TOKEN.",
)
@click.pass_context
def sopilot(ctx: click.Context, config: Path | None, token_file: Path | None) -> None:
    """\b
    Compile handbooks into programs, run them, and prove each check.
    Exit codes: 0 done, 1 findings, 2 misuse, 3 refused, 4 waiting, 5 not judged, 130 interrupted.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    ctx.meta[TOKEN_FILE] = token_file
    group, name = ctx.command, ctx.invoked_subcommand or ""
    assert isinstance(group, click.Group)
    ctx.obj = load_configuration(config, group.list_commands(ctx))
    if name in ctx.obj.values and (command := group.get_command(ctx, name)) is not None:
        ctx.default_map = {name: ctx.obj.table(name, command, ctx)}


@sopilot.result_callback()
@click.pass_context
def _print_output(ctx: click.Context, /, output: object, **options: object) -> None:
    if isinstance(output, Output):
        wants_json = ctx.meta.get(WANTS_JSON, False)
        give(wants_json, output.value, output.lines, indent=output.indent)
        ctx.exit(output.code)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. Every mistake is reported; only our own bugs escape."""
    open_streams()
    texts = list(arguments) if arguments is not None else sys.argv[1:]
    try:
        _check_text(texts)
        code = sopilot.main(args=texts, prog_name="sopilot", standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as ended:
        return flushed(ended.code if isinstance(ended.code, int) else int(bool(ended.code)))
    except click.Abort:
        say("\nstopped", err=True)
        return Exit.INTERRUPTED
    except click.ClickException as misuse:
        return _failed(texts, [Diagnostic("usage", _misuse(misuse))], 2, _usage(misuse))
    except UserMistake as mistake:
        return _failed(texts, mistake.diagnostics, 2)
    except SopilotError as ended:
        return _failed(texts, [Diagnostic("ended", str(ended))], 1, visible(f"sopilot: {ended}"))
    except OSError as problem:
        return lost(problem) if problem.filename is None else _failed(texts, [_of(problem)], 2)
    except RecursionError:
        return _failed(texts, [Diagnostic("too-deep", "an input is nested too deeply")], 2)
    return code if isinstance(code, int) else 0


def _check_text(texts: Sequence[str]) -> None:
    for argument in texts:
        try:
            argument.encode()
        except UnicodeEncodeError:
            message = f"`{argument}` contains bytes that aren't text"
            help = "write it in the encoding of this terminal"
            raise mistake("not-text", message, help=help) from None


def _misuse(misuse: click.ClickException) -> str:
    """The message; for an option of ``sopilot`` itself, where to write it."""
    if isinstance(misuse, click.NoSuchOption) and misuse.ctx is not None:
        name, command = misuse.option_name, misuse.ctx.command_path.removeprefix("sopilot ")
        if any(name in param.opts for param in sopilot.params):
            return f"write `{name}` before the command: `sopilot {name} … {command}`"
    return misuse.format_message()


def _usage(misuse: click.ClickException) -> str:
    text = f"Error: {_misuse(misuse)}"
    ctx = misuse.ctx if isinstance(misuse, click.UsageError) else None
    if isinstance(misuse, click.exceptions.NoArgsIsHelpError):
        return misuse.format_message()
    if ctx is None:
        return text
    return f"{ctx.get_usage()}\nTry '{ctx.command_path} --help' for help.\n\n{text}"


def _of(problem: OSError) -> Diagnostic:
    message = f"the file can't be used: {problem.strerror}"
    return Diagnostic("unusable-file", message, Place(str(problem.filename)))


def _failed(
    texts: Sequence[str], diagnostics: Sequence[Diagnostic], code: int, text: str | None = None
) -> int:
    """Report on stderr, and as an object on stdout if ``--json`` asks for it."""
    try:
        say(text if text is not None else render_diagnostics(diagnostics), err=True)
        if "--json" in texts:
            print_json({"errors": [item.as_json() for item in diagnostics]}, indent=None)
        sys.stdout.flush()
    except OSError as problem:
        return lost(problem)
    return code


if __name__ == "__main__":
    sys.exit(main())
