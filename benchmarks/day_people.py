"""The people of a day: they decide what waits, and say how calls ended of which nobody knows."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable

from day_parts import Shop
from sopilot.messages.errors import SopilotError
from sopilot.protocols import SystemClock
from sopilot.records.reminders import due_calls
from sopilot.session.orphans import waiting_in
from sopilot.session.queued_decisions import decide_or_queue, resolve_when_free
from sopilot.stores.postgres import PostgresStore

DECISIONS = {"given": "approve", "rejected": "reject"}
"""Kind of order, which its name begins with → decision; other orders wait until they expire."""
TO_FIND_OUT = 0.4
"""Hours that people take to ask how a call ended."""


class People:
    def __init__(
        self, store: PostgresStore, shop: Shop, hour: float, mark: Callable[[str, str], None]
    ) -> None:
        self._store, self._shop, self._hour, self._mark = store, shop, hour, mark
        self.decided: Counter[str] = Counter()
        self.listed_after: list[float] = []
        """Seconds from the shop's own entry until the call stood on the list of unknowns."""
        self.away = False
        self._seen: dict[str, float] = {}

    async def decide_all(self) -> None:
        while True:
            await asyncio.sleep(min(5.0, 0.05 * self._hour))
            try:
                for call in await due_calls(self._store):
                    await self._decide(call.session, call.call_id)
                await self._settle()
            except SopilotError:
                self.decided["tried again"] += not self.away

    async def _decide(self, session: str, call: str) -> None:
        held = {call.call_id: call for call in (await waiting_in(self._store, session)).held}
        if call not in held:
            return
        kind = str(held[call].arguments["order"]).split("-")[0]
        decision = DECISIONS.get(kind)
        if decision is None or random.random() < 0.5:  # not this time
            return
        _, _, left = await decide_or_queue(
            self._store, session, decision, call, by="Kim", role="manager"
        )
        self.decided[f"{decision}, left for who runs the session" if left else decision] += 1

    async def _settle(self) -> None:
        """Resolve unknown outcomes by the shop's own ledger."""
        done = {entry["key"].rpartition(":")[0]: entry["at"] for entry in self._shop.entries()}
        for record in await self._store.unresolved(now=SystemClock().now()):
            for call in (await waiting_in(self._store, record.id)).unknown:
                key = f"{call.session_id}:{call.call_id}"
                if key not in self._seen:
                    self._seen[key] = time.time()
                    self._mark("unknown", call.session_id[:6])
                    if key in done:
                        self.listed_after.append(time.time() - done[key])
                if time.time() - self._seen[key] < TO_FIND_OUT * self._hour:
                    continue
                await resolve_when_free(
                    self._store, call.session_id, call.call_id, ok=key in done, by="Kim"
                )
                self.decided["settled: happened" if key in done else "settled: did not"] += 1
