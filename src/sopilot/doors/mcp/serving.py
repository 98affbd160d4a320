"""A server on standard streams or over HTTP, until its client leaves or somebody stops it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from sopilot.adapters.text_files import read_text
from sopilot.doors.mcp._http import HttpSettings, listen, serve_http
from sopilot.doors.mcp.limits import Limits
from sopilot.doors.mcp.mcp_server import ProcedureServer
from sopilot.language.diagnostics import Place, UserMistake, mistake

TOKEN_VARIABLE = "SOPILOT_MCP_TOKEN"
_LONGEST_PORT = 5
Tell = Callable[[str], None]


async def serve(procedures: ProcedureServer, settings: HttpSettings | None, tell: Tell) -> bool:
    """Until the client leaves or somebody stops it; whether standard streams were cut off."""
    if settings is not None:
        settings, sockets = listen(settings)
        tell(f"serving {settings.url}")
        await serve_http(procedures, settings, sockets)
        return False
    from mcp.server.stdio import stdio_server

    if sys.stdin.isatty():
        tell("serving on standard streams, for an MCP client that starts this; Ctrl-C ends it")

    async def converse() -> None:
        options = procedures.server.create_initialization_options()
        try:
            async with stdio_server() as (read, write):
                await procedures.server.run(read, write, options)
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


def http_settings(
    address: str | None,
    token_file: Path | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    limits: Limits,
) -> HttpSettings | None:
    if address is None:
        return None
    host, _, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    odd = "[" in bare or "]" in bare or host.startswith("[") != host.endswith("]")
    whole = port.isascii() and port.isdigit() and len(port) <= _LONGEST_PORT
    if not bare or odd or not whole:
        raise UserMistake(f"--http: `{address}` is not HOST:PORT")
    settings = HttpSettings(bare, int(port), _tokens(token_file), hosts, origins, limits)
    settings.check()
    return settings


def _tokens(path: Path | None) -> dict[str, str]:
    """From a file, or from the environment; never from the command line, which others see."""
    if path is None:
        token = os.environ.get(TOKEN_VARIABLE)
        return {"default": token} if token else {}
    if os.name == "posix" and path.exists() and path.stat().st_mode & 0o077:
        message = "others can read this file of tokens"
        raise mistake("open-secret", message, Place(str(path)), "chmod 600")
    tokens: dict[str, str] = {}
    for line in read_text(path).splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2:
            raise UserMistake(f"{path}: every line is `NAME TOKEN`")
        if words[0] in tokens:
            raise UserMistake(f"{path}: `{words[0]}` has two tokens; give each its own name")
        tokens[words[0]] = words[1]
    if not tokens:
        raise UserMistake(f"{path}: there is no token in it")
    return tokens


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Most of a server's time goes by in the event loop, and this one is quicker."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
