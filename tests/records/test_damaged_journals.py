"""Whoever writes to a store may write entries that are not as ours: told of, no crash."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from sopilot.messages.errors import StoreCorrupt
from sopilot.protocols import SystemClock
from sopilot.records.audits import kept_audits, load_deviations
from sopilot.records.journal import write
from sopilot.records.loading import register
from sopilot.records.people import load_people
from sopilot.records.privacy import load_policy
from sopilot.records.selection import Wanted
from sopilot.records.store import Store
from sopilot.records.versions import load_versions
from sopilot.stores.memory import MemoryStore


async def _register(store: Store) -> object:
    return await register(store, Wanted())


async def _audits(store: Store) -> object:
    return await kept_audits(store, "one")


@pytest.mark.parametrize(
    ("journal", "entry", "read"),
    [
        ("people", "token_issued", load_people),
        ("privacy", "pruned", load_policy),
        ("handbooks", "version_released", load_versions),
        ("deviations", "deviation_opened", load_deviations),
        ("deviations", "deviation_opened", _register),
        ("audits.one", "audited", _audits),
    ],
)
async def test_an_entry_without_its_details_is_a_damaged_store(
    journal: str, entry: str, read: Callable[[Store], Awaitable[object]]
) -> None:
    store = MemoryStore()
    await read(store)
    await write(store, journal, entry, {"findings": [{}]}, clock=SystemClock())
    with pytest.raises(StoreCorrupt, match=f"journal.{journal} is damaged"):
        await read(store)
