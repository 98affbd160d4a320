"""An old copy of a store pays nothing twice. The judge is the ledger of the simulated system."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from counter_desk import ERRANDS, CountingTools, HandClock, go_on, walk
from counter_sessions import opened, ready_for
from postgres_here import PostgresHere
from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ToolResult
from sopilot.records.journal import entries
from sopilot.records.loading import rebuild_register
from sopilot.records.people import Principal, change_people
from sopilot.records.store import Store
from sopilot.session.fence import fence_store, fenced_sessions, release_sessions
from sopilot.session.opening import resume_session
from sopilot.session.session import Session
from sopilot.stores.backup import back_up, restore
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.seals import ExternalSeals, seal_and_send
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.signing import generate_key
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus

KEY = generate_key()


class Ledger(CountingTools):
    """The system behind the tools: it outlives every copy of the store."""

    @property
    def paid(self) -> int:
        return self.made("transfer") + self.made("wire") + self.made("refund")


class KeyedLedger(Ledger):
    """A system that carries out a key once, and answers as it did then if it comes again."""

    def __init__(self) -> None:
        super().__init__()
        self.done: dict[str, tuple[Mapping[str, JSON], ToolResult]] = {}

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        if key not in self.done:
            self.done[key] = (dict(arguments), await super().call(name, arguments, key=key))
        return self.done[key][1]

    @property
    def transfers(self) -> list[JSON]:
        return [arguments["to"] for arguments, _ in self.done.values() if "to" in arguments]


class AskedKeyedLedger(KeyedLedger):
    async def recall(self, key: str) -> ToolResult | None:
        return self.done[key][1] if key in self.done else None


class AskedLedger(Ledger):
    """A system that can be asked what came of a key."""

    async def recall(self, key: str) -> ToolResult | None:
        made = [name for name, _, used in self.calls if used == key]
        return ToolResult(True, {"done": made[0]}) if made else None


class Place:
    """A store in a file or a schema, with the means of its administrator."""

    def __init__(self, kind: str, folder: Path, server: PostgresHere) -> None:
        self._kind, self._folder, self._server = kind, folder, server
        self._schema = f"fence_{abs(hash(str(folder)))}"

    def open(self, name: str = "") -> Store:
        if self._kind == "sqlite":
            return SQLiteStore(self._folder / f"sessions{name}.db")
        return PostgresStore(self._server.dsn, schema=self._schema + name)

    def dump(self) -> None:
        if self._kind == "sqlite":
            with (
                sqlite3.connect(self._folder / "sessions.db") as store,
                sqlite3.connect(self._folder / "dump.db") as copy,
            ):
                store.backup(copy)
        else:
            self._run("pg_dump", "-n", self._schema, "-f", str(self._folder / "dump.sql"))

    def undump(self) -> None:
        if self._kind == "sqlite":
            for one in self._folder.glob("sessions.db*"):
                one.unlink()
            shutil.copy(self._folder / "dump.db", self._folder / "sessions.db")
        else:
            self._run("psql", "-c", f"DROP SCHEMA {self._schema} CASCADE")
            self._run("psql", "-f", str(self._folder / "dump.sql"))

    def _run(self, command: str, *arguments: str) -> None:
        program = Path(self._server._server.bin_path) / command
        subprocess.run(
            [str(program), self._server.dsn, *arguments], check=True, capture_output=True
        )


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresHere) -> Place:
    return Place(request.param, tmp_path, postgres)


async def up_to(store: Store, goal: str, tools: Ledger, clock: HandClock) -> Session:
    """Just before the irreversible call."""
    session = await ready_for(
        goal, store, tools=tools, clock=clock, session_id=goal, requester="una"
    )
    if goal == "wire":
        held = await session.call_tool("wire", ERRANDS["wire"], "w")
        for by, role in (("ann", "supervisor"), ("bo", "auditor")):
            await session.decide("approve", held.call_id, by=by, role=role)
    return session


async def pay(session: Session, goal: str) -> None:
    if goal == "wire":
        await session.run_held("w")
    else:
        await go_on(session)


async def again(store: Store, goal: str, tools: Ledger, clock: HandClock) -> Session:
    return await resume_session(store, goal, tools=tools, clock=clock, take_over=True)


async def paid_and_restored(
    place: Place, tmp_path: Path, goal: str, tools: Ledger, clock: HandClock
) -> tuple[Store, Session]:
    """A session that paid after a back-up, which was restored since; the session in that copy."""
    store = place.open()
    session = await up_to(store, goal, tools, clock)
    await back_up(store, tmp_path / "copy.db")
    await pay(session, goal)
    await store.close()
    assert tools.paid == 1
    restored = place.open("_restored")
    await restore(restored, tmp_path / "copy.db", clock=clock)
    clock.advance(60)
    return restored, await again(restored, goal, tools, clock)


@pytest.mark.parametrize("goal", ["transfer", "wire"])
async def test_a_restored_back_up_waits_for_a_person(
    place: Place, tmp_path: Path, goal: str
) -> None:
    clock, tools = HandClock(), Ledger()
    restored, session = await paid_and_restored(place, tmp_path, goal, tools, clock)
    for _ in range(3):
        await pay(session, goal)
    assert tools.paid == 1
    answer = await session.call_tool(goal, ERRANDS[goal], "again")
    assert answer.status is CallStatus.HELD
    assert "sopilot store release" in answer.text
    assert [one.id for one in await fenced_sessions(restored)] == [goal]
    # Nobody else is held up: a session that begins now pays.
    other = Ledger()
    fresh = await opened(restored, tools=other, clock=clock)
    await walk(fresh, "transfer")
    assert other.paid == 1
    # Released by a person, on record, the call is made under its own key.
    with pytest.raises(UserMistake, match="asked for session"):
        await release_sessions(restored, [goal], "", by="una", who=None, clock=clock)
    with pytest.raises(UserMistake, match="your name is required"):
        await release_sessions(restored, [goal], "", by="", who=None, clock=clock)
    await release_sessions(restored, [goal], "not paid", by="ann", who=None, clock=clock)
    said = (await entries(restored, "fence"))[-1].details
    assert (said["by"], said["why"], said["sessions"]) == ("ann", "not paid", [goal])
    before = await restored.records.digests()
    await pay(session, goal)
    assert tools.paid == 2
    keys = [key for name, _, key in tools.calls if name == goal]
    assert keys[0] == keys[1], "the system behind the tool can recognise the repetition"
    await session.release()
    assert await fenced_sessions(restored) == []
    rows = await restored.records.digests()
    assert (await rebuild_register(restored))[1] == {}
    assert await restored.records.digests() == rows != before
    await restored.close()


@pytest.mark.parametrize("goal", ["transfer", "wire"])
async def test_a_system_that_can_be_asked_is_asked(place: Place, tmp_path: Path, goal: str) -> None:
    clock, tools = HandClock(), AskedLedger()
    restored, session = await paid_and_restored(place, tmp_path, goal, tools, clock)
    await pay(session, goal)
    assert tools.paid == 1
    results = [one for one in session.own_events if one.kind == "domain_result"]
    assert results[-1].payload["value"] == {"done": goal}
    assert results[-1].payload["ok"] is True
    await session.release()
    await restored.close()


@pytest.mark.parametrize("kind", [KeyedLedger, AskedKeyedLedger])
async def test_another_call_under_a_lost_id_is_never_taken_for_the_lost_one(
    place: Place, tmp_path: Path, kind: type[KeyedLedger], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients count their calls, so a session that goes on from an old copy repeats ids."""

    clock, tools, store = HandClock(), kind(), place.open()
    session = await opened(store, tools=tools, clock=clock, session_id="s")
    await back_up(store, tmp_path / "copy.db")
    await walk(session, "transfer")
    await store.close()
    assert tools.transfers == ["bob"]
    restored = place.open("_restored")
    await restore(restored, tmp_path / "copy.db", clock=clock)
    session = await again(restored, "s", tools, clock)
    other = {**ERRANDS["transfer"], "to": "carol"}
    monkeypatch.setitem(ERRANDS, "transfer", other)
    await walk(session, "transfer", limit=20)
    assert session.configuration.process is not None, "held: nobody knows of that call"
    assert tools.transfers == ["bob"]
    await release_sessions(restored, ["s"], "not paid", by="ann", who=None, clock=clock)
    await go_on(session)
    assert tools.transfers == ["bob", "carol"], "what is on record was carried out"
    await session.release()
    await restored.close()


