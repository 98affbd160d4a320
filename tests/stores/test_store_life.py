"""The life of a store: backed up while it is used, restored, moved, pruned on record, weighed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from store_parts import Writer, opening

from commands import refused, shown, token
from counter_desk import COUNTER, CountingTools, HandClock, walk
from counter_sessions import opened
from postgres_here import PostgresHere
from sopilot.messages.errors import LeaseLost, Pruned, UserMistake
from sopilot.records.loading import rebuild_register
from sopilot.records.log import SealFile
from sopilot.records.privacy import change_policy, erase_contents
from sopilot.records.pruning import prune
from sopilot.records.sealing import seal_store, verified_lines, verify_store
from sopilot.records.store import Lease, SessionRecord, Store
from sopilot.session.opening import resume_session
from sopilot.stores.backup import back_up, restore, sizes
from sopilot.stores.memory import MemoryStore
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.sql import SqlStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.signing import generate_key

KEY = generate_key()
DAY = 86_400.0


async def ended(store: Store, clock: HandClock, name: str) -> str:
    session = await opened(store, clock=clock, session_id=name, extra={"of": name})
    await session.user_said(f"I am {name}")
    await walk(session, "refund" if name == "waits" else "transfer")
    await session.release()
    return name


async def every(store: Store) -> dict[str, object]:
    names = [one.session_id for one in await store.records.heads()]
    return {
        "log": await store.records.log(),
        "seals": await store.records.seals(),
        "digests": await store.records.digests(),
        **{
            name: (
                await store.events(name),
                await store.payloads(name),
                (await store.record(name)).metadata,
                (await store.record(name)).summary,
            )
            for name in names
        },
    }


async def test_a_back_up_is_a_store_and_goes_into_either_kind(
    durable: SqlStore, tmp_path: Path, postgres: PostgresHere
) -> None:
    clock, store = HandClock(), durable
    for name in ("one", "two"):
        await ended(store, clock, name)
    running = await opened(store, clock=clock)
    await store.queue_decision("one", {"decision": "approve"}, at=1.0)
    seal = (await seal_store(store, KEY, at=clock.now())).seal
    file = tmp_path / "copy.db"
    # Others write meanwhile: what is copied is what there was at one moment.
    counts, _ = await asyncio.gather(back_up(store, file), running.user_said("hello"))
    assert counts["sessions"] == 3
    assert file.stat().st_mode & 0o077 == 0
    copy = SQLiteStore(file)
    whole = await every(copy)
    assert (await verify_store(copy, SealFile((seal,)), [KEY.public])).complete
    await copy.close()
    schema = f"restored_{abs(hash(str(tmp_path)))}"[:60]
    targets: list[Store] = [
        SQLiteStore(tmp_path / "restored.db"),
        PostgresStore(postgres.dsn, schema=schema),
    ]
    for target in targets:
        restored = await restore(target, file)
        assert restored == {
            **counts,
            **{name: counts[name] + 1 for name in ("sessions", "heads", "events", "log")},
        }, "with the journal that fences it"
        found = await every(target)
        assert found.pop("journal.fence")
        assert found.pop("log")[:-1] == whole["log"]  # type: ignore[index]
        assert found == {name: one for name, one in whole.items() if name != "log"}
        assert [one for _, one in await target.pending_decisions("one")] == [
            {"decision": "approve"}
        ]
        record = await target.record(running.id)
        assert record.owner == ""
        old = Lease(running.id, running._owner, 1, 1e12)
        with pytest.raises(LeaseLost):
            await target.renew(old, now=clock.now(), lease_seconds=5.0)
        # New rows go on behind the restored ones.
        await ended(target, clock, "three")
        again = await resume_session(
            target, running.id, tools=CountingTools(), clock=clock, programs=COUNTER
        )
        await again.user_said("and on")
        await seal_store(target, KEY, at=clock.now())
        with pytest.raises(UserMistake, match="mixed"):
            await restore(target, file)
        await target.close()
    with pytest.raises(UserMistake, match="already exists"):
        await back_up(store, file)
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


async def test_what_ended_long_ago_goes_on_record_and_the_rest_verifies(
    durable: SqlStore, tmp_path: Path
) -> None:
    clock, store = HandClock(), durable
    for name in ("old", "held", "waits"):
        await ended(store, clock, name)
    before = await store.events("old")
    hold = {"what": "held", "why": "case 7"}
    await change_policy(store, "hold_set", hold, who=None, clock=clock)
    clock.time += 40 * DAY
    await ended(store, clock, "young")
    archive = tmp_path / "archive.db"

    def kept(ids: object) -> object:
        return back_up(store, archive, ids)  # type: ignore[arg-type]

    rows = await store.records.digests()
    done = await prune(store, days=30, archive=kept, why="a year", clock=clock)  # type: ignore[arg-type]
    assert (done.pruned, done.held, done.events) == (
        ("old",), {"held": "case 7"}, len(before),
    )  # fmt: skip
    assert await store.events("old") == []
    assert (await store.record("old")).head.hash == before[-1].hash
    assert (await rebuild_register(store))[1] == {}
    assert await store.records.digests() == rows
    with pytest.raises(Pruned, match="was pruned"):
        await resume_session(store, "old", tools=CountingTools(), clock=clock)
    seal = (await seal_store(store, KEY, at=clock.now())).seal
    verified = await verify_store(store, SealFile((seal,)), [KEY.public])
    assert (verified.gaps, verified.pruned) == ([], 1)
    assert any(one.startswith("pruned: ") for one in verified_lines(verified, False))
    copy = SQLiteStore(archive)
    assert await copy.events("old") == before
    assert [one.id for one in await copy.sessions()] == ["old"]
    await copy.close()
    with pytest.raises(UserMistake, match="isn't a state"):
        await prune(store, days=1, states=("running",), clock=clock)


async def test_an_ended_session_with_an_unfinished_call_is_not_pruned() -> None:
    store, clock = MemoryStore(), HandClock()
    for name, more in (("done", {}), ("waits", {"waiting": ["c"]}), ("open", {"open": ["c"]})):
        new = opening(name, 1, summary={"status": "completed", **more})
        await Writer.begin(store, new, owner="", now=clock.now(), lease_seconds=0.0)
    clock.time += 2 * DAY
    assert (await prune(store, days=1, clock=clock)).pruned == ("done",)


async def test_a_session_that_was_continued_after_it_was_listed_is_not_deleted() -> None:
    store, clock = MemoryStore(), HandClock()
    new = opening("s", 1, metadata={"settings": {"private": True}}, summary={"status": "completed"})
    writer = await Writer.begin(store, new, now=clock.now())
    clock.time += 2 * DAY
    listed = await store.sessions()

    async def earlier_list(*, limit: int | None) -> list[SessionRecord]:
        return listed

    await writer.append(1, summary={"waiting": ["c"]})
    await store.release(writer.lease)
    store.sessions = earlier_list  # type: ignore[method-assign]
    assert (await prune(store, days=1, clock=clock)).pruned == ()
    done = await erase_contents(store, listed, "asked for", who=None, clock=clock)
    assert (done.erased, done.unfinished) == ((), ("s",))


async def test_the_size_of_a_store(durable: SqlStore) -> None:
    await ended(durable, HandClock(), "one")
    found = await sizes(durable)
    assert found["sessions"][0] == found["total"][0] == 1
    assert found["events"][0] == len(await durable.events("one"))
    assert (found["total"][1] or 0) > 4096


@pytest.fixture
async def with_session(file_store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store, which commands use, with a session that ended."""
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{file_store.path}")
    await ended(file_store, HandClock(), "one")
    await file_store.close()


@pytest.mark.usefixtures("with_session")
def test_the_commands(tmp_path: Path) -> None:
    copy, archive = tmp_path / "copy.db", tmp_path / "archive.db"
    new = ("--store", f"sqlite:{tmp_path / 'new.db'}")
    assert shown("store", "size")["sessions"] == [1, None]
    assert shown("store", "backup", copy)["sessions"] == 1
    assert shown("store", "restore", copy, *new)["sessions"] == 2, "with the journal of its fence"
    prune = ("store", "prune", "--days", "1")
    assert shown(*prune, "--dry-run")["pruned"] == ["one"]
    assert shown(*prune, "--archive", archive)["pruned"] == ["one"]
    assert shown("store", "size", "--store", f"sqlite:{archive}")["sessions"] == [1, None]


@pytest.mark.usefixtures("with_session")
def test_who_may_not_prune_leaves_no_archive(tmp_path: Path) -> None:
    token("Ada", "administrator")
    archive = tmp_path / "archive.db"
    assert refused("store", "prune", "--days", "1", "--archive", archive) == "not-entitled"
    assert not archive.exists()
