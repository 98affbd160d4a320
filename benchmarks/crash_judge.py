"""Sessions for the crash campaigns, and the judge of what a crash leaves behind."""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from counter_desk import COUNTER, ERRANDS, next_move
from sopilot.machine.replay import replay
from sopilot.machine.state import Configuration
from sopilot.messages.errors import TraceError
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.records.store import Settings, Store
from sopilot.session.session import Session
from sopilot.trace.chain import SealedEvent, verify_chain
from sopilot.trace.events import Start
from sopilot.values.json import JSON

IRREVERSIBLE = "transfer"
SETTINGS = Settings(lease_seconds=3600.0)
LONGEST = 60
"""Events after which a session starts no new errand."""


class JournalTools:
    """Carries an irreversible call out by writing it to a journal, as another system would."""

    def __init__(self, journal: Path) -> None:
        self._journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def schemas(self) -> Sequence[ToolSchema]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        if name == IRREVERSIBLE:
            os.write(self._journal, f"{key.rpartition(':')[0]}\n".encode())  # session and call
        return ToolResult(True, {"balance": 1000} if name == "read_balance" else {"done": name})


async def one_move(session: Session, source: random.Random) -> bool:
    """One operation of a run; ``False`` when the session is finished."""
    if session.retryable:
        await session.retry(session.retryable[0])
        return True
    if session.unknown_outcomes:
        # An operator settles it; the run itself must not make the call again.
        await session.resolve_outcome(session.unknown_outcomes[0], ok=True, by="operator")
        return True
    move = next_move(session.machine, session.configuration)
    if move is None:
        if len(session.events) > LONGEST:
            return False
        goal = source.choice((IRREVERSIBLE, "rename"))
        await session.operate(Start(goal, ERRANDS[goal]))
    elif isinstance(move, tuple):
        await session.call_tool(move[0], move[1], "c")
    else:
        await session.operate(move)
    return True


def digest(configuration: Configuration) -> str:
    """The whole configuration in sixteen characters: two cursors never share it."""
    return hashlib.sha256(repr(configuration).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """An event that the store promised to keep, and the session's state then."""

    session_id: str
    seq: int
    hash: str
    digest: str

    @classmethod
    def of(cls, session: Session) -> Acknowledged:
        return cls(session.id, session.head.seq, session.head.hash, digest(session.configuration))

    def line(self) -> bytes:
        return f"{self.session_id} {self.seq} {self.hash} {self.digest}\n".encode()

    @classmethod
    def read(cls, line: bytes) -> Acknowledged:
        session_id, seq, sealed, digest = line.decode().split()
        return cls(session_id, int(seq), sealed, digest)


@dataclass
class Tally:
    crashes: int = 0
    acknowledgements: int = 0
    """Reports of a head. A worker that resumes a session reports the head it read, so there may be
    more reports than events."""
    events: int = 0
    sessions: int = 0
    unknown_outcomes: int = 0
    irreversible_calls: int = 0
    checks: int = 0
    faults: list[str] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            *(
                mine + theirs
                for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)
            )
        )

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "faults": self.faults[:20], "fault_count": len(self.faults)}


class Judge:
    """Remembers what was acknowledged and holds the store against it."""

    def __init__(self, store: Store, journal: Path) -> None:
        self._store = store
        self._journal = journal
        self._acknowledged: dict[str, dict[int, tuple[str, str]]] = {}
        self._seen: dict[str, list[SealedEvent]] = {}
        self.tally = Tally()

    def heard(self, report: Acknowledged) -> None:
        known = self._acknowledged.setdefault(report.session_id, {})
        known[report.seq] = (report.hash, report.digest)
        self.tally.acknowledgements += 1

    async def check(self) -> None:
        """Every session that was heard of since the last check."""
        self.tally.checks += 1
        touched, self._acknowledged = self._acknowledged, {}
        journal = Counter(self._journal.read_text().split()) if self._journal.exists() else {}
        for session_id, known in touched.items():
            await self._check_session(session_id, known, journal)
        repeated = [key for key, times in journal.items() if times > 1]
        if repeated:
            self.tally.faults.append(f"carried out twice: {repeated[:3]}")

    async def _check_session(
        self, session_id: str, known: Mapping[int, tuple[str, str]], journal: Mapping[str, int]
    ) -> None:
        faults = self.tally.faults
        events = await self._store.events(session_id)
        earlier = self._seen.get(session_id, [])
        if events[: len(earlier)] != earlier:
            faults.append(f"{session_id}: the trace was forked")
        self._seen[session_id] = events
        broken = verify_chain(events, session_id=session_id)
        if broken is not None:
            faults.append(f"{session_id}: chain broken at {broken}")
            return
        known = {seq: acknowledged for seq, acknowledged in known.items() if seq >= 0}
        for seq, (sealed, _) in known.items():
            if seq >= len(events):
                faults.append(f"{session_id}: acknowledged event {seq} lost")
            elif events[seq].hash != sealed:
                faults.append(f"{session_id}: acknowledged event {seq} replaced")
        if not known:
            return
        last = max(known)
        machine = COUNTER.machine(SETTINGS.limits)
        try:
            replay(machine, events)
            stood = replay(machine, events[: last + 1])
        except TraceError as problem:
            faults.append(f"{session_id}: does not replay: {problem}")
            return
        if digest(stood) != known[last][1]:
            faults.append(f"{session_id}: another cursor at event {last}")
        self._check_calls(session_id, events, journal)

    def _check_calls(
        self, session_id: str, events: Sequence[SealedEvent], journal: Mapping[str, int]
    ) -> None:
        """A call whose record was acknowledged to nobody is on record as not made, and may be
        made once more; one that was carried out, or of which that is not known, may not."""
        called: dict[str | None, list[str]] = {}
        unmade = set()
        for sealed in events:
            event = sealed.event
            call = event.payload.get("call_id")
            if event.kind == "domain_call" and event.payload["action"] == IRREVERSIBLE:
                called.setdefault(event.process, []).append(str(call))
            elif event.kind == "domain_result" and event.payload.get("ok") is False:
                unmade.add(call)
        for calls in called.values():
            carried_out = [call for call in calls if f"{session_id}:{call}" in journal]
            if len(carried_out) > 1 or any(call not in unmade for call in calls[:-1]):
                self.tally.faults.append(f"{session_id}: an irreversible call was made again")
        keys = {f"{session_id}:{call}" for calls in called.values() for call in calls}
        unrecorded = [
            key for key in journal if key.startswith(f"{session_id}:") and key not in keys
        ]
        if unrecorded:
            self.tally.faults.append(f"{session_id}: carried out before it was recorded")

    async def close(self) -> None:
        await self._store.close()

    def finish(self) -> Tally:
        tally = self.tally
        tally.sessions = len(self._seen)
        tally.events = sum(len(events) for events in self._seen.values())
        tally.unknown_outcomes = sum(
            sealed.event.payload.get("name") == "outcome_unknown"
            for events in self._seen.values()
            for sealed in events
        )
        if self._journal.exists():
            tally.irreversible_calls = len(self._journal.read_text().split())
        return tally
