"""``sopilot serve`` and ``sopilot gateway``: a handbook for agents that speak MCP."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sopilot.cli.options import all_of
from sopilot.cli.serving_options import serving_options
from sopilot.cli.stores import STORE
from sopilot.integrations.logs import LOG, log_to_stderr
from sopilot.integrations.mcp.options import LIMITS_HELP, ServerOptions
from sopilot.messages.errors import mistake
from sopilot.runner.sources import TOOL_LISTS
from sopilot.views.catalogue import VIEWS

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def view_option(default: str) -> Callable[[Decorated], Decorated]:
    views = f"One of: {', '.join(VIEWS)}."
    return click.option("--view", default=default, show_default=True, help=views)


server_options = all_of(
    click.option(
        "--language",
        type=click.Choice(["en", "zh"]),
        default="en",
        show_default=True,
        help="Language of the texts for the model.",
    ),
    click.option(
        "--tools",
        type=click.Choice(TOOL_LISTS),
        default="official",
        help="Which tool list SOPBench tasks offer.",
    ),
    click.option(
        "--http",
        "address",
        metavar="HOST:PORT",
        help="Serve HTTP instead of stdio; port 0 is any free one.",
    ),
    click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        help="File of client tokens, one `NAME TOKEN` per line.",
    ),
    click.option(
        "--allow-host", multiple=True, help="A name under which clients reach this server."
    ),
    click.option(
        "--allow-origin", multiple=True, help="A web origin that may talk to this server."
    ),
    serving_options,
    click.option("--limit", "limited", multiple=True, metavar="NAME=NUMBER", help=LIMITS_HELP),
    click.option("--session", "session_id", help="Resume this session (stdio)."),
    STORE,
)


upstream_options = all_of(
    click.option(
        "--upstream",
        "upstreams",
        multiple=True,
        metavar="[NAME=]URL|COMMAND",
        help="An upstream MCP server. Repeatable.",
    ),
    click.option(
        "--pass-through",
        multiple=True,
        metavar="NAME",
        help="Offer this upstream tool although the handbook doesn't name it. Repeatable.",
    ),
    click.option(
        "--handbook-only",
        is_flag=True,
        help="Hide every upstream tool that the handbook doesn't name. Under the views `guard` and "
        "`guard-auto`, tools that are marked as read-only are offered otherwise, and recorded.",
    ),
    click.option("--share-upstream", is_flag=True, help="One connection for all sessions."),
    click.option(
        "--upstream-timeout",
        type=click.FloatRange(min=0.1),
        default=300.0,
        metavar="SECONDS",
        show_default=True,
        help="How long to wait for an upstream's answer.",
    ),
    click.option("--pins", metavar="FILE|store", help="Where to keep approved tools."),
    click.option(
        "--approve-tool",
        "approve",
        multiple=True,
        metavar="NAME",
        help="Approve this upstream tool as it is now. Repeatable.",
    ),
    click.option("--approve-tools", is_flag=True, help="Approve every upstream tool as it is now."),
    click.option(
        "--recheck-tools",
        type=click.FloatRange(min=0),
        default=60.0,
        metavar="SECONDS",
        show_default=True,
        help="Seconds to cache verified tool lists; 0 re-verifies before every call. Irreversible "
        "calls always re-verify.",
    ),
    click.option(
        "--require-pins",
        is_flag=True,
        help="Refuse an unapproved upstream instead of approving it at first sight.",
    ),
)


@click.command()
@click.argument("source")
@view_option("pg")
@server_options
def command(log_format: str, **options: Any) -> None:
    """Serve SOURCE over MCP, on standard streams or with --http.

    SOURCE is a handbook file or a bundled example; or a task (bank/TASK,
    my-handbook.yaml#SCENARIO, sopbench:bank/get_loan#3) on which you measure any agent.
    To guard the tools of other MCP servers, use `sopilot gateway`.
    """
    _serve(log_format, **options)


class _WrapsCommand(click.Command):
    """Takes everything behind ``--exec`` as the command of one server."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--exec" in args:
            at = args.index("--exec")
            command = shlex.join(args[at + 1 :])
            args = [*args[:at], "--upstream", f"server={command}"]
        return super().parse_args(ctx, args)


@click.command(cls=_WrapsCommand)
@click.argument("servers", required=False, type=click.Path(path_type=Path))
@click.option(
    "--handbook", "source", required=True, metavar="SOURCE", help="The handbook that guards them."
)
@click.option(
    "--exec",
    "wrapped",
    expose_value=False,
    metavar="COMMAND …",
    help="Wrap one server: everything behind it is the server's command. Comes last.",
)
@upstream_options
@view_option("guard")
@server_options
def gateway(log_format: str, servers: Path | None, **options: Any) -> None:
    """Guard the tools of other MCP servers by a handbook.

    SERVERS is a file {"mcpServers": {NAME: {"command": …, "args": […]} or {"url": …}}}, as MCP
    clients have it. Clients see the servers' tools and nothing else, plus `judge_check` if the
    handbook leaves checks to the model. Every call is recorded, and a guarded call that isn't
    proven is answered with the calls to make first.
    """
    if servers is None and not options["upstreams"]:
        raise click.UsageError("name a SERVERS file, or one server with --upstream or --exec")
    _serve(log_format, upstream_file=servers, **options)


def _serve(log_format: str, **options: Any) -> None:
    _need_mcp()
    from sopilot.integrations.mcp.serve import serve

    log_to_stderr(log_format)
    serve(ServerOptions(**options), _tell)


def _tell(text: str) -> None:
    """The operator reads stderr; stdout belongs to the protocol."""
    LOG.warning("%s", text)


def _need_mcp() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        message = "the MCP library is not installed"
        raise mistake("missing-extra", message, help="pip install 'sopilot[mcp]'")
