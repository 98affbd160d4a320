"""What a store keeps beside the sessions themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sopilot.runtime.records._action import ActionRow
from sopilot.runtime.records._selection import Wanted
from sopilot.runtime.trace import Head


class Records(Protocol):
    """Every method may raise ``StoreUnavailable``."""

    async def actions(self, wanted: Wanted) -> list[tuple[str, ActionRow]]:
        """Session id and row, by time, newest first."""
        ...

    async def count_actions(self) -> int: ...

    async def replace_actions(self, head: Head, rows: Sequence[ActionRow]) -> bool:
        """All rows of the session, in one transaction; nothing where it stands elsewhere."""
        ...

    async def rebuild_is_due(self) -> bool:
        """Whether the store has sessions of a release that kept no register."""
        ...

    async def rebuilt(self) -> None: ...

    async def heads(self) -> list[Head]:
        """Of every session, as the store has them."""
        ...
