"""The register of actions and the log of sessions in memory."""

from __future__ import annotations

from collections.abc import Sequence

from sopilot.runtime.records import ActionRow, Wanted
from sopilot.runtime.records.log import LogEntry, SealedHead, digest_of
from sopilot.runtime.session.journal import is_journal
from sopilot.runtime.trace import Head
from sopilot.runtime.vm.values import spell


class MemoryRecords:
    def __init__(self) -> None:
        self.session_heads: dict[str, Head] = {}
        self._rows: dict[str, dict[str, ActionRow]] = {}
        self._log: list[LogEntry] = []
        self._seals: list[SealedHead] = []

    def created(self, head: Head, at: float) -> None:
        self.session_heads[head.session_id] = head
        self._add_entry(head, at)

    def _add_entry(self, head: Head, at: float) -> None:
        actions = digest_of(self._rows.get(head.session_id, {}).values())
        self._log.append(LogEntry(len(self._log), at, *head, actions))

    def add_actions(self, session_id: str, rows: Sequence[ActionRow]) -> None:
        kept = self._rows.setdefault(session_id, {})
        for row in rows:
            kept[row.call] = row

    async def actions(self, wanted: Wanted) -> list[tuple[str, ActionRow]]:
        found = [
            (session_id, row)
            for session_id, rows in self._rows.items()
            for row in rows.values()
            if _fits(row, wanted)
        ]
        return sorted(found, key=lambda one: -one[1].at)

    async def count_actions(self) -> int:
        return sum(map(len, self._rows.values()))

    async def count_sessions(self) -> int:
        return sum(not is_journal(one) for one in self.session_heads)

    async def replace_actions(self, head: Head, rows: Sequence[ActionRow]) -> bool:
        if self.session_heads.get(head.session_id) != head:
            return False
        self._rows[head.session_id] = {row.call: row for row in rows}
        return True

    async def rebuild_is_due(self) -> bool:
        return False

    async def rebuilt(self) -> None:
        """Nothing was due."""

    async def heads(self) -> list[Head]:
        return list(self.session_heads.values())

    async def digests(self) -> dict[str, str]:
        return {session_id: digest_of(rows.values()) for session_id, rows in self._rows.items()}

    async def log(self, *, after: int = -1) -> list[LogEntry]:
        return self._log[after + 1 :]

    async def log_heads(self, session_ids: Sequence[str], *, at: float) -> None:
        for session_id in session_ids:
            self._add_entry(self.session_heads[session_id], at)

    async def add_seal(self, seal: SealedHead) -> None:
        self._seals.append(seal)

    async def seals(self) -> list[SealedHead]:
        return list(self._seals)


def _fits(row: ActionRow, wanted: Wanted) -> bool:
    outcome = row.outcome
    if outcome == "held" and row.expires_at is not None and row.expires_at < wanted.now:
        outcome = "expired"
    return all(
        (
            wanted.begin is None or row.at >= wanted.begin,
            wanted.end is None or row.at < wanted.end,
            wanted.action is None or row.action == spell(wanted.action),
            wanted.outcome in (None, outcome),
            wanted.grade in (None, row.grade),
        )
    )
