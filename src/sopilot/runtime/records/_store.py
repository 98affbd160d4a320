"""What a store keeps beside the sessions themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sopilot.runtime.records._action import ActionRow
from sopilot.runtime.records._selection import Wanted
from sopilot.runtime.records.log import LogEntry, SealedHead
from sopilot.runtime.trace import Head


class Records(Protocol):
    """Every method may raise ``StoreUnavailable``."""

    async def actions(self, wanted: Wanted) -> list[tuple[str, ActionRow]]:
        """Session id and row, by time, newest first."""
        ...

    async def count_actions(self) -> int: ...

    async def count_sessions(self) -> int: ...

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

    async def digests(self) -> dict[str, str]:
        """Session → ``digest_of`` its rows; sessions without a row may be left out."""
        ...

    async def log(self, *, after: int = -1) -> list[LogEntry]:
        """By number. ``create`` of the store writes a session's first entry."""
        ...

    async def log_heads(self, session_ids: Sequence[str], *, at: float) -> None:
        """An entry for each as it stands, numbered on, in one transaction."""
        ...

    async def add_seal(self, seal: SealedHead) -> None: ...

    async def seals(self) -> list[SealedHead]:
        """Oldest first."""
        ...
