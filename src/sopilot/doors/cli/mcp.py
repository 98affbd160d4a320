"""``sopilot mcp``: a handbook for agents that speak MCP."""

from __future__ import annotations

import asyncio
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sopilot.adapters.store_by_name import data_folder, open_store
from sopilot.doors.cli.output import log_visibly, say
from sopilot.doors.cli.stores import STORE
from sopilot.doors.mcp.pins import Pins
from sopilot.doors.mcp.upstream_spec import parse_upstream, read_upstreams
from sopilot.doors.sources import TOOL_LISTS, is_task, load_source, open_source
from sopilot.language.diagnostics import UserMistake, mistake, visible
from sopilot.runtime.agent import ARMS, Arm, arm_named
from sopilot.runtime.agent.toolbox import END_SESSION
from sopilot.runtime.vm import TOOL_NAME

if TYPE_CHECKING:
    from sopilot.doors.mcp.catalogue import Catalogue
    from sopilot.doors.mcp.hub import Service
    from sopilot.language.handbook import Handbook


class Seconds(click.FloatRange):
    """A number of seconds: not "not a number", which no comparison refuses, and not forever."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return found


STOPPED = 130
"""The exit code that shells give to what was interrupted."""


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
    type=Seconds(min=0.1),
    default=300.0,
    metavar="SECONDS",
    show_default=True,
    help="How long an answer of an upstream is waited for.",
)
@click.option("--pins", type=click.Path(path_type=Path), help="Where approved tools are kept.")
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
    type=Seconds(min=0),
    default=0.0,
    metavar="SECONDS",
    show_default=True,
    help="How long a look at an upstream's tools holds; 0 looks before every call.",
)
@click.option("--arm", default="pg", show_default=True, help=f"One of: {', '.join(ARMS)}.")
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
@click.option(
    "--limit",
    "limited",
    multiple=True,
    metavar="NAME=NUMBER",
    help="One of: header-seconds (10), body-seconds (30), idle-seconds (1800), connections of an "
    "address (200), requests (100) and clients (500) of an owner, initializes a minute (600), "
    "sessions (200), sessions-of-one owner (50), upstreams connected to at once (400).",
)
@click.option("--session", "session_id", help="Go on with this session (stdio).")
@STORE
def command(
    source: str,
    upstreams: tuple[str, ...],
    upstream_file: Path | None,
    pass_through: tuple[str, ...],
    share_upstream: bool,
    upstream_timeout: float,
    pins: Path | None,
    approve: tuple[str, ...],
    approve_tools: bool,
    recheck_tools: float,
    arm: str,
    language: str,
    tools: str,
    address: str | None,
    token_file: Path | None,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
    limited: tuple[str, ...],
    session_id: str | None,
    store_spec: str | None,
) -> None:
    """Serve SOURCE over MCP.

    SOURCE is a handbook file or a bundled name; or a task (bank-desk/TASK,
    my-desk.yaml#SCENARIO, sopbench:bank/get_loan#3), which any agent can then be measured
    on. With --upstream the
    server is a gateway: it offers those tools of these servers that the handbook names, under
    their own names, records every call, binds the evidence and holds what must not run yet.
    """
    _need_mcp()
    log_visibly()
    specs = [parse_upstream(text) for text in upstreams]
    if upstream_file is not None:
        specs += read_upstreams(upstream_file)
    names = [spec.name for spec in specs]
    if len(set(names)) != len(names):
        raise UserMistake("two upstream servers have the same name; write NAME=… before each")
    from sopilot.doors.mcp import serving
    from sopilot.doors.mcp.limits import read_limits

    limits = read_limits(limited)
    settings = serving.http_settings(address, token_file, allow_host, allow_origin, limits)
    chosen = arm_named(arm)

    async def serve() -> None:
        from sopilot.doors.mcp.catalogue import Catalogue
        from sopilot.doors.mcp.hub import Hub
        from sopilot.doors.mcp.mcp_server import ProcedureServer

        store = open_store(store_spec)
        catalogue: Catalogue | None = None
        try:
            if specs:
                handbook = load_source(source)
                catalogue = Catalogue(
                    specs,
                    Pins(pins or data_folder() / "tool-pins.json"),
                    _tell,
                    handbook=handbook,
                    pass_through=pass_through,
                    reserved=frozenset({TOOL_NAME, END_SESSION}),
                    approve_all=approve_tools,
                    approve=approve,
                    timeout_seconds=upstream_timeout,
                    recheck_seconds=recheck_tools,
                )
                await catalogue.open()
                service = _gateway(handbook, chosen, catalogue, language, share_upstream)
            else:
                service = _service(source, chosen, language, tools)
            hub = Hub(
                store,
                service,
                most_seats=limits.seats(0 if share_upstream else len(specs)),
                most_of_one=limits.sessions_of_one,
                idle_seconds=limits.idle_seconds,
            )
            procedures = ProcedureServer(
                hub, catalogue=catalogue, session_id=session_id, tell=_tell
            )
            try:
                stopped = await serving.serve(procedures, settings, _tell)
            finally:
                await procedures.close()
        finally:
            if catalogue is not None:
                await catalogue.close()
            await store.close()
        if stopped:
            # A thread still waits for a line from the client, and would keep the process.
            os._exit(STOPPED)

    with asyncio.Runner(loop_factory=serving.fast_loop()) as runner:
        runner.run(serve())


def _gateway(
    handbook: Handbook, arm: Arm, catalogue: Catalogue, language: str, share: bool
) -> Service:
    from sopilot.doors.mcp.building import gateway_service

    missing = [
        name
        for name, action in handbook.actions.items()
        if action.offered and catalogue.offer(name) is None
    ]
    if missing:
        _tell(f"no upstream offers {', '.join(missing)}")
    return gateway_service(handbook, arm, catalogue, language=language, share_upstreams=share)


def _service(source: str, arm: Arm, language: str, tools: str) -> Service:
    from sopilot.doors.mcp.building import source_service, task_service

    if is_task(source):
        return task_service(source, arm, tools=tools, language=language)
    opened = open_source(source)
    if not opened.bundled:
        _tell("no --upstream: only the bookkeeping tool is offered, and no call can be evidence")
    return source_service(opened, arm, language=language)


def _tell(text: str) -> None:
    """The operator reads stderr; stdout belongs to the protocol."""
    say(visible(f"sopilot: {text}"), err=True)


def _need_mcp() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        message = "the MCP library is not installed"
        raise mistake("missing-extra", message, help="pip install 'sopilot[mcp]'")
