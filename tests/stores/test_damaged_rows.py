"""One session whose row is damaged hides no other, and accuses none."""

from __future__ import annotations

import pytest
from store_parts import Writer, opening

from sopilot.messages.errors import StoreCorrupt
from sopilot.stores.sql import SqlStore

DAMAGES = {
    "cut off": ("summary", '{"open":["t"'),
    "no text": ("summary", '\udcff"status":"unknown"'),
    "no object": ("summary", '["\\"status\\":\\"unknown\\"", {"status":"unknown"}]'),
    "about": ("metadata", "[]"),
}


@pytest.mark.parametrize(("column", "text"), DAMAGES.values(), ids=DAMAGES.keys())
async def test_a_damaged_row_is_listed_as_damaged(
    durable: SqlStore, column: str, text: str
) -> None:
    for name in ("a", "b", "c"):
        summary = {"open": ["t"], "status": "running"}
        await Writer.begin(durable, opening(name, 1, metadata={"handbook": "h"}, summary=summary))
    table, key = ("heads", "session") if column == "summary" else ("sessions", "number")
    async with durable.write() as db:
        own = f"{key} = (SELECT number FROM {{sessions}} WHERE id = 'b')"
        raw = text.encode("utf-8", "surrogateescape")
        await db.execute(f"UPDATE {{{table}}} SET {column} = ? WHERE {own}", (raw,))
    with pytest.raises(StoreCorrupt, match="the row of session b is damaged"):
        await durable.record("b")
    found = [(one.id, one.summary["status"]) for one in await durable.unresolved(now=1000.0)]
    assert found == [("c", "running"), ("b", "damaged"), ("a", "running")]
