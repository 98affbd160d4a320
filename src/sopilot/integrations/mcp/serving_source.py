"""A source, served over MCP as its operator asked: store, upstreams, service, server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sopilot.agent.toolbox import END_SESSION
from sopilot.handbook.model import Handbook
from sopilot.integrations.logs import LOG
from sopilot.integrations.mcp import serving
from sopilot.integrations.mcp.building import gateway_service, source_service, task_service
from sopilot.integrations.mcp.catalogue import Catalogue
from sopilot.integrations.mcp.http import HttpSettings
from sopilot.integrations.mcp.limits import read_limits
from sopilot.integrations.mcp.pins import Pins
from sopilot.integrations.mcp.server import ProcedureServer
from sopilot.integrations.mcp.serving import Tell
from sopilot.integrations.mcp.sessions import LINGER_SECONDS, Hub, Service
from sopilot.integrations.mcp.store_pins import StorePins
from sopilot.integrations.mcp.upstream_spec import UpstreamSpec, parse_upstream, read_upstreams
from sopilot.integrations.mcp.watch import Watch
from sopilot.integrations.mcp.workers import Worker
from sopilot.integrations.metrics import NoMetrics, metered, metrics
from sopilot.messages.errors import RunEnded, UserMistake
from sopilot.records.store import Settings, Store
from sopilot.runner.sources import is_task, load_source, open_source
from sopilot.session.opening import call_this_process
from sopilot.stores.open import data_folder, is_shared, open_store
from sopilot.views.catalogue import view_named
from sopilot.views.step_tool import TOOL_NAME

IN_STORE = "store"
"""In place of a file of pins."""


STOPPED = 130
"""The exit code that shells give to what was interrupted."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What `sopilot mcp` takes."""

    source: str
    upstreams: tuple[str, ...]
    upstream_file: Path | None
    pass_through: tuple[str, ...]
    share_upstream: bool
    upstream_timeout: float
    pins: str | None
    """A file, or ``store``."""
    require_pins: bool
    approve: tuple[str, ...]
    approve_tools: bool
    recheck_tools: float
    view: str
    language: str
    tools: str
    address: str | None
    token_file: Path | None
    allow_host: tuple[str, ...]
    allow_origin: tuple[str, ...]
    workers: int | None
    """Supervised processes; ``None``: this one alone."""
    stateless: bool
    admin: str | None
    limited: tuple[str, ...]
    lease_seconds: float
    sweep_seconds: float
    session_id: str | None
    store_spec: str | None

    def http(self) -> HttpSettings | None:
        """As the files are now: tokens may have changed since the start."""
        return serving.http_settings(
            self.address,
            self.token_file,
            self.allow_host,
            self.allow_origin,
            read_limits(self.limited),
            stateless=self.stateless or (self.workers or 1) > 1,
            admin=self.admin,
        )


def serve_source(options: ServerOptions, tell: Tell) -> None:
    specs = [parse_upstream(text) for text in options.upstreams]
    if options.upstream_file is not None:
        specs += read_upstreams(options.upstream_file)
    names = [spec.name for spec in specs]
    if len(set(names)) != len(names):
        raise UserMistake("two upstream servers have the same name; write NAME=… before each")
    settings = options.http()
    view_named(options.view)
    worker = None
    if options.workers is not None and settings is not None:
        worker, settings = serving.supervise(settings, options.workers, tell, options.http)
        call_this_process(worker.name)
        if worker.again:  # tools are approved by who starts the service and looks at them then
            options = replace(options, approve=(), approve_tools=False)
    with asyncio.Runner(loop_factory=serving.fast_loop()) as runner:
        runner.run(_serve(options, specs, settings, tell, worker))


