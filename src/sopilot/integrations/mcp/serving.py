"""A server on standard streams or over HTTP, until its client leaves or somebody stops it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sopilot.files.text import read_text
from sopilot.integrations.logs import LOG
from sopilot.integrations.mcp.clients import LOCAL
from sopilot.integrations.mcp.http import HttpSettings, listen, listen_apart, serve_http
from sopilot.integrations.mcp.limits import Limits
from sopilot.integrations.mcp.server import ProcedureServer
from sopilot.integrations.mcp.standard_streams import serve_standard_streams
from sopilot.integrations.mcp.watch import Watch, require_there, settled
from sopilot.integrations.mcp.workers import Supervisor, Worker
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import SopilotError, UserMistake, mistake

if TYPE_CHECKING:
    from sopilot.integrations.telemetry import Telemetry


TOKEN_VARIABLE = "SOPILOT_MCP_TOKEN"


_LONGEST_PORT = 5


_ORPHAN_SECONDS = 1.0


_LOADED_ONCE = (
    "anyio._backends._asyncio", "cel_expr_python.cel", "sopilot.stores.postgres",
    "sopilot.stores.sqlite", "uvicorn.lifespan.on", "uvloop",
)  # fmt: skip
"""By the supervisor, for all its workers; an extra may be missing."""


Tell = Callable[[str], None]


async def serve(
    procedures: ProcedureServer,
    settings: HttpSettings | None,
    tell: Tell,
    *,
    watch: Watch | None = None,
    reread: Callable[[], HttpSettings | None] | None = None,
    worker: Worker | None = None,
) -> bool:
    """Until the client leaves or somebody stops it; whether standard streams were cut off."""
    if settings is not None:
        await _serve_http(procedures, settings, tell, watch, reread, worker)
        return False
    if sys.stdin.isatty():
        tell("serving on standard streams, for an MCP client that starts this; Ctrl-C ends it")

    async def converse() -> None:
        try:
            await serve_standard_streams(procedures.server, procedures.coming)
        except* BrokenPipeError:
            pass  # the client has left without closing its side

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    talking = asyncio.create_task(converse())
    stopping = asyncio.create_task(stop.wait())
    with settled():
        await asyncio.wait({talking, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if talking.done():
        talking.result()
    return not talking.done()


async def _serve_http(
    procedures: ProcedureServer,
    settings: HttpSettings,
    tell: Tell,
    watch: Watch | None,
    reread: Callable[[], HttpSettings | None] | None,
    worker: Worker | None,
) -> None:
    await require_there(procedures.hub.store)  # who cannot reach it must not be asked to serve
    if worker is not None:
        sockets = list(worker.sockets)
        port = sockets[0].getsockname()[1]
        admin = settings.admin and (settings.admin[0], settings.admin[1] + worker.number)
        settings = replace(settings, port=port, admin=admin)
    else:
        settings, sockets = listen(settings)
    _raise_descriptors()
    tell(f"serving {settings.url}")
    watching = None
    if worker is not None:
        worker.serves()
        watching = asyncio.create_task(_end_when_orphaned(worker))

    def again() -> HttpSettings:
        return (reread() if reread else None) or settings

    try:
        await serve_http(procedures, settings, sockets, watch=watch, reread=again)
    finally:
        if watching is not None:
            watching.cancel()


async def _end_when_orphaned(worker: Worker) -> None:
    """As if it was told to: requests under way come to their end, sessions are given back, and the
    port is free for the next supervisor."""
    while not worker.is_orphan:
        await asyncio.sleep(_ORPHAN_SECONDS)
    LOG.warning("the supervisor is gone: this worker ends")
    os.kill(os.getpid(), signal.SIGTERM)


def supervise(
    settings: HttpSettings, count: int, tell: Tell, reread: Callable[[], HttpSettings | None]
) -> tuple[Worker, HttpSettings]:
    """Comes back in each worker, with what was read last; the supervisor ends here."""
    settings, sockets = listen_apart(settings, count)

    def again() -> None:
        nonlocal settings
        try:
            settings = reread() or settings
        except SopilotError as problem:
            tell(f"not read again, and as before: {problem}")

    for name in _LOADED_ONCE:
        with suppress(ImportError):
            import_module(name)
    tell(f"{count} workers at {settings.url}")
    ended = Supervisor(sockets, tell, again).run()
    if isinstance(ended, int):
        raise SystemExit(ended)
    return ended, settings


def telemetry() -> Telemetry | None:
    """Spans for whatever OpenTelemetry is set up to send; where nothing is, none."""
    if find_spec("opentelemetry") is None:
        return None
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

    if isinstance(get_tracer_provider(), ProxyTracerProvider):
        return None
    from sopilot.integrations.telemetry import Telemetry

    return Telemetry()


def _raise_descriptors() -> None:
    """As many files as the system lets this process have: each client takes one or more."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def http_settings(
    address: str | None,
    token_file: Path | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    limits: Limits,
    *,
    stateless: bool = False,
    admin: str | None = None,
) -> HttpSettings | None:
    """From what people write; ``None`` for standard streams."""
    if address is None:
        if admin is not None or stateless:
            raise UserMistake("--admin, --stateless and --workers are for --http")
        return None
    host, port = _address("--http", address)
    settings = HttpSettings(
        host, port, _tokens(token_file), hosts, origins, limits, stateless,
        _address("--admin", admin) if admin is not None else None,
    )  # fmt: skip
    settings.check()
    return settings


def _address(option: str, address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    odd = "[" in bare or "]" in bare or host.startswith("[") != host.endswith("]")
    whole = port.isascii() and port.isdigit() and len(port) <= _LONGEST_PORT
    if not bare or odd or not whole:
        raise UserMistake(f"{option}: `{address}` is not HOST:PORT")
    return bare, int(port)


def _tokens(path: Path | None) -> dict[str, str]:
    """From a file, or from the environment; never from the command line, which others see."""
    if path is None:
        token = os.environ.get(TOKEN_VARIABLE)
        return {"default": token} if token else {}
    if os.name == "posix" and path.exists() and _is_open(path.stat()):
        message = "others can read this file of tokens"
        raise mistake("open-secret", message, Place(str(path)), "chmod 600")
    tokens: dict[str, str] = {}
    for line in read_text(path).splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2:
            raise UserMistake(f"{path}: every line is `NAME TOKEN`")
        if words[0] == LOCAL:
            raise UserMistake(
                f"{path}: `{LOCAL}` is who comes without a token; choose another name"
            )
        if words[0] in tokens:
            raise UserMistake(f"{path}: `{words[0]}` has two tokens; give each its own name")
        if words[1] in tokens.values():
            raise UserMistake(f"{path}: `{words[0]}` has another name's token; whose is it?")
        tokens[words[0]] = words[1]
    if not tokens:
        raise UserMistake(f"{path}: there is no token in it")
    return tokens


def _is_open(found: os.stat_result) -> bool:
    """Whether others than this process can read it. A secret that a cluster mounts is root's, and
    readable for the group that the process is in."""
    theirs = 0o037 if found.st_uid == 0 != os.getuid() else 0o077
    return bool(found.st_mode & theirs)


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Most of a server's time goes by in the event loop, and this one is quicker."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
