"""Run the server that `sopilot serve` asks for: on standard streams, or over HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mcp.server.stdio import stdio_server

from sopilot.integrations.mcp.health import Health, require_store
from sopilot.integrations.mcp.http import listen, serve_http
from sopilot.integrations.mcp.options import HttpSettings, ServerOptions, UpstreamSpec
from sopilot.integrations.mcp.pins import Catalogue, Pins, Tell
from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.services import gateway_service, source_service, task_service
from sopilot.integrations.mcp.sessions import LINGER_SECONDS, Service, SessionPool
from sopilot.integrations.metrics import NoMetrics, metered, metrics
from sopilot.records.store import Settings, Store
from sopilot.runner.sources import is_task, open_source
from sopilot.stores.open import open_store
from sopilot.views.catalogue import view_named
from sopilot.views.view import View

if TYPE_CHECKING:
    from sopilot.integrations.telemetry import Telemetry

INTERRUPTED = 130
"""The exit code that shells give to an interrupted process."""


def serve(options: ServerOptions, tell: Tell) -> None:
    specs, http = options.specs(), options.http()
    view = view_named(options.view)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(options, view, specs, http, tell))


async def _serve(
    options: ServerOptions,
    view: View,
    specs: list[UpstreamSpec],
    http: HttpSettings | None,
    tell: Tell,
) -> None:
    meter = metrics() if http is not None and http.admin is not None else NoMetrics()
    store = metered(open_store(options.store_spec), meter)
    catalogue: Catalogue | None = None
    try:
        if specs:
            handbook = open_source(options.source).handbook
            catalogue = Catalogue(
                specs,
                await Pins(store).load(),
                tell,
                handbook=handbook,
                options=options,
                pass_reads=bool(view.guard) and not options.handbook_only,
                meter=meter,
            )
            await catalogue.open()
            service = gateway_service(
                handbook,
                view,
                catalogue,
                language=options.language,
                share_upstreams=options.share_upstream,
            )
        else:
            service = _service(options, view, tell)
        service = replace(service, settings=Settings(lease_seconds=options.lease_seconds))
        server = McpServer(
            _pool(options, store, service, len(specs), meter),
            catalogue=catalogue,
            session_id=options.session_id,
            tell=tell,
            meter=meter,
            telemetry=_telemetry(),
        )
        cut_off = False
        try:
            if http is None:
                cut_off = await _on_streams(server, tell)
            else:
                await _over_http(server, http, tell, Health(store, meter), options.http)
        finally:
            await server.close()
    finally:
        if catalogue is not None:
            await catalogue.close()
        await store.close()
    if cut_off:
        # A thread still waits for a line from the client, and would keep the process.
        os._exit(INTERRUPTED)


async def _on_streams(server: McpServer, tell: Tell) -> bool:
    """Serve until the client leaves or a signal comes; whether it was a signal."""
    if sys.stdin.isatty():
        tell("serving over stdio to the MCP client that started this; stop with Ctrl-C")

    async def converse() -> None:
        try:
            async with stdio_server() as (read, write):
                await server.protocol.run(
                    read, write, server.protocol.create_initialization_options()
                )
        except* BrokenPipeError:
            pass  # the client has left without closing its side

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    talking = asyncio.create_task(converse())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({talking, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if talking.done():
        talking.result()
    return not talking.done()


async def _over_http(
    server: McpServer,
    settings: HttpSettings,
    tell: Tell,
    health: Health,
    reread: Callable[[], HttpSettings | None],
) -> None:
    await require_store(server.pool.store)
    settings, sockets = listen(settings)
    with suppress(ImportError, ValueError, OSError):
        import resource  # each client takes a file descriptor or more

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    tell(f"serving {settings.url}")
    await serve_http(server, settings, sockets, health=health, reread=reread)


def _pool(
    options: ServerOptions, store: Store, service: Service, upstreams: int, meter: NoMetrics
) -> SessionPool:
    limits = options.limits
    return SessionPool(
        store,
        service,
        most=limits.sessions_with(0 if options.share_upstream else upstreams),
        most_of_one=limits.sessions_of_one,
        idle_seconds=limits.idle_seconds,
        linger_seconds=0.0 if options.stateless else LINGER_SECONDS,
        meter=meter,
    )


def _service(options: ServerOptions, view: View, tell: Tell) -> Service:
    language = options.language
    if is_task(options.source):
        return task_service(options.source, view, tools=options.tools, language=language)
    source = open_source(options.source)
    if not source.bundled:
        tell("no --upstream: only the step tool is offered, and no call can be evidence")
    return source_service(source, view, language=language)


def _telemetry() -> Telemetry | None:
    """Spans, if OpenTelemetry is set up to send them."""
    if find_spec("opentelemetry") is None:
        return None
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

    if isinstance(get_tracer_provider(), ProxyTracerProvider):
        return None
    from sopilot.integrations.telemetry import Telemetry

    return Telemetry()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: most of a server's time is the event loop's."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
