"""An old copy of a store pays nothing twice. The judge is the ledger of the simulated system."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from store_parts import Closing

from commands import ran, refused, shown
from counter_desk import ERRANDS, CountingTools, HandClock, go_on, walk
from counter_sessions import opened, ready_for
from postgres_here import PostgresHere
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
from sopilot.stores.sealed_heads import ExternalSeals, seal_and_send
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.signing import generate_key
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallStatus

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
    """A store in a file or a schema, with the means of its administrator, and what is behind it."""

    def __init__(self, kind: str, folder: Path, server: PostgresHere, closing: Closing) -> None:
        self._kind, self._folder, self._server, self._closing = kind, folder, server, closing
        self._schema = f"fence_{abs(hash(str(folder)))}"
        self.clock, self.tools = HandClock(), Ledger()
        self.store = self.open()

    def open(self, name: str = "") -> Store:
        if self._kind == "sqlite":
            return self._closing(SQLiteStore(self._folder / f"sessions{name}.db"))
        return self._closing(PostgresStore(self._server.dsn, schema=self._schema + name))

    def dump(self) -> None:
        if self._kind == "sqlite":
            with (
                sqlite3.connect(self._folder / "sessions.db") as store,
                sqlite3.connect(self._folder / "dump.db") as copy,
            ):
                store.backup(copy)
        else:
            self._run("pg_dump", "-n", self._schema, "-f", str(self._folder / "dump.sql"))

    async def undump(self) -> None:
        await self.store.close()
        if self._kind == "sqlite":
            for one in self._folder.glob("sessions.db*"):
                one.unlink()
            shutil.copy(self._folder / "dump.db", self._folder / "sessions.db")
        else:
            self._run("psql", "-c", f"DROP SCHEMA {self._schema} CASCADE")
            self._run("psql", "-f", str(self._folder / "dump.sql"))
        self.store = self.open()

    def _run(self, command: str, *arguments: str) -> None:
        program = Path(self._server._server.bin_path) / command
        subprocess.run(
            [str(program), self._server.dsn, *arguments], check=True, capture_output=True
        )

    async def back_up(self) -> None:
        await back_up(self.store, self._folder / "copy.db")

    async def restore(self) -> None:
        """Into another place, which is used from now on."""
        await self.store.close()
        self.store = self.open("_restored")
        await restore(self.store, self._folder / "copy.db", clock=self.clock)
        self.clock.advance(60)

    async def begin(self, session_id: str, **options: Any) -> Session:
        options = {"tools": self.tools, "session_id": session_id, "requester": "una", **options}
        return await opened(self.store, clock=self.clock, **options)

    async def again(self, session_id: str, **options: Any) -> Session:
        return await resume_session(
            self.store, session_id, tools=self.tools, clock=self.clock, take_over=True, **options
        )

    async def up_to(self, goal: str) -> Session:
        """A session of this name just before its irreversible call."""
        return await up_to(self.store, goal, self.tools, self.clock)

    async def restored_after_payment(self, goal: str) -> Session:
        """A session that paid after a back-up, which was restored since: as it is in that copy."""
        session = await self.up_to(goal)
        await self.back_up()
        await pay(session, goal)
        assert self.tools.paid == 1
        await self.restore()
        return await self.again(goal)

    async def fenced(self) -> list[str]:
        return [one.id for one in await fenced_sessions(self.store)]

    async def release(
        self, *sessions: str, why: str = "not paid", by: str = "ann", who: Principal | None = None
    ) -> list[str]:
        return await release_sessions(self.store, sessions, why, by=by, who=who, clock=self.clock)


@pytest.fixture(params=["sqlite", "postgres"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresHere, closing: Closing
) -> Place:
    return Place(request.param, tmp_path, postgres, closing)


async def up_to(store: Store, goal: str, tools: Ledger, clock: HandClock) -> Session:
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


@pytest.mark.parametrize("goal", ["transfer", "wire"])
async def test_a_restored_back_up_waits_for_a_person(place: Place, goal: str) -> None:
    tools = place.tools
    session = await place.restored_after_payment(goal)
    for _ in range(3):
        await pay(session, goal)
    assert tools.paid == 1
    answer = await session.call_tool(goal, ERRANDS[goal], "again")
    assert answer.status is CallStatus.HELD
    assert "sopilot store release" in answer.text
    assert await place.fenced() == [goal]
    # Nobody else is held up: a session that begins now pays.
    other = Ledger()
    await walk(await place.begin("fresh", tools=other), "transfer")
    assert other.paid == 1
    # Released by a person, on record, the call is made under its own key.
    with pytest.raises(UserMistake, match="asked for session"):
        await place.release(goal, by="una")
    with pytest.raises(UserMistake, match="your name is required"):
        await place.release(goal, by="")
    await place.release(goal)
    said = (await entries(place.store, "fence"))[-1].details
    assert (said["by"], said["why"], said["sessions"]) == ("ann", "not paid", [goal])
    before = await place.store.records.digests()
    await pay(session, goal)
    assert tools.paid == 2
    keys = [key for name, _, key in tools.calls if name == goal]
    assert keys[0] == keys[1], "the system behind the tool can recognise the repetition"
    await session.release()
    assert await place.fenced() == []
    rows = await place.store.records.digests()
    assert (await rebuild_register(place.store))[1] == {}
    assert await place.store.records.digests() == rows != before


async def test_a_restored_session_logs_nobody_in_until_a_person_releases_it(place: Place) -> None:
    """A call that the copy has lost may still be open, and rest on who is logged in."""
    session = await place.restored_after_payment("transfer")
    login = {"username": "bob", "password": "x"}
    made = len(place.tools.calls)
    answer = await session.call_tool("login", login, "in")
    assert answer.status is CallStatus.HELD
    assert "sopilot store release" in answer.text
    assert len(place.tools.calls) == made
    await place.release("transfer")
    assert (await session.call_tool("login", login, "again")).status is not CallStatus.HELD
    assert len(place.tools.calls) == made + 1


@pytest.mark.parametrize("goal", ["transfer", "wire"])
async def test_a_system_that_can_be_asked_is_asked(place: Place, goal: str) -> None:
    place.tools = AskedLedger()
    session = await place.restored_after_payment(goal)
    await pay(session, goal)
    assert place.tools.paid == 1
    results = [one for one in session.own_events if one.kind == "domain_result"]
    assert results[-1].payload["value"] == {"done": goal}
    assert results[-1].payload["ok"] is True


@pytest.mark.parametrize("kind", [KeyedLedger, AskedKeyedLedger])
async def test_another_call_under_a_lost_id_is_never_taken_for_the_lost_one(
    place: Place, kind: type[KeyedLedger], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients count their calls, so a session that goes on from an old copy repeats ids."""
    place.tools = tools = kind()
    session = await place.begin("s")
    await place.back_up()
    await walk(session, "transfer")
    assert tools.transfers == ["bob"]
    await place.restore()
    session = await place.again("s")
    other = {**ERRANDS["transfer"], "to": "carol"}
    monkeypatch.setitem(ERRANDS, "transfer", other)
    await walk(session, "transfer", limit=20)
    assert session.configuration.process is not None, "held: nobody knows of that call"
    assert tools.transfers == ["bob"]
    await place.release("s")
    await go_on(session)
    assert tools.transfers == ["bob", "carol"], "what is on record was carried out"


