"""What is kept about a person, for that person."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sopilot.runtime.session import SessionRecord, Store
from sopilot.runtime.session.registers import Traces
from sopilot.runtime.session.secrets import SecretPlaces, shown_events


async def disclosed(store: Store, subjects: Sequence[str], records: Sequence[SessionRecord]) -> str:
    """The sessions in which a text of theirs stands: handbook, times and every event, without
    the values of secret inputs."""
    sessions, traces = [], Traces(store)
    for record in records:
        loaded = await traces.loaded(record.id)
        payloads = await store.payloads(record.id)
        sessions.append(
            {
                "session": record.id,
                "handbook": record.metadata.get("handbook"),
                "created_at": record.created_at,
                "updated_at": record.updated_at,
                "events": [
                    {"at": one.at, "actor": one.actor, "kind": one.kind, "payload": one.payload}
                    for one in shown_events(loaded.events, payloads, SecretPlaces(loaded.programs))
                ],
            }
        )
    found = {"subject": list(subjects), "sessions": sessions}
    return json.dumps(found, ensure_ascii=False, indent=1, default=str) + "\n"
