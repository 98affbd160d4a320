"""``sopilot serve`` and ``sopilot gateway``: a handbook for agents that speak MCP."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import LANGUAGE, NEW, STORE, TOOLS, Decorator, all_of, full_id
from sopilot.integrations.logs import FORMATS, LOG, log_to_stderr
from sopilot.integrations.mcp.options import LIMITS_HELP, ServerOptions
from sopilot.messages.errors import mistake
from sopilot.records.store import Settings
from sopilot.runner.store_access import StoreAccess


def _view(default: str) -> Decorator:
    return click.option(
        "--view", default=default, show_default=True, metavar="VIEW",
        help="How much of the handbook the model sees.",
    )  # fmt: skip


# Hidden options are for the configuration file: docs/reference/configuration.md explains them.
server_options = all_of(
    LANGUAGE,
    click.option("--http", "address", metavar="HOST:PORT", help="Serve HTTP instead of stdio."),
    click.option("--token-file", type=NEW, help="Tokens of clients, one `NAME TOKEN` per line."),
    click.option("--allow-host", multiple=True, help="Name under which clients reach the server."),
    click.option(
        "--allow-origin", multiple=True, hidden=True, help="Web origin that may call the server."
    ),
    click.option("--stateless", is_flag=True, help="Let any server of the store answer."),
    click.option("--admin", metavar="HOST:PORT", help="Address for health and metrics."),
    click.option(
        "--lease-seconds", type=click.FloatRange(min=1), default=Settings().lease_seconds,
        hidden=True, help="Seconds until another server takes over a dead one's sessions.",
    ),
    click.option(
        "--sweep-seconds", type=click.FloatRange(min=0.5), default=2.0, hidden=True,
        help="Interval of the search for orphaned calls.",
    ),
    click.option(
        "--log", "log_format", type=click.Choice(FORMATS), default="text", show_default=True,
        help="Format of the log on stderr.",
    ),
    click.option(
        "--limit", "limited", multiple=True, metavar="NAME=NUMBER", hidden=True, help=LIMITS_HELP
    ),
    click.option(
        "--session", "session_id", metavar="ID", callback=full_id,
        help="Resume this session (stdio).",
    ),
    STORE,
)  # fmt: skip

upstream_options = all_of(
    click.option(
        "--upstream", "upstreams", multiple=True, metavar="[NAME=]URL|COMMAND",
        help="Upstream MCP server (repeatable).",
    ),
    click.option(
        "--pass-through", multiple=True, metavar="NAME",
        help="Offer this tool although the handbook doesn't name it.",
    ),
    click.option(
        "--handbook-only", is_flag=True, help="Hide every tool that the handbook doesn't name."
    ),
    click.option("--share-upstream", is_flag=True, help="Use one connection for all sessions."),
    click.option(
        "--upstream-timeout", type=click.FloatRange(min=0.1), default=300.0, metavar="SECONDS",
        show_default=True, help="Time limit of an upstream's answer.",
    ),
    click.option("--pins", metavar="FILE|store", help="Where to keep approved tools."),
    click.option(
        "--approve-tool", "approve", multiple=True, metavar="NAME",
        help="Approve this upstream tool as it is now.",
    ),
    click.option("--approve-tools", is_flag=True, help="Approve every upstream tool as it is now."),
    click.option(
        "--recheck-tools", type=click.FloatRange(min=0), default=60.0, metavar="SECONDS",
        show_default=True, help="Time to cache verified tool lists.",
    ),
    click.option(
        "--require-pins", is_flag=True, help="Refuse upstream tools that nobody has approved."
    ),
)  # fmt: skip


@click.command()
@click.argument("source")
@_view("pg")
@TOOLS
@server_options
def command(tools: str | None, **options: Any) -> None:
    """Serve SOURCE over MCP, on standard streams or with --http.

    SOURCE is a handbook file or a bundled example; or a task (bank/TASK,
    my-handbook.yaml#SCENARIO, sopbench:bank/get_loan#3) on which you measure any agent.
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
@click.option("--handbook", "source", required=True, metavar="SOURCE", help="Handbook to apply.")
@click.option(
    "--exec",
    "wrapped",
    expose_value=False,
    metavar="COMMAND …",
    help="Command of one server, to the end of the line.",
)
@upstream_options
@_view("guard")
@server_options
def gateway(servers: Path | None, **options: Any) -> None:
    """Guard the tools of other MCP servers by a handbook.

    SERVERS is a file {"mcpServers": {NAME: {"command": …, "args": […]} or {"url": …}}}, as MCP
    clients use. Clients see the servers' tools, and `judge_check` if the handbook leaves checks to
    the model. sopilot records every call. It answers a guarded call that isn't proven with the
    calls to make first.
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
