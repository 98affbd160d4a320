"""``sopilot serve`` and ``sopilot gateway``: a handbook for agents that speak MCP."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import (
    LANGUAGE,
    NEW,
    STORE,
    TOOLS,
    Decorator,
    all_of,
    flag,
    full_id,
    option,
)
from sopilot.integrations.logs import FORMATS, LOG, log_to_stderr
from sopilot.integrations.mcp.options import LIMITS_HELP, ServerOptions
from sopilot.messages.errors import mistake
from sopilot.records.store import Settings
from sopilot.runner.store_access import StoreAccess


def _view(default: str) -> Decorator:
    return option(
        "--view VIEW",
        "How much of the handbook the model sees.",
        default=default,
        show_default=True,
    )


# Hidden options are for the configuration file: docs/reference/configuration.md explains them.
server_options = all_of(
    LANGUAGE,
    option("--http HOST:PORT", "Serve HTTP instead of stdio.", "address"),
    option("--token-file", "Client tokens, one `NAME TOKEN` per line.", type=NEW),
    option("--allow-host", "Host name that clients may use (repeatable).", multiple=True),
    option("--allow-origin", "Web origin that may call the server.", multiple=True, hidden=True),
    flag("--stateless", "Let any server of this store answer any client."),
    option("--admin HOST:PORT", "Address for health and metrics."),
    option(
        "--lease-seconds", "Seconds until another server takes over a dead server's sessions.",
        type=click.FloatRange(min=1), default=Settings().lease_seconds, hidden=True,
    ),
    option(
        "--log", "Log format on stderr.", "log_format", type=click.Choice(FORMATS),
        default="text", show_default=True,
    ),
    option("--limit NAME=NUMBER", LIMITS_HELP, "limited", multiple=True, hidden=True),
    option("--session ID", "Resume this session (stdio).", "session_id", callback=full_id),
    STORE,
)  # fmt: skip

upstream_options = all_of(
    option(
        "--upstream [NAME=]URL|COMMAND", "Upstream MCP server (repeatable).", "upstreams",
        multiple=True,
    ),
    option(
        "--pass-through NAME", "Offer this tool although the handbook doesn't name it.",
        multiple=True,
    ),
    flag("--handbook-only", "Hide tools that the handbook doesn't name."),
    flag("--share-upstream", "Share one connection to each upstream."),
    option(
        "--upstream-timeout SECONDS", "Time limit for an upstream's answer.",
        type=click.FloatRange(min=0.1), default=300.0, show_default=True,
    ),
    option(
        "--approve-tool NAME", "Approve this upstream tool as it is now.", "approve",
        multiple=True,
    ),
    flag("--approve-tools", "Approve every upstream tool as it is now."),
    option(
        "--recheck-tools SECONDS",
        "Seconds to cache verified tool lists (0: none).",
        type=click.FloatRange(min=0), default=60.0, show_default=True,
    ),
    flag("--require-pins", "Refuse upstream tools that nobody has approved."),
)  # fmt: skip


@click.command()
@click.argument("source")
@_view("pg")
@TOOLS
@server_options
def command(tools: str | None, **options: Any) -> None:
    """Serve SOURCE over MCP, on standard streams or with --http.

    SOURCE is a handbook file or a bundled example; or a task (bank/TASK,
    my-handbook.yaml#SCENARIO, sopbench:bank/get_loan#3) to measure an agent on it.
    To guard the tools of other MCP servers, use `sopilot gateway`.
    """
    _serve(tools=tools or "official", **options)


class _WrapsCommand(click.Command):
    """Takes everything after ``--exec`` as the command of one server."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--exec" in args:
            at = args.index("--exec")
            command = shlex.join(args[at + 1 :])
            args = [*args[:at], "--upstream", f"server={command}"]
        return super().parse_args(ctx, args)


@click.command(cls=_WrapsCommand)
@click.argument("servers", required=False, type=NEW)
@option("--handbook SOURCE", "Handbook to apply.", "source", required=True)
@option(
    "--exec COMMAND …",
    "Start one server; the rest of the line is its command.",
    "wrapped",
    expose_value=False,
)
@upstream_options
@_view("guard")
@server_options
def gateway(servers: Path | None, **options: Any) -> None:
    """Guard the tools of other MCP servers with a handbook.

    SERVERS is a file {"mcpServers": {NAME: {"command": …, "args": […]} or {"url": …}}}, as MCP
    clients use. Clients see the servers' tools. They also see `judge_check` if the handbook
    leaves checks to the model, and `give_values` if it needs values that no tool takes. sopilot
    records every call. It answers a guarded call that isn't proven with the calls to make first.
    """
    if servers is None and not options["upstreams"]:
        raise click.UsageError("name a SERVERS file, or one server with --upstream or --exec")
    _serve(upstream_file=servers, **options)


def _serve(log_format: str, store: StoreAccess, **options: Any) -> None:
    need_mcp()
    from sopilot.integrations.mcp.serve import serve

    log_to_stderr(log_format)
    # The operator reads stderr; stdout belongs to the protocol.
    served = ServerOptions(store_spec=store.spec, **options)
    serve(served, lambda text: LOG.warning("%s", text))


def need_mcp() -> None:
    if find_spec("mcp") is None:
        message = "the MCP library isn't installed"
        raise mistake("missing-extra", message, help="pip install 'sopilot[mcp]'")
