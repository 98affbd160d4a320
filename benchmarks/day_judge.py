"""A day is held against the shop's ledger: what clients were told, what the traces say, what was
really done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from day_clients import ALONE, LARGEST, Heard
from sopilot.protocols import SystemClock
from sopilot.records.store import Store
from sopilot.runner.audit_inputs import session_input
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.chain import SealedEvent, verify_chain

EVERYTHING = 10**9
MOST_MORE = 0.1
MOST_MORE_MIB = 20.0
MOST_MORE_DESCRIPTORS = 10.0


class Judge:
    """Sessions are read where they are: in the store, or, once pruned, in an archive."""

    def __init__(self, store: Store, archives: Sequence[Path]) -> None:
        self._store = store
        self._archives = [SQLiteStore(archive) for archive in archives]
        self.faults: list[str] = []

    async def judge(self, heard: Heard, ledger: Sequence[dict[str, Any]]) -> dict[str, Any]:
        where = await self._where()
        traces: dict[str, list[SealedEvent]] = {}
        findings: Counter[str] = Counter()
        errors = broken = 0
        for session_id, store in where.items():
            record = await store.record(session_id)
            traces[session_id] = await store.events(session_id)
            wrong = verify_chain(traces[session_id], session_id=session_id, head=record.head)
            if wrong is not None:
                broken += 1
                self.faults.append(f"{session_id} cannot be verified: {wrong}")
            source = await session_input(store, session_id, handbook=None, goal=None)
            for audited in source.audit():
                for finding in audited.report.findings:
                    findings[finding.code] += 1
                    if finding.severity == "error":
                        errors += 1
                        self.faults.append(f"{session_id}: audit: {finding.code}")
        unsettled = {record.id for record in await self._store.unresolved(now=SystemClock().now())}
        figures = {
            "sessions": len(where),
            "sessions_in_archives": sum(store is not self._store for store in where.values()),
            "sessions_missing": self._missing(heard, where),
            "sessions_that_cannot_be_verified": broken,
            "acknowledged": len(heard.answers),
            "acknowledged_but_not_in_the_trace": self._lost(heard, traces),
            **self._world(heard, ledger, traces, unsettled),
            "audit_findings": dict(findings),
            "audit_errors": errors,
        }
        for store in self._archives:
            await store.close()
        return figures

    async def _where(self) -> dict[str, Store]:
        where: dict[str, Store] = {}
        for store in self._archives:
            for record in await store.sessions(limit=EVERYTHING):
                where[record.id] = store
        for record in await self._store.sessions(limit=EVERYTHING):
            if not record.is_pruned:
                where[record.id] = self._store
            elif record.id not in where:
                self.faults.append(f"{record.id} was pruned, and is in no archive")
        return where

    def _missing(self, heard: Heard, where: dict[str, Store]) -> int:
        sessions = {session for session, *_ in heard.answers} | set(heard.finished)
        missing = sessions - set(where)
        self.faults += [f"{session} was talked with, and is nowhere" for session in missing]
        return len(missing)

    def _lost(self, heard: Heard, traces: dict[str, list[SealedEvent]]) -> int:
        lost = 0
        results = {
            session: {sealed.event.seq for sealed in events if sealed.event.kind == "domain_result"}
            for session, events in traces.items()
        }
        for session, number, tool, _ in heard.answers:
            if number not in results.get(session, ()):
                lost += 1
                self.faults.append(f"{session}: #{number} of {tool} is not in the trace")
        for session, ended in heard.finished.items():
            kinds = {sealed.event.kind for sealed in traces.get(session, ())}
            if ended not in kinds:
                lost += 1
                self.faults.append(f"{session}: was told `{ended}`, which is not in the trace")
        return lost

    def _world(
        self, heard: Heard, ledger: Sequence[dict[str, Any]],
        traces: dict[str, list[SealedEvent]], unsettled: set[str],
    ) -> dict[str, int]:  # fmt: skip
        """The ledger against the traces: each thing that was done, once, with its reasons."""
        orders = Counter(entry["order"] for entry in ledger)
        twice = {order for order, times in orders.items() if times > 1}
        confirmed = {order for *_, tool, order in heard.answers if tool == "refund"}
        unfounded = unapproved = hidden = unknown = 0
        for entry in ledger:
            session, call, _ = str(entry["key"]).rsplit(":", 2)
            events = traces.get(session, [])
            if entry["order"].startswith("undelivered") or entry["amount"] > LARGEST:
                unfounded += 1
                self.faults.append(f"{entry['key']}: done, though refused: {entry['order']}")
            of_call = [
                sealed.event for sealed in events if sealed.event.payload.get("call_id") == call
            ]
            kinds = {event.kind for event in of_call}
            if "domain_call" not in kinds:
                unfounded += 1
                self.faults.append(f"{entry['key']}: done, and no call of any trace")
            approved = any(
                event.kind == "decision" and event.payload["decision"] == "approve"
                for event in of_call
            )
            if entry["amount"] > ALONE and not approved:
                unapproved += 1
                self.faults.append(f"{entry['key']}: done without approval: {entry['order']}")
            if "domain_result" not in kinds:
                unknown += 1
                if session not in unsettled:
                    hidden += 1
                    self.faults.append(f"{entry['key']}: unknown, and on no list")
        phantom = confirmed - set(orders)
        self.faults += [f"{order}: done twice" for order in twice]
        self.faults += [f"{order}: the client was told it is done" for order in phantom]
        return {
            "really_done": len(ledger),
            "done_twice": len(twice),
            "done_without_proof": unfounded,
            "done_without_approval": unapproved,
            "told_as_done_and_not_done": len(phantom),
            "unknown_at_the_end": unknown,
            "unknown_and_never_listed": hidden,
        }


def flat(name: str, samples: Sequence[float], allowed: float) -> dict[str, Any]:
    """The last sixth of a day against the second, in medians."""
    sixth = max(1, len(samples) // 6)
    second, last = median(samples[sixth : 2 * sixth]), median(samples[-sixth:])
    return {
        "what": name,
        "second_sixth": round(second, 1),
        "last_sixth": round(last, 1),
        "most": round(max(samples), 1),
        "flat": last <= max(second * (1 + MOST_MORE), second + allowed),
    }
