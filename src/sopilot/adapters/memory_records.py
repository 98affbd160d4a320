"""The register of actions in memory."""

from __future__ import annotations

from collections.abc import Sequence

from sopilot.runtime.records import ActionRow, Wanted
from sopilot.runtime.trace import Head
from sopilot.runtime.vm.values import spell


class MemoryRecords:
    def __init__(self) -> None:
        self.session_heads: dict[str, Head] = {}
        self._rows: dict[str, dict[str, ActionRow]] = {}

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