async def test_nobody_releases_what_they_asked_for(place: Place) -> None:
    """Nor who took it up, nor by a release of all, also where it has ended."""
    session = await place.begin("s")
    await walk(session, "transfer")
    await session.release()
    await (await place.again("s", requester="eve")).release()
    await fence_store(place.store, "restored", clock=place.clock)
    assert await place.fenced() == [], "it has ended"
    for by in ("una", "eve", "Eve "):
        for chosen in (["s"], []):
            with pytest.raises(UserMistake, match="asked for session"):
                await place.release(*chosen, by=by)
    session = await place.again("s")
    await walk(session, "transfer", limit=20)
    assert place.tools.paid == 1
    await session.release()
    assert await place.release() == ["s"]


def without_entries(sent: Path) -> None:
    """Leave the heads alone."""
    lines = sent.read_text().splitlines(keepends=True)
    sent.write_text("".join(line for line in lines if not line.startswith('{"actions":')))


@pytest.mark.parametrize("whole", [True, False])
async def test_a_dump_is_found_by_the_external_head(
    place: Place, tmp_path: Path, whole: bool
) -> None:
    heads = tmp_path / "heads.jsonl"
    await seal_and_send(place.store, KEY, [str(heads)])
    session = await place.up_to("transfer")
    place.dump()
    await pay(session, "transfer")
    await session.release()
    await seal_and_send(place.store, KEY, [str(heads)])
    if not whole:
        without_entries(heads)
    await place.undump()
    place.store.external_head = ExternalSeals(str(heads))
    # The log of the old copy grows again, as long as the sealed one and longer.
    for number in range(4):
        await (await place.begin(f"new{number}", tools=CountingTools())).release()
    session = await place.again("transfer")
    await pay(session, "transfer")
    assert place.tools.paid == 1
    assert "transfer" in await place.fenced()
    await place.release()
    assert await place.fenced() == []
    await pay(session, "transfer")
    assert place.tools.paid == 2, "released once, the same head fences no more"