async def test_nobody_releases_what_they_asked_for(place: Place) -> None:
    """Nor who took it up, nor by a release of all, also where it has ended."""

    clock, tools, store = HandClock(), Ledger(), place.open()
    session = await opened(store, tools=tools, clock=clock, session_id="s", requester="una")
    await walk(session, "transfer")
    await session.release()
    session = await resume_session(store, "s", tools=tools, clock=clock, requester="eve")
    await session.release()
    await fence_store(store, "restored", clock=clock)
    assert await fenced_sessions(store) == [], "it has ended"
    for by in ("una", "eve", "Eve "):
        for chosen in (["s"], []):
            with pytest.raises(UserMistake, match="asked for session"):
                await release_sessions(store, chosen, "", by=by, who=None, clock=clock)
    session = await again(store, "s", tools, clock)
    await walk(session, "transfer", limit=20)
    assert tools.paid == 1
    await session.release()
    assert await release_sessions(store, [], "", by="ann", who=None, clock=clock) == ["s"]
    await store.close()


async def test_a_dump_is_found_by_the_external_head(place: Place, tmp_path: Path) -> None:
    clock, tools, store = HandClock(), Ledger(), place.open()
    heads = tmp_path / "heads.jsonl"
    await seal_and_send(store, KEY, [str(heads)])
    session = await up_to(store, "transfer", tools, clock)
    place.dump()
    await pay(session, "transfer")
    await session.release()
    await seal_and_send(store, KEY, [str(heads)])
    await store.close()
    place.undump()
    store = place.open()
    store.external_head = ExternalSeals(str(heads))
    # The log of the old copy grows again, as long as the sealed one and longer.
    for number in range(4):
        fresh = await opened(store, clock=clock, session_id=f"new{number}")
        await fresh.release()
    session = await again(store, "transfer", tools, clock)
    await pay(session, "transfer")
    assert tools.paid == 1
    assert "transfer" in [one.id for one in await fenced_sessions(store)]
    await release_sessions(store, [], "all checked", by="ann", who=None, clock=clock)
    assert await fenced_sessions(store) == []
    await pay(session, "transfer")
    assert tools.paid == 2, "released once, the same head fences no more"
    await session.release()
    await store.close()


