"""A person at the terminal, as the user who is served."""

from __future__ import annotations

import asyncio
import io
import sys

import click

from sopilot.language.diagnostics import UserMistake

PROMPT = "you> "


class HumanUser:
    """An empty line or the end of the input ends the dialog."""

    def __init__(self, request: str | None = None) -> None:
        self._request = request

    def opening(self) -> str:
        while not self._request:
            click.echo(PROMPT, nl=False)
            line = sys.stdin.readline()
            if not line:
                raise UserMistake("the input ended before anybody asked for anything")
            self._request = line.strip()
        return self._request

    async def reply(self, message: str) -> str | None:
        click.echo(PROMPT, nl=False)
        await _typed()
        return sys.stdin.readline().strip() or None


async def _typed() -> None:
    """Until there is something to read. The lease is renewed meanwhile, and an interrupt is
    heard at once, which a thread that waits for a line would not allow."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        descriptor = sys.stdin.fileno()
        loop.add_reader(descriptor, ready.set)
    except (io.UnsupportedOperation, PermissionError, NotImplementedError):
        # Not a terminal or a pipe: reading does not block.
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