async def _serve(
    options: ServerOptions,
    specs: list[UpstreamSpec],
    settings: HttpSettings | None,
    tell: Tell,
    worker: Worker | None,
) -> None:
    read = settings is not None and settings.admin is not None
    meter = metrics() if read else NoMetrics()
    store = metered(open_store(options.store_spec), meter)
    catalogue: Catalogue | None = None
    try:
        if worker is not None and worker.dead:
            await _free(store, worker.dead)
        if specs:
            handbook = load_source(options.source)
            pins = await _pins(options, store)
            catalogue = _catalogue(options, specs, handbook, pins, tell, meter)
            await catalogue.open()
            service = _gateway(options, handbook, catalogue, tell)
        else:
            service = _service(options, tell)
        service = replace(service, settings=Settings(lease_seconds=options.lease_seconds))
        telemetry = serving.telemetry()
        procedures = ProcedureServer(
            _hub(options, store, service, settings, meter, len(specs)),
            catalogue=catalogue,
            session_id=options.session_id,
            tell=tell,
            meter=meter,
            telemetry=telemetry,
        )
        if telemetry is None:
            procedures.server.middleware.clear()  # the library's own spans
        watch = Watch(store, meter, options.sweep_seconds)
        try:
            stopped = await serving.serve(
                procedures, settings, tell, watch=watch, reread=options.http, worker=worker
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


async def _free(store: Store, dead: Sequence[str]) -> None:
    """Sessions of workers that this supervisor has seen dead need not wait for their leases to
    run out. What they left open is found by whoever takes them, as after any lease."""
    with suppress(RunEnded):
        freed = await store.free(dead)
        if freed:
            LOG.warning("%d sessions of workers that have died are free", freed)


def _hub(
    options: ServerOptions,
    store: Store,
    service: Service,
    settings: HttpSettings | None,
    meter: NoMetrics,
    upstreams: int,
) -> Hub:
    limits = read_limits(options.limited)
    shared = settings is not None and settings.stateless
    return Hub(
        store,
        service,
        most_seats=limits.seats(0 if options.share_upstream else upstreams),
        most_of_one=limits.sessions_of_one,
        idle_seconds=limits.idle_seconds,
        linger_seconds=0.0 if shared else LINGER_SECONDS,
        meter=meter,
    )


async def _pins(options: ServerOptions, store: Store) -> Pins:
    """Where several hosts share a store, they share what was approved."""
    here = data_folder() / "tool-pins.json"
    if options.pins == IN_STORE or (options.pins is None and is_shared(options.store_spec)):
        return await StorePins(store, Pins(here)).opened()
    return Pins(Path(options.pins) if options.pins else here)


def _catalogue(
    options: ServerOptions,
    specs: list[UpstreamSpec],
    handbook: Handbook,
    pins: Pins,
    tell: Tell,
    meter: NoMetrics,
) -> Catalogue:
    return Catalogue(
        specs,
        pins,
        tell,
        handbook=handbook,
        pass_through=options.pass_through,
        reserved=frozenset({TOOL_NAME, END_SESSION}),
        approve_all=options.approve_tools,
        approve=options.approve,
        timeout_seconds=options.upstream_timeout,
        recheck_seconds=options.recheck_tools,
        require_pins=options.require_pins,
        meter=meter,
    )


def _gateway(
    options: ServerOptions, handbook: Handbook, catalogue: Catalogue, tell: Tell
) -> Service:
    missing = [
        name
        for name, action in handbook.actions.items()
        if action.offered and catalogue.offer(name) is None
    ]
    if missing:
        tell(f"no upstream offers {', '.join(missing)}")
    return gateway_service(
        handbook,
        view_named(options.view),
        catalogue,
        language=options.language,
        share_upstreams=options.share_upstream,
    )


def _service(options: ServerOptions, tell: Tell) -> Service:
    view, language = view_named(options.view), options.language
    if is_task(options.source):
        return task_service(options.source, view, tools=options.tools, language=language)
    opened = open_source(options.source)
    if not opened.bundled:
        tell("no --upstream: only the bookkeeping tool is offered, and no call can be evidence")
    return source_service(opened, view, language=language)