async def test_a_store_with_what_was_sealed_is_not_fenced(place: Place, tmp_path: Path) -> None:
    clock, tools, store = HandClock(), Ledger(), place.open()
    heads = tmp_path / "heads.jsonl"
    store.external_head = ExternalSeals(str(heads))
    session = await up_to(store, "transfer", tools, clock)
    answer = await session.call_tool("transfer", ERRANDS["transfer"], "t")
    assert answer.status is CallStatus.HELD, "an external head that can't be read holds"
    await seal_and_send(store, KEY, [str(heads)])
    await pay(session, "transfer")
    assert tools.paid == 1
    assert await entries(store, "fence") == []
    await store.close()


async def test_a_dump_that_nothing_shows_is_fenced_by_an_operator(place: Place) -> None:
    clock, tools, store = HandClock(), Ledger(), place.open()
    session = await up_to(store, "transfer", tools, clock)
    place.dump()
    await pay(session, "transfer")
    await store.close()
    place.undump()
    store = place.open()
    clock.time -= 900  # the operator's clock is behind: every session is fenced all the same
    await fence_store(store, "restored the dump of Monday", clock=clock)
    clock.time += 1000
    session = await again(store, "transfer", tools, clock)
    await pay(session, "transfer")
    assert tools.paid == 1
    details: Mapping[str, Any] = {"what": "identity", "on": True}
    await change_people(store, "demanded", details, who=None, clock=clock)
    with pytest.raises(UserMistake, match="requires a proof of identity"):
        await release_sessions(store, [], "", by="ann", who=None, clock=clock)
    ann = Principal("ann", "token", "t")
    await release_sessions(store, [], "", by="", who=ann, clock=clock)
    await store.close()


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`restore` fences by itself; `fence`, `sessions --orphaned` and `release` show and end it."""
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path / 'new.db'}")

    def told(*words: str, code: int = 0) -> Any:
        done = CliRunner().invoke(sopilot, [*words, "--json"], catch_exceptions=False)
        assert done.exit_code == code, done.output
        return json.loads(done.stdout)

    async def prepare() -> None:
        store = SQLiteStore(tmp_path / "old.db")
        session = await up_to(store, "transfer", Ledger(), HandClock())
        await session.release()
        await back_up(store, tmp_path / "copy.db")
        await store.close()

    asyncio.run(prepare())
    told("store", "restore", str(tmp_path / "copy.db"))
    [row] = told("sessions", "list", "--orphaned", code=1)["sessions"]
    assert (row["id"], row["fenced"]) == ("transfer", True)
    text = CliRunner().invoke(sopilot, ["sessions", "list"]).stdout
    assert "running, fenced" in text
    reason = ("--why", "checked in the ledger", "--as", "ann")
    assert told("store", "release", "transfer", *reason) == {"released": ["transfer"]}
    assert told("sessions", "list", "--orphaned")["sessions"] == []
    assert told("store", "fence", "--why", "again") == {"fenced": ["transfer"]}
    assert told("store", "release", "--all", *reason) == {"released": ["transfer"]}
    done = CliRunner().invoke(sopilot, ["store", "release", "transfer", *reason])
    assert "not-fenced" in str(done.exception)
