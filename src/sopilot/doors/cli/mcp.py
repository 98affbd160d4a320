"""``sopilot mcp``: a handbook for agents that speak MCP."""

from __future__ import annotations

import asyncio
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sopilot.adapters.logs import FORMATS, LOG, log_to_stderr
from sopilot.adapters.metrics import metered, metrics
from sopilot.adapters.settings_file import read_settings
from sopilot.adapters.store_by_name import data_folder, open_store
from sopilot.doors.cli.stores import STORE
from sopilot.doors.mcp.pins import Pins
from sopilot.doors.mcp.upstream_spec import parse_upstream, read_upstreams
from sopilot.doors.sources import TOOL_LISTS, is_task, load_source, open_source
from sopilot.language.diagnostics import Place, UserMistake, did_you_mean, mistake
from sopilot.runtime.agent import ARMS, Arm, arm_named
from sopilot.runtime.agent.toolbox import END_SESSION
from sopilot.runtime.session import Settings
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


def read_config(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    """The file's values are what is taken where the command line says nothing."""
    if path is None:
        return
    known = {one.opts[0].lstrip("-"): one.name for one in ctx.command.params}
    values = read_settings(path)
    for name in values:
        if name not in known:
            place = Place(str(path))
            raise mistake("unknown-setting", f"`{name}` is none", place, did_you_mean(name, known))
    ctx.default_map = {known[name] or "": value for name, value in values.items()}


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
    "--require-pins",
    is_flag=True,
    help="Refuse an upstream that nobody has approved, instead of approving it at first sight.",
)
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
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Processes behind the one address; more than one need --stateless.",
)
@click.option(
    "--stateless",
    is_flag=True,
    help="Several servers share the store: any of them goes on with any request.",
)
@click.option("--admin", metavar="HOST:PORT", help="Health and metrics, for operators alone.")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=N",
    help="Another limit: connections (of an address), requests (of an owner at once), sessions, "
    "sessions_of_one (owner), header_seconds, body_seconds, idle_seconds, drain_seconds.",
)
@click.option(
    "--lease-seconds",
    type=Seconds(min=1),
    default=5.0,
    show_default=True,
    help="How long a killed server keeps a session from the others.",
)
@click.option(
    "--sweep-seconds",
    type=Seconds(min=0.5),
    default=5.0,
    show_default=True,
    help="How often calls that were left open are looked for.",
)
@click.option("--log", "log_format", type=click.Choice(FORMATS), default="text")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=read_config,
    help="A YAML or JSON file of these options by their names, with ${VARIABLES} filled in.",
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
    require_pins: bool,
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
    workers: int,
    stateless: bool,
    admin: str | None,
    limits: tuple[str, ...],
    lease_seconds: float,
    sweep_seconds: float,
    log_format: str,
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
    log_to_stderr(log_format)
    specs = [parse_upstream(text) for text in upstreams]
    if upstream_file is not None:
        specs += read_upstreams(upstream_file)
    names = [spec.name for spec in specs]
    if len(set(names)) != len(names):
        raise UserMistake("two upstream servers have the same name; write NAME=… before each")
    from sopilot.doors.mcp import serving

    def http_settings() -> serving.HttpSettings | None:
        return serving.http_settings(
            address, token_file, allow_host, allow_origin,
            limits=limits, stateless=stateless or workers > 1, admin=admin,
        )  # fmt: skip

    settings = http_settings()
    chosen = arm_named(arm)
    if workers > 1 and settings is not None and not serving.is_worker():
        raise SystemExit(serving.supervise(settings, workers, _tell))

    async def serve() -> None:
        from sopilot.doors.mcp.catalogue import Catalogue
        from sopilot.doors.mcp.hub import Hub
        from sopilot.doors.mcp.mcp_server import ProcedureServer

        meter = metrics()
        store = metered(open_store(store_spec), meter)
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
                    require_pins=require_pins,
                    meter=meter,
                )
                await catalogue.open()
                service = _gateway(handbook, chosen, catalogue, language, share_upstream)
            else:
                service = _service(source, chosen, language, tools)
            service = replace(service, settings=Settings(lease_seconds=lease_seconds))
            hub = Hub(store, service, **serving.hub_limits(settings), meter=meter)
            procedures = ProcedureServer(
                hub, catalogue=catalogue, session_id=session_id, tell=_tell, meter=meter,
                telemetry=serving.telemetry(),
            )  # fmt: skip
            watch = serving.Watch(store, meter, sweep_seconds)
            try:
                stopped = await serving.serve(
                    procedures, settings, _tell, watch=watch, reread=http_settings
                )
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
    LOG.warning("%s", text)


def _need_mcp() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        message = "the MCP library is not installed"
        raise mistake("missing-extra", message, help="pip install 'sopilot[mcp]'")
