"""A user who asks for something and then leaves everything to the executor."""

from __future__ import annotations


class SilentUser:
    def opening(self) -> str:
        return "Please do it."

    async def reply(self, message: str) -> str | None:
        return None
