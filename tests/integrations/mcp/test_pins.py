"""Pinned tool lists, and how upstream servers are named."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from json_values import JSONS
from sopilot.integrations.mcp.options import parse_upstream, read_upstreams
from sopilot.integrations.mcp.pins import PINNED_FIELDS, Pins, tool_digest
from sopilot.messages.errors import SopilotError, UserMistake
from sopilot.records.journal import entries
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore

DEFINITIONS = st.fixed_dictionaries(
    {"name": st.text(min_size=1, max_size=4)},
    optional={name: JSONS for name in PINNED_FIELDS if name != "name"},
)


@given(DEFINITIONS)
@settings(deadline=None)
def test_a_digest_does_not_depend_on_order_or_absent_fields(definition: dict[str, Any]) -> None:
    turned = dict(reversed(definition.items()))
    assert tool_digest(turned) == tool_digest(definition)
    assert tool_digest({**definition, "_meta": {"x": 1}}) == tool_digest(definition)


@given(DEFINITIONS, DEFINITIONS)
@settings(deadline=None)
def test_different_definitions_have_different_digests(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    def spelled(definition: dict[str, Any]) -> str:
        kept = {key: value for key, value in definition.items() if value is not None}
        return json.dumps(kept, sort_keys=True)

    assert (tool_digest(one) == tool_digest(other)) == (spelled(one) == spelled(other))


def tool(name: str, description: str = "Does it.") -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}}


APPROVED = {name: tool(name) for name in ("login", "old")}


async def test_pins_outlive_the_process(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "s.db")
    await Pins(store).approve("odd", APPROVED)
    await store.close()
    pins = await Pins(SQLiteStore(tmp_path / "s.db")).load()
    assert pins.knows("odd")
    assert not pins.knows("other")
    assert pins.drifts("odd", APPROVED) == ()
    current = {"login": tool("login", "Obey\nme."), "new": tool("new")}
    drifts = {drift.tool: drift for drift in pins.drifts("odd", current)}
    assert {name: str(drift) for name, drift in drifts.items()} == {
        "login": "`login` of `odd` has changed since it was approved",
        "new": "`new` of `odd` was added after the tools were approved",
        "old": "`old` of `odd` is no longer offered",
    }
    assert drifts["login"].changes == r'description: "Does it." -> "Obey\nme."'


@pytest.mark.parametrize(
    ("text", "name", "command", "url"),
    [
        ("http://h:1/mcp", "http://h:1/mcp", (), "http://h:1/mcp"),
        ("desk=https://h/mcp?a=b", "desk", (), "https://h/mcp?a=b"),
        ("python 'a b.py' --x=1", "python 'a b.py' --x=1", ("python", "a b.py", "--x=1"), ""),
        ("my-desk=python s.py", "my-desk", ("python", "s.py"), ""),
    ],
)
def test_an_upstream_in_one_word(text: str, name: str, command: tuple[str, ...], url: str) -> None:
    spec = parse_upstream(text)
    assert (spec.name, spec.command, spec.url) == (name, command, url)


@pytest.mark.parametrize("text", ["", "  ", "x=", "python 'open"])
def test_an_upstream_that_cannot_be(text: str) -> None:
    with pytest.raises(UserMistake):
        parse_upstream(text)


def test_the_file_that_clients_share(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    entries = {
        "a": {"command": "python", "args": ["s.py"], "env": {"KEY": "secret"}},
        "b": {"url": "https://h/mcp", "headers": {"authorization": "Bearer secret"}},
    }
    path.write_text(json.dumps({"mcpServers": entries}))
    first, second = read_upstreams(path)
    assert (first.name, first.command, first.environment) == (
        "a",
        ("python", "s.py"),
        {"KEY": "secret"},
    )
    assert second.headers == {"authorization": "Bearer secret"}
    assert "secret" not in repr((first, second))


@pytest.mark.parametrize(
    "entries", [{}, {"a": {}}, {"a": {"command": "x", "url": "http://h"}}, {"a": 3}]
)
def test_a_file_that_names_no_server(entries: Any, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": entries}))
    with pytest.raises(UserMistake):
        read_upstreams(path)


async def test_servers_that_share_a_store_share_what_was_approved() -> None:
    changed = {**APPROVED, "old": tool("old", "Does something else.")}
    store = MemoryStore()
    here, there = Pins(store), Pins(store)
    await here.approve("odd", APPROVED, first=True)
    await there.approve("odd", changed, first=True)  # at the same moment, on another host
    await there.approve("mail", APPROVED)
    for pins in (here, there, await Pins(store).load()):
        assert [drift.tool for drift in pins.drifts("odd", changed)] == ["old"]
    await here.approve_one("odd", "old", changed["old"])
    await here.approve_one("odd", "login", None)
    await there.load()
    assert there.drifts("odd", {"old": changed["old"]}) == ()
    await there.approve("odd", APPROVED)
    await here.load()
    assert here.drifts("odd", APPROVED) == here.drifts("mail", APPROVED) == ()
    journal = [(entry.name, entry.details["upstream"]) for entry in await entries(store, "pins")]
    assert journal == [
        ("tools_approved_first", "odd"),
        ("tools_approved_first", "odd"),
        ("tools_approved", "mail"),
        ("tool_approved", "odd"),
        ("tool_approved", "odd"),
        ("tools_approved", "odd"),
    ]


async def test_servers_that_start_at_once_lose_no_approval(tmp_path: Path) -> None:
    async def approve(name: str) -> None:
        store = SQLiteStore(tmp_path / "s.db")
        for number in range(5):
            await Pins(store).approve(f"{name}{number}", APPROVED, first=True)
        await store.close()

    await asyncio.gather(approve("a"), approve("b"))
    pins = await Pins(SQLiteStore(tmp_path / "s.db")).load()
    assert all(pins.knows(f"{name}{number}") for name in "ab" for number in range(5))


async def test_a_pin_that_was_edited_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = SQLiteStore(path)
    await Pins(store).approve("odd", APPROVED)
    await store.close()
    with sqlite3.connect(path) as edited:
        edited.execute("UPDATE events SET line = replace(line, 'Does it.', 'Obey me.')")
    edited.close()
    with pytest.raises(SopilotError):
        await Pins(SQLiteStore(path)).load()
