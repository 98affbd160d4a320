"""Many sessions that write at once: each as if it were alone, in fewer flushes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence

from store_parts import LEASE, Writer, batch_on, opening, start_of

from sopilot.messages.errors import Conflict, LeaseHeld, LeaseLost, SessionExists, UnknownSession
from sopilot.records.actions import ActionRow
from sopilot.records.selection import Wanted
from sopilot.records.store import Batch, Lease, NewSession, Store
from sopilot.stores.group_commit import GroupCommit, WriteRefused
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.sqlite import SQLiteStore

MANY = 60


ODD = ['a "quoted" one', "back\\slash", "{braces, commas}", "NULL", "", " spaces ", "é 字", "'"]


def _action(call: str, expires_at: float | None = None) -> ActionRow:
    return ActionRow(f'"{call}"', 1.0, call, call, call, expires_at, call, "{}")


def _opening(name: str) -> NewSession:
    return opening(
        name, name, metadata={"name": name}, programs={name: f"text {name}"},
        payloads={f"r-{name}": [name, "\x00"]}, summary={"status": name},
    )  # fmt: skip


async def test_what_many_write_at_once_is_each_ones_own(store: Store) -> None:
    async def conversation(name: str) -> None:
        writer = await Writer.begin(store, _opening(name), owner=name)
        for number in range(3):
            await writer.append(
                [name, number],
                payloads={f"p-{name}": [name]} if number else {},
                summary={"status": "running"},
                actions=[_action(f"{number} {name}", 2.5 if number else None)],
            )

    names = [f"{number} {odd}" for number in range(7) for odd in ODD]
    await asyncio.gather(*map(conversation, names))
    for name in names:
        details = [one.event.payload["details"] for one in await store.events(name)]
        assert details == [name, [name, 0], [name, 1], [name, 2]]
        assert await store.payloads(name) == {f"r-{name}": [name, "\x00"], f"p-{name}": [name]}
        record = await store.record(name)
        assert (record.head.seq, record.owner, record.metadata) == (3, name, {"name": name})
        assert record.summary == {"status": "running"}
        assert await store.program(name) == f"text {name}"
    log = await store.records.log()
    assert [one.number for one in log] == list(range(len(names)))
    assert {one.session_id for one in log} == set(names)
    assert {one.seq for one in log} == {-1}
    wanted = {
        (name, _action(f"{number} {name}", 2.5 if number else None))
        for name in names
        for number in range(3)
    }
    assert set(await store.records.actions(Wanted())) == wanted


async def test_leases_that_many_want_at_once_are_each_ones_own(store: Store) -> None:
    names = [f"s{number}" for number in range(20)]
    held = await asyncio.gather(*(store.create(_opening(one), owner="o", **LEASE) for one in names))

    def wanted(name: str, **more: object) -> Awaitable[Lease]:
        return store.acquire(name, owner="me", **{**LEASE, **more})  # type: ignore[arg-type]

    refused = await asyncio.gather(*map(wanted, names), return_exceptions=True)
    assert {type(one) for one in refused} == {LeaseHeld}
    await asyncio.gather(*(store.release(one) for one in [*held[:15], held[3]]))
    # Three want the same one, by the same name; one is nobody's; one runs out; one is taken.
    asked = [*names[:15], "s4", "s4", "nobody"]
    found = await asyncio.gather(
        *map(wanted, asked), wanted("s16", now=200.0), wanted("s17", take_over=True),
        wanted("s18"), return_exceptions=True,
    )  # fmt: skip
    kinds = [Lease] * 15 + [LeaseHeld, LeaseHeld, UnknownSession, Lease, Lease, LeaseHeld]
    assert [type(one) for one in found] == kinds
    leases = [one for one in found if isinstance(one, Lease)]
    assert {one.token for one in leases[:15]} == {3}
    assert {one.token for one in leases[15:]} == {2}
    await asyncio.gather(*(store.release(one) for one in [*leases, held[16], held[19]]))
    owners = {one: (await store.record(one)).owner for one in names}
    assert {name for name, owner in owners.items() if owner} == {"s15", "s18"}


async def test_one_that_is_refused_is_refused_alone(store: Store) -> None:
    names = [f"s{number}" for number in range(12)]
    new = [_opening(name) for name in [*names, "s3"]]
    made = await asyncio.gather(
        *(store.create(one, owner="o", **LEASE) for one in new), return_exceptions=True
    )
    assert [type(one) for one in made] == [Lease] * 12 + [SessionExists]
    leases = [one for one in made if isinstance(one, Lease)]
    leases[5] = leases[5]._replace(token=7)
    leases[6] = leases[6]._replace(session_id="gone")

    def batch(number: int) -> Batch:
        begun = new[number].first
        head = start_of(names[number]) if number == 8 or begun is None else begun.head
        return batch_on(head, "next", summary={"status": "running"})

    found = await asyncio.gather(
        *(store.append(lease, batch(at), **LEASE) for at, lease in enumerate(leases)),
        return_exceptions=True,
    )
    wanted = {5: LeaseLost, 6: UnknownSession, 8: Conflict}
    assert [type(one) for one in found] == [wanted.get(at, Lease) for at in range(12)]
    lengths = [len(await store.events(name)) for name in names]
    assert lengths == [1 if at in wanted else 2 for at in range(12)]


async def test_writes_share_a_batch_while_enough_are_in_flight() -> None:
    written: list[Sequence[int]] = []

    async def write_many(items: Sequence[int]) -> list[int]:
        await asyncio.sleep(0)
        if 13 in items:
            raise WriteRefused("13")
        written.append([*items])
        return [-item for item in items]

    def write(group: GroupCommit[int, int], items: Iterable[int]) -> list[Awaitable[int]]:
        return [group.write(str(item), item) for item in items]

    group = GroupCommit(write_many, concurrent=2)
    assert await asyncio.gather(*write(group, range(10))) == [-item for item in range(10)]
    assert written == [[0], [1], [2, 3, 4, 5, 6, 7, 8, 9]]
    written.clear()
    answers = await asyncio.gather(*write(group, range(10, 15)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [int, int, int, WriteRefused, int]
    assert written == [[10], [11], [12], [14]], "a batch that is refused is tried one by one"


async def test_what_many_write_to_a_file_at_once_is_flushed_together(
    file_store: SQLiteStore,
) -> None:
    commits: list[str] = []
    writers = [await Writer.begin(file_store, opening(f"s{number}")) for number in range(40)]
    db = await file_store.open()
    db.connection.set_trace_callback(
        lambda text: commits.append(text) if text == "COMMIT" else None
    )

    async def three(writer: Writer) -> None:
        for number in range(3):
            await writer.append(number)

    await three(writers[0])
    assert len(commits) == 3, "who is alone waits for nobody"
    await asyncio.gather(*map(three, writers[1:]))
    assert len(commits) - 3 <= 3 + 4, "one of them by itself, then all at once, three times"
    assert {len(await file_store.events(f"s{number}")) for number in range(40)} == {3}


class Killed(BaseException):
    """Nothing that handles errors handles it."""


async def test_an_interrupted_batch_wakes_everybody() -> None:
    async def write_many(items: Sequence[int]) -> Sequence[int]:
        await asyncio.sleep(0)
        if len(items) > 1:
            raise Killed
        return items

    group = GroupCommit(write_many, concurrent=1)
    answers = await asyncio.wait_for(
        asyncio.gather(*(group.write(str(n), n) for n in range(4)), return_exceptions=True), 20
    )
    assert [type(answer) for answer in answers] == [int, Killed, Killed, Killed]
    assert await group.write("5", 5) == 5


async def test_rows_that_change_with_every_event_stay_where_they_are(
    server_store: PostgresStore,
) -> None:
    """Else a busy store would grow by a session's row with every event."""

    async def talk(name: str) -> None:
        new = opening(name, name, metadata={"about": name * 100})
        writer = await Writer.begin(server_store, new)
        for number in range(20):
            await writer.append([name, number], summary={"status": "running"})

    await asyncio.gather(*[talk(f"talk-{number}") for number in range(MANY)])
    async with server_store.read() as db:
        [(pages,)] = await db.rows("SELECT pg_relation_size('{heads}') / 8192")
    assert pages < MANY, "several sessions share one"
