"""One writer at a time, on top of what the store really holds."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sopilot.runtime.session._session import Session


class Writing:
    """Written out by hand: a generator would cost as much as a step of the machine."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def __aenter__(self) -> None:
        await self._session.begin_writing()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.end_writing()
