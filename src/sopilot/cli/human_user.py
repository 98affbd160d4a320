"""A person at the terminal, as the user who is served."""

from __future__ import annotations

import asyncio

import click


class HumanUser:
    """An empty line or the end of the input ends the dialog."""

    def __init__(self, request: str | None = None) -> None:
        self._request = request

    def opening(self) -> str:
        if self._request:
            return self._request
        text = ""
        while not text.strip():
            text = click.prompt("you", prompt_suffix="> ", default="", show_default=False)
        return text

    async def reply(self, message: str) -> str | None:
        try:
            # The lease is renewed meanwhile, so the prompt must not stop the event loop.
            text = await asyncio.to_thread(
                click.prompt, "you", prompt_suffix="> ", default="", show_default=False
            )
        except click.Abort:
            return None
        return str(text).strip() or None
