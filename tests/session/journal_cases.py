"""A store and a clock for cases about journals, and people who write to them."""

from __future__ import annotations

from typing import Any

import pytest

from counter_desk import COUNTER, CountingTools, HandClock
from sopilot.messages.errors import UserMistake
from sopilot.records.journal import write
from sopilot.records.people import Principal
from sopilot.session.opening import open_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.values.json import JSON


def code_of(refused: pytest.ExceptionInfo[UserMistake]) -> str:
    return refused.value.diagnostics[0].code


async def session(store: MemoryStore, clock: HandClock, name: str, **given: Any) -> Session:
    return await open_session(
        store, COUNTER, tools=CountingTools(), clock=clock, session_id=name, **given
    )


async def person(store: MemoryStore, name: str, *roles: str, demand: str = "") -> None:
    """Before there is an administrator, anybody may say who is there."""
    clock = HandClock()
    if name:
        said: dict[str, JSON] = {"person": name, "roles": list(roles)}
        said |= {"aliases": [], "subjects": []}
        await write(store, "people", "person_added", said, clock=clock)
        given: dict[str, JSON] = {"person": name, "token": f"of {name}", "sha256": name}
        await write(store, "people", "token_issued", given, clock=clock)
    if demand:
        await write(store, "people", "demanded", {"what": demand, "on": True}, clock=clock)


def who(name: str) -> Principal:
    return Principal(name, "token", f"of {name}")
