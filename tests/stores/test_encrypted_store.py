"""Contents under keys that stand elsewhere: copies of the store have none of them."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from store_parts import Closing, Writer, opening

from counter_desk import CountingTools, HandClock, walk, wander
from counter_sessions import opened
from postgres_here import PostgresHere
from sopilot.messages.errors import RunEnded, StoreCorrupt, StoreUnavailable, UserMistake
from sopilot.records.journal import write
from sopilot.records.loading import rebuild_register, register
from sopilot.records.log import SealFile
from sopilot.records.people import load_people
from sopilot.records.privacy import erase_contents, erase_wanted, sessions_with, settings_here
from sopilot.records.pruning import prune
from sopilot.records.sealing import seal_store, verify_store
from sopilot.records.selection import Wanted
from sopilot.records.store import Settings, Store
from sopilot.session.opening import resume_session
from sopilot.stores.encrypted import KEY_BYTES, KeyFolder, encrypted
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.signing import generate_key

SAID = "zelda-quast"
KEY = generate_key()
PRIVATE = Settings(private=True, columns=frozenset({"amount"}))


async def talked(store: Store, clock: HandClock, said: str = SAID) -> str:
    session = await opened(store, clock=clock, settings=PRIVATE, extra={"of": said})
    await wander(session, random.Random(3), 20)
    await session.user_said(f"this is {said}")
    await store.queue_decision(session.id, {"decision": "approve", "reason": said}, at=clock.now())
    await session.release()
    return session.id


def holds(folder: Path, text: str) -> list[Path]:
    files = [one for one in folder.rglob("*") if one.is_file()]
    assert files
    return [one for one in files if text.encode() in one.read_bytes().lower()]


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


@pytest.fixture
def locked(tmp_path: Path, keys: KeyFolder, closing: Closing) -> Callable[[], Store]:
    """A handle on the same encrypted file."""
    return lambda: closing(encrypted(SQLiteStore(tmp_path / "store" / "s.db"), keys))


async def test_no_byte_of_the_contents_is_ever_in_the_store(
    locked: Callable[[], Store], file_store: SQLiteStore, tmp_path: Path
) -> None:
    store, clock = locked(), HandClock()
    session_id = await talked(store, clock)
    assert SAID in str(await store.payloads(session_id))
    assert (await store.record(session_id)).metadata["extra"] == {"of": SAID}
    assert [one["reason"] for _, one in await store.pending_decisions(session_id)] == [SAID]  # type: ignore[index, call-overload]
    assert [one.id for one in await sessions_with(store, [SAID.upper()])] == [session_id]
    assert holds(tmp_path / "store", SAID) == []
    again = await resume_session(store, session_id, tools=CountingTools(), clock=clock)
    await walk(again, "transfer")
    await again.release()
    await store.close()
    assert holds(tmp_path / "store", SAID) == []
    await talked(file_store, clock)
    await file_store.close()
    assert holds(tmp_path, SAID) == [file_store.path], "what is searched for would be found"


async def test_a_database_server_writes_no_byte_of_the_contents(
    postgres: PostgresHere, server_store: PostgresStore, keys: KeyFolder, closing: Closing
) -> None:
    """Neither in tables nor in its write-ahead log, also not in rows that were deleted."""
    said = "yolanda-unseen"
    store = closing(encrypted(PostgresStore(postgres.dsn, schema="locked"), keys))
    session_id = await talked(store, HandClock(), said)
    await erase_contents(store, [await store.record(session_id)], "asked for", who=None,
                clock=HandClock())  # fmt: skip
    await talked(server_store, HandClock(), "wilma-seen")
    async with server_store.read() as db:
        await db.execute("CHECKPOINT")
    assert holds(postgres._folder, said) == []
    assert holds(postgres._folder, "wilma-seen"), "what is searched for would be found"


async def test_a_back_up_from_before_the_erasure_is_as_empty(
    locked: Callable[[], Store], keys: KeyFolder, tmp_path: Path
) -> None:
    store, clock, file = locked(), HandClock(), tmp_path / "store" / "s.db"
    hers, his = await talked(store, clock), await talked(store, clock, "otto")
    seals = SealFile(((await seal_store(store, KEY, at=5.0)).seal,))
    rows = [one.as_json() for one in (await register(store, Wanted())).entries(None)]
    await store.close()
    shutil.copy(file, tmp_path / "back-up")
    store = locked()
    done = await erase_contents(
        store, [await store.record(hers)], "asked for", unfinished=True, who=None, clock=clock
    )
    assert done.erased == (hers,)
    await store.close()
    shutil.copy(tmp_path / "back-up", file)
    store = locked()
    assert (await store.record(hers)).metadata["erased"]
    assert await store.payloads(hers) == {}
    with pytest.raises(RunEnded, match="erased"):
        await resume_session(store, hers, tools=CountingTools(), clock=clock)
    assert "otto" in str(await store.payloads(his))
    gaps = (await verify_store(store, seals, [KEY.public])).gaps
    assert [(gap.session_id, "no erasure is" in gap.message) for gap in gaps] == [(hers, True)]
    assert (await rebuild_register(store))[1] == {}
    await store.prune({his: (await store.record(his)).metadata})
    assert [one for one in keys.path.rglob("*") if one.is_file()] == []
    after = [one.as_json() for one in (await register(store, Wanted())).entries(None)]
    assert after == rows


async def test_without_keys_chains_verify_and_nothing_is_read_or_missed(
    file_store: SQLiteStore, keys: KeyFolder, closing: Closing
) -> None:
    clock, bare = HandClock(), closing(SQLiteStore(file_store.path))
    store = encrypted(file_store, keys)
    await write(store, "people", "demanded", {"what": "keys", "on": True}, clock=clock)
    session_id = await talked(store, clock)
    seals = SealFile(((await seal_store(store, KEY, at=5.0)).seal,))
    assert (await verify_store(bare, seals, [KEY.public])).gaps == []
    with pytest.raises(RunEnded, match="SOPILOT_KEYS"):
        await resume_session(bare, session_id, tools=CountingTools(), clock=clock)
    with pytest.raises(UserMistake, match="keys"):
        await sessions_with(bare, [SAID])
    with pytest.raises(UserMistake, match="keys"):
        await opened(bare, clock=clock)
    people = await load_people(bare)
    assert (await settings_here(store, people, Settings())).private


@pytest.mark.parametrize("damage", [lambda key: b"", lambda key: bytes(KEY_BYTES)])
async def test_another_key_is_no_key(
    file_store: SQLiteStore, keys: KeyFolder, damage: Callable[[bytes], bytes]
) -> None:
    store = encrypted(file_store, keys)
    session_id = await talked(store, HandClock())
    (file,) = [one for one in keys.path.rglob("*") if one.is_file()]
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(StoreCorrupt):
        await store.record(session_id)


async def test_what_a_session_begins_with_is_under_its_key_too(
    file_store: SQLiteStore, keys: KeyFolder
) -> None:
    store = encrypted(file_store, keys)
    await Writer.begin(store, opening("s", metadata={"salt": ""}, payloads={"r": SAID}))
    assert await store.payloads("s") == {"r": SAID}
    assert SAID not in str(await file_store.payloads("s"))


@pytest.mark.parametrize("deletes", ["erases", "prunes"])
@pytest.mark.parametrize("problem", ["no rights", "broke off"])
async def test_a_deletion_destroys_its_keys_or_is_run_again(
    locked: Callable[[], Store],
    keys: KeyFolder,
    monkeypatch: pytest.MonkeyPatch,
    problem: str,
    deletes: str,
) -> None:
    """Without the right to destroy keys nothing is recorded. The judge is the folder of keys."""
    store, clock = locked(), HandClock()
    session = await opened(store, clock=clock, settings=PRIVATE)
    await walk(session, "transfer")
    await session.release()
    clock.time += 40 * 86_400
    subjects = {"session_ids": [session.id], "subjects": (), "due": False, "who": None}

    async def delete() -> None:
        if deletes == "prunes":
            await prune(store, days=30, why="a month", clock=clock)
        else:
            await erase_wanted(store, **subjects, why="request 7", clock=clock)

    def fails(*_: object) -> bool:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        if problem == "no rights":
            patched.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
        else:
            patched.setattr(Path, "unlink", fails)
        with pytest.raises(StoreUnavailable, match="cannot be used"):
            await delete()
    record = await store.record(session.id)
    assert (record.is_erased or record.is_pruned) is (problem == "broke off")
    assert len([one for one in keys.path.rglob("*") if one.is_file()]) == 1
    await delete()
    assert not [one for one in keys.path.rglob("*") if one.is_file()]


async def test_a_stray_file_beside_the_keys_stops_no_erasure(
    locked: Callable[[], Store], keys: KeyFolder
) -> None:
    store, clock = locked(), HandClock()
    session = await opened(store, clock=clock, settings=PRIVATE)
    await walk(session, "transfer")
    await session.release()
    (keys.path / ".DS_Store").write_text("", "utf-8")
    (keys.path / "notes.txt").write_text("", "utf-8")
    (keys.path / "notes.txt").chmod(0o400)
    await erase_wanted(
        store, session_ids=[session.id], subjects=(), due=False, who=None, why="r", clock=clock
    )
    assert {file.name for file in keys.path.rglob("*") if file.is_file()} == {
        ".DS_Store", "notes.txt",
    }  # fmt: skip
