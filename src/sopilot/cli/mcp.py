"""``sopilot mcp``: a handbook for agents that speak MCP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sopilot.cli.serving_options import serving_options
from sopilot.cli.stores import STORE
from sopilot.integrations.logs import LOG, log_to_stderr
from sopilot.integrations.mcp.options import LIMITS_HELP, ServerOptions
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
    help="An upstream MCP server. Repeatable.",
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
    help="Offer this upstream tool although the handbook doesn't name it. Repeatable.",
)
@click.option("--share-upstream", is_flag=True, help="One connection for all sessions.")
@click.option(
    "--upstream-timeout",
    type=click.FloatRange(min=0.1),
    default=300.0,
    metavar="SECONDS",
    show_default=True,
    help="How long to wait for an upstream's answer.",
)
@click.option("--pins", metavar="FILE|store", help="Where to keep approved tools.")
@click.option(
    "--approve-tool",
    "approve",
    multiple=True,
    metavar="NAME",
    help="Approve this upstream tool as it is now. Repeatable.",
)
@click.option("--approve-tools", is_flag=True, help="Approve every upstream tool as it is now.")
@click.option(
    "--recheck-tools",
    type=click.FloatRange(min=0),
    default=60.0,
    metavar="SECONDS",
    show_default=True,
    help="Seconds to cache verified tool lists; 0 re-verifies before every call. Irreversible "
    "calls always re-verify.",
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
@click.option("--session", "session_id", help="Resume this session (stdio).")
@STORE
def command(log_format: str, **options: Any) -> None:
    """Serve SOURCE over MCP.

    SOURCE is a handbook file or a bundled name; or a task (bank/TASK,
    my-desk.yaml#SCENARIO, sopbench:bank/get_loan#3), on which any agent can then be measured.
    With --upstream the server is a gateway: it offers the tools of these servers that the
    handbook names, records every call, binds the evidence and blocks what must not run yet.
    """
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
