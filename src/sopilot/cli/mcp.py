"""``sopilot mcp``: a handbook for agents that speak MCP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sopilot.cli.serving_options import serving_options
from sopilot.cli.stores import STORE
from sopilot.integrations.logs import LOG, log_to_stderr
from sopilot.integrations.mcp.limit_names import LIMITS_HELP
from sopilot.messages.errors import mistake
from sopilot.runner.sources import TOOL_LISTS
from sopilot.views.catalogue import VIEWS


@click.command()
@click.argument("source")
@click.option(
    "--upstream",
    "upstreams",
    multiple=True,
    metavar="[NAME=]URL|COMMAND",
    help="An MCP server to stand in front of. May be given several times.",
)
@click.option(
    "--upstream-file",
    type=click.Path(path_type=Path),
    help='A file {"mcpServers": {NAME: {"command": …, "args": […]} or {"url": …}}}.',
)
@click.option(
    "--pass-through",
    multiple=True,
    metavar="NAME",
    help="Offer this upstream tool although the handbook does not name it. Several times.",
)
@click.option("--share-upstream", is_flag=True, help="One connection for all sessions.")
@click.option(
    "--upstream-timeout",
    type=click.FloatRange(min=0.1),
    default=300.0,
    metavar="SECONDS",
    show_default=True,
    help="How long an answer of an upstream is waited for.",
)
@click.option("--pins", metavar="FILE|store", help="Where approved tools are kept.")
@click.option(
    "--approve-tool",
    "approve",
    multiple=True,
    metavar="NAME",
    help="Approve this upstream tool as it is now. May be given several times.",
)
@click.option("--approve-tools", is_flag=True, help="Approve every upstream tool as it is now.")
@click.option(
    "--recheck-tools",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    show_default=True,
    help="How long a look at an upstream's tools holds; 0 looks before every call.",
)
@click.option("--view", default="pg", show_default=True, help=f"One of: {', '.join(VIEWS)}.")
@click.option("--language", type=click.Choice(["en", "zh"]), default="en", show_default=True)
@click.option("--tools", type=click.Choice(TOOL_LISTS), default="official", help="For SOPBench.")
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    help="Serve HTTP instead of stdio; port 0 is any free one.",
)
@click.option("--token-file", type=click.Path(path_type=Path), help="Lines `NAME TOKEN`.")
@click.option("--allow-host", multiple=True, help="A name under which clients reach this server.")
@click.option("--allow-origin", multiple=True, help="A web origin that may talk to this server.")
@serving_options
@click.option("--limit", "limited", multiple=True, metavar="NAME=NUMBER", help=LIMITS_HELP)
@click.option("--session", "session_id", help="Go on with this session (stdio).")
@STORE
def command(log_format: str, **given: Any) -> None:
    """Serve SOURCE over MCP.

    SOURCE is a handbook file or a bundled name; or a task (bank-desk/TASK,
    my-desk.yaml#SCENARIO, sopbench:bank/get_loan#3), which any agent can then be measured
    on. With --upstream the
    server is a gateway: it offers those tools of these servers that the handbook names, under
    their own names, records every call, binds the evidence and holds what must not run yet.
    """
    _need_mcp()
    from sopilot.integrations.mcp.serving_source import ServerOptions, serve_source

    log_to_stderr(log_format)
    serve_source(ServerOptions(**given), _tell)


def _tell(text: str) -> None:
    """The operator reads stderr; stdout belongs to the protocol."""
    LOG.warning("%s", text)


def _need_mcp() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        message = "the MCP library is not installed"
        raise mistake("missing-extra", message, help="pip install 'sopilot[mcp]'")
