"""Pinned tool lists, and how upstream servers are named."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.integrations.mcp.options import parse_upstream, read_upstreams
from sopilot.integrations.mcp.pins import PINNED_FIELDS, Pins, StorePins, tool_digest
from sopilot.messages.errors import UserMistake
from sopilot.records.journal import entries
from sopilot.stores.memory import MemoryStore
from warm import warm_python

JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
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
    path = tmp_path / "deep" / "pins.json"
    await Pins(path).approve("odd", APPROVED)
    pins = Pins(path)
    assert await pins.knows("odd")
    assert not await pins.knows("other")
    assert pins.drifts("odd", APPROVED) == ()
    current = {"login": tool("login", "Obey\nme."), "new": tool("new")}
    drifts = {drift.tool: drift for drift in pins.drifts("odd", current)}
    assert {name: str(drift) for name, drift in drifts.items()} == {
        "login": "`login` of `odd` is described differently than when it was approved",
        "new": "`new` of `odd` is new since the tools were approved",
        "old": "`old` of `odd` is no longer offered",
    }
    assert drifts["login"].changes == r'description: "Does it." -> "Obey\nme."'


async def test_gateways_that_share_a_file_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pins.json"
    one, other = Pins(path), Pins(path)
    await one.approve("bank", APPROVED)
    await other.approve("mail", APPROVED)
    current = {"login": tool("login", "Else."), "new": tool("new")}
    for name in ("login", "old"):
        await other.approve_one("bank", name, current.get(name))
    again = Pins(path)
    assert await again.knows("mail")
    assert [drift.tool for drift in again.drifts("bank", current)] == ["new"]


async def test_the_second_server_does_not_approve_what_the_first_did_not(tmp_path: Path) -> None:
    path = tmp_path / "pins.json"
    one, other = Pins(path), Pins(path)
    await one.approve("odd", APPROVED, first=True)
    changed = {**APPROVED, "login": tool("login", "Obey me.")}
    await other.approve("odd", changed, first=True)
    assert [drift.tool for drift in other.drifts("odd", changed)] == ["login"]


async def test_two_processes_approve_at_once(tmp_path: Path) -> None:
    path = tmp_path / "approved" / "pins.json"
    script = tmp_path / "approve.py"
    script.write_text(
        "import asyncio, sys; from pathlib import Path\n"
        "from sopilot.integrations.mcp.pins import Pins\n"
        "pins = Pins(Path(sys.argv[1])); print('ready', flush=True); sys.stdin.readline()\n"
        "async def approve():\n"
        "    for n in range(40): await pins.approve(f'{sys.argv[2]}{n}', {'t': {'name': 't'}})\n"
        "asyncio.run(approve())\n"
    )
    command = [*warm_python(), str(script), str(path)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([*command, name], **pipes) for name in "ab"]
    for running in started:
        assert running.stdout.readline() == "ready\n"
    for running in started:
        running.stdin.write("go\n")
        running.stdin.flush()
    for running in started:
        running.communicate(timeout=60)
    assert [running.returncode for running in started] == [0, 0]
    pins = Pins(path)
    assert all([await pins.knows(f"{name}{n}") for name in "ab" for n in range(40)])
    assert {file.name for file in path.parent.iterdir()} == {"pins.json", "pins.json.lock"}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"sopilot_tool_pins": 1}'])
def test_damaged_pins_are_never_taken_for_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "pins.json"
    path.write_text(text)
    with pytest.raises(UserMistake) as broken:
        Pins(path)
    assert broken.value.diagnostics[0].code == "broken-pins"


async def test_a_pin_that_was_edited_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "pins.json"
    await Pins(path).approve("odd", APPROVED)
    path.write_text(path.read_text().replace("Does it.", "Obey me.", 1))
    with pytest.raises(UserMistake, match="does not match"):
        Pins(path)


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


async def test_hosts_that_share_a_store_share_what_was_approved() -> None:
    changed = {**APPROVED, "old": tool("old", "Does something else.")}

    store = MemoryStore()
    here, there = [await StorePins(store, Pins()).opened() for _ in range(2)]
    assert not await here.knows("odd")
    await here.approve("odd", APPROVED, first=True)
    await there.approve("odd", changed, first=True)  # at the same moment, on another host
    for one in (here, there, await StorePins(store, Pins()).opened()):
        assert [drift.tool for drift in one.drifts("odd", changed)] == ["old"]
    await here.approve_one("odd", "old", changed["old"])
    await here.approve_one("odd", "login", None)
    await there.opened()
    assert there.drifts("odd", {"old": changed["old"]}) == ()
    await there.approve("odd", APPROVED)
    await here.opened()
    assert here.drifts("odd", APPROVED) == ()
    journal = [(entry.name, entry.details["upstream"]) for entry in await entries(store, "pins")]
    assert journal == [
        ("tools_approved_first", "odd"),
        ("tools_approved_first", "odd"),
        ("tool_approved", "odd"),
        ("tool_approved", "odd"),
        ("tools_approved", "odd"),
    ]


async def test_what_a_file_has_approved_holds_in_the_store(tmp_path: Path) -> None:
    await Pins(tmp_path / "pins.json").approve("odd", APPROVED)

    store = MemoryStore()
    pins = await StorePins(store, Pins(tmp_path / "pins.json")).opened()
    assert await pins.knows("odd")
    elsewhere = await StorePins(store, Pins()).opened()
    changed = {**APPROVED, "old": tool("old", "Does something else.")}
    assert [drift.tool for drift in elsewhere.drifts("odd", changed)] == ["old"]