@pytest.mark.parametrize("whole", [True, False])
async def test_a_store_with_what_was_sealed_is_not_fenced(
    place: Place, tmp_path: Path, whole: bool
) -> None:
    heads = tmp_path / "heads.jsonl"
    place.store.external_head = ExternalSeals(str(heads))
    session = await place.up_to("transfer")
    answer = await session.call_tool("transfer", ERRANDS["transfer"], "t")
    assert answer.status is CallStatus.HELD, "an external head that can't be read holds"
    await seal_and_send(place.store, KEY, [str(heads)])
    if not whole:
        without_entries(heads)
    await pay(session, "transfer")
    assert place.tools.paid == 1
    assert await entries(place.store, "fence") == []


async def test_a_head_over_an_empty_log_fences_nothing(place: Place, tmp_path: Path) -> None:
    heads = tmp_path / "heads.jsonl"
    await seal_and_send(place.store, KEY, [str(heads)])
    place.store.external_head = ExternalSeals(str(heads))
    session = await place.up_to("transfer")
    await pay(session, "transfer")
    assert place.tools.paid == 1
    assert await place.fenced() == []


async def test_a_dump_that_nothing_shows_is_fenced_by_an_operator(place: Place) -> None:
    session = await place.up_to("transfer")
    place.dump()
    await pay(session, "transfer")
    await place.undump()
    place.clock.time -= 900  # the operator's clock is behind: every session is fenced all the same
    await fence_store(place.store, "restored the dump of Monday", clock=place.clock)
    place.clock.time += 1000
    session = await place.again("transfer")
    await pay(session, "transfer")
    assert place.tools.paid == 1
    details = {"what": "identity", "on": True}
    await change_people(place.store, "demanded", details, who=None, clock=place.clock)
    with pytest.raises(UserMistake, match="requires a proof of identity"):
        await place.release()
    await place.release(by="", who=Principal("ann", "token", "t"))


async def test_the_commands(
    tmp_path: Path, closing: Closing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`restore` fences by itself; `fence`, `sessions --orphaned` and `release` show and end it."""
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path / 'new.db'}")
    store = closing(SQLiteStore(tmp_path / "old.db"))
    session = await up_to(store, "transfer", Ledger(), HandClock())
    await session.release()
    await back_up(store, tmp_path / "copy.db")
    await asyncio.to_thread(check_the_commands, tmp_path / "copy.db")


def check_the_commands(copy: Path) -> None:
    shown("store", "restore", copy)
    [row] = shown("sessions", "list", "--orphaned", code=1)["sessions"]
    assert (row["id"], row["fenced"]) == ("transfer", True)
    assert "running, fenced" in ran("sessions", "list")
    reason = ("--why", "checked in the ledger", "--as", "ann")
    assert shown("store", "release", "transfer", *reason) == {"released": ["transfer"]}
    assert shown("sessions", "list", "--orphaned")["sessions"] == []
    assert shown("store", "fence", "--why", "again") == {"fenced": ["transfer"]}
    assert shown("store", "release", "--all", *reason) == {"released": ["transfer"]}
    assert refused("store", "release", "transfer", *reason) == "not-fenced"
