"""What a session is opened with, and what is told of it before anything happens."""

from __future__ import annotations

from typing import Any

import pytest

from counter_desk import COUNTER, CountingTools, HandClock
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.secrets import SecretPlaces
from sopilot.records.people import Principal
from sopilot.session.opening import open_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore


async def opened(store: MemoryStore, **given: Any) -> Session:
    return await open_session(store, COUNTER, tools=CountingTools(), clock=HandClock(), **given)


@pytest.mark.parametrize(
    ("given", "requester"),
    [
        ({}, None),
        ({"requester": "una"}, "una"),
        ({"requester": Principal("una", "token")}, "una"),
        ({"extra": {"task": 1}}, None),
    ],
)
async def test_who_asks_is_kept_where_it_is_known(
    given: dict[str, Any], requester: str | None
) -> None:
    store = MemoryStore()
    session = await opened(store, **given)
    record = await store.record(session.id)
    assert record.metadata.get("requester") == requester
    assert ("requester" in record.metadata) is (requester is not None)
    told: Any = session.events[0].event.payload["details"]
    assert told.get("requester") == requester
    assert record.metadata["extra"] == given.get("extra", {})
    assert (len(session.id), len(record.metadata["salt"])) == (32, 32)
    assert record.metadata["goals"] == list(COUNTER.programs)


async def test_what_may_be_old_is_read_again_also_under_a_lease_that_holds() -> None:
    session = await opened(MemoryStore())
    assert await session.refresh() is False
    session._stale = True
    assert not session.is_current
    assert await session.refresh() is True
    assert session.is_current
    assert await session.refresh() is False


@pytest.mark.parametrize(("guard", "declared"), [("", None), (", irreversible: true", frozenset())])
def test_programs_that_guard_nothing_name_no_other_actions(
    guard: str, declared: frozenset[str] | None
) -> None:
    book = load_handbook(f"""
handbook: vault
actions:
  look: {{input: {{user: string, code: {{type: string, secret: true}}}}}}
  open_box: {{input: {{user: string}}{guard}}}
predicates:
  known(user):
    says: The customer is known.
    established_by: look(user, code=code)
procedures:
  open_box: {{requires: known(user)}}
""")
    programs = {name: one.program for name, one in compile_handbook(book).items()}
    places = SecretPlaces(ProgramSet(programs))
    assert "code" in places.names
    assert places.inputs("somewhere_else") == declared
    assert places.inputs("look") == {"user", "code"}
