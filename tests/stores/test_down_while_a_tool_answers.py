"""Row 12 through `Runner`: a program that embeds sopilot is told *unknown*, never *not done*.

The judge is the door: how often was it opened?
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import sopilot
from postgres_here import PostgresHere
from sopilot.messages.errors import OutcomeUnrecorded
from sopilot.session.lease import when_free
from sopilot.session.opening import attach_session
from sopilot.stores.postgres import PostgresStore
from sopilot.trace.events import OUTCOME_UNKNOWN

DOOR = """
handbook: door
actions:
  look_up: {input: {name: string}}
  open_door: {input: {name: string}, irreversible: true, confirm: false}
predicates:
  invited(name): {says: invited, verify: look_up(name), verdict: result.invited}
procedures:
  open_door: {requires: invited(name)}
"""


class Door:
    """The database crashes while the door opens."""

    def __init__(self, postgres: PostgresHere) -> None:
        self.postgres, self.opened = postgres, 0

    def look_up(self, name: str) -> dict[str, bool]:
        return {"invited": True}

    async def open_door(self, name: str, key: str) -> dict[str, bool]:
        self.opened += 1
        await asyncio.to_thread(self.postgres.stop_immediately)
        return {"opened": True}


async def test_the_caller_learns_that_the_outcome_is_unknown(
    postgres: PostgresHere, tmp_path: Path
) -> None:
    handbook = tmp_path / "door.yaml"
    handbook.write_text(DOOR, "utf-8")

    store = PostgresStore(postgres.dsn, schema="down_while_answering")
    door = Door(postgres)
    runner = sopilot.load(handbook, store=store)
    try:
        with pytest.raises(OutcomeUnrecorded) as raised:
            await runner.run("Open.", tools=door, inputs={"name": "Ada"})
    finally:
        postgres.start()
    said = str(raised.value)
    assert "`open_door` was sent" in said
    assert "outcome is unknown" in said
    assert "not done" not in said.lower()
    ids = [one.id for one in await store.sessions() if not one.id.startswith("journal")]
    (session_id,) = ids
    # The crash kept the lease from being given back.
    again = await when_free(lambda: runner.resume(session_id, tools=door), patience_seconds=60)
    assert not again.executed
    assert door.opened == 1, "a call that can't be taken back is never repeated"
    async with await attach_session(store, session_id) as session:
        assert session.unknown_outcomes
        notes = [one.event for one in session.events if one.event.kind == "note"]
        assert OUTCOME_UNKNOWN in [one.payload["name"] for one in notes]
    await store.close()
