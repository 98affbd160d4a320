"""A store held against a seal, finding by finding."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from counter_desk import COUNTER, CountingTools, HandClock, walk
from sopilot.messages.errors import RunEnded, StoreUnavailable
from sopilot.records.journal import write
from sopilot.records.loading import Traces, make_anew, rebuild_register
from sopilot.records.log import SealFile, head_of, seal_head
from sopilot.records.privacy import erase_contents
from sopilot.records.pruning import prune
from sopilot.records.sealing import Verified, seal_store, verify_store
from sopilot.records.store import SessionRecord, Settings
from sopilot.session.opening import open_session, resume_session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.signing import generate_key

KEY = generate_key()
CLOCK = HandClock()
PRIVATE = Settings(private=True)


async def session(store: MemoryStore, name: str, goal: str = "rename") -> None:
    one = await open_session(
        store, COUNTER, tools=CountingTools(), clock=CLOCK, session_id=name, settings=PRIVATE
    )
    await walk(one, goal)
    await one.release()


async def go_on(store: MemoryStore, name: str) -> None:
    one = await resume_session(store, name, tools=CountingTools(), clock=CLOCK)
    await one.user_said("one thing more")
    await one.release()


async def three(store: MemoryStore) -> SealFile:
    for name in ("a", "b", "c"):
        await session(store, name)
    return SealFile(((await seal_store(store, KEY, at=5.0)).seal,))


async def nothing(store: MemoryStore) -> None:
    pass


async def one_goes_on(store: MemoryStore) -> None:
    await go_on(store, "b")


async def one_begins(store: MemoryStore) -> None:
    await session(store, "d")


async def pruned(store: MemoryStore) -> None:
    found = await prune(store, days=0, clock=CLOCK)
    assert found.pruned


async def pruned_and_sealed(store: MemoryStore) -> None:
    await pruned(store)
    await seal_store(store, KEY, at=6.0)


async def pruned_and_sealed_by_another(store: MemoryStore) -> None:
    await pruned(store)
    entries = await store.records.log()
    await store.records.add_seal(seal_head(generate_key(), head_of(entries, 6.0)))


async def contents_erased(store: MemoryStore) -> None:
    await erase_contents(store, [await store.record("a")], "asked for", who=None, clock=CLOCK)


async def pruned_by_nobody(store: MemoryStore) -> None:
    await store.prune({"a": (await store.record("a")).metadata_when_pruned(1.0)})


async def erased_by_nobody(store: MemoryStore) -> None:
    await store.erase({"a": (await store.record("a")).metadata_when_erased(1.0)})


async def unreadable(store: MemoryStore) -> None:
    kept = store._sessions["a"]
    kept.metadata = {**kept.metadata, "programs": 1}


async def rewritten(store: MemoryStore) -> None:
    """Another history under the same id, longer than what was sealed."""
    other = MemoryStore()
    await session(other, "a", "wire")
    for _ in range(9):
        await go_on(other, "a")
    store._sessions["a"] = other._sessions["a"]


async def other_rows(store: MemoryStore) -> None:
    head, rows = await Traces(store).rows("a")
    assert await store.records.replace_actions(head, rows[1:])


async def other_rows_of_one_that_goes_on(store: MemoryStore) -> None:
    await go_on(store, "b")
    head, rows = await Traces(store).rows("b")
    assert await store.records.replace_actions(head, rows[1:])


Happens = Callable[[MemoryStore], Awaitable[None]]
JOURNAL = ["journal.privacy"]
SINCE = [("pruned-since", name, number) for name, number in (("a", 3), ("b", 4), ("c", 5))]


@pytest.mark.parametrize(
    ("happens", "gaps", "counts", "quickly"),
    [
        (nothing, [], (3, 0, 0, 0, []), (0, None)),
        (one_goes_on, [], (3, 1, 0, 0, []), (1, None)),
        (one_begins, [], (3, 0, 1, 0, ["d"]), (0, None)),
        (pruned, SINCE, (0, 0, 4, 3, JOURNAL), (0, None)),
        (pruned_and_sealed, [], (0, 0, 5, 3, JOURNAL), (0, None)),
        (pruned_and_sealed_by_another, SINCE, (0, 0, 4, 3, JOURNAL), (0, None)),
        (contents_erased, [], (3, 0, 1, 0, JOURNAL), (0, None)),
        (pruned_by_nobody, [("erased-session", "a", 3)], (2, 0, 0, 1, []), (0, None)),
        (erased_by_nobody, [("erased-session", "a", 3)], (3, 0, 0, 0, []), (0, None)),
        (unreadable, [("unreadable-session", "a", 3)], (3, 0, 0, 0, []), (0, None)),
        (rewritten, [("rewritten-session", "a", 3)], (3, 0, 0, 0, []), (0, None)),
        (other_rows, [("register-differs", "a", None)], (2, 0, 0, 0, []), (0, "register-differs")),
        (
            other_rows_of_one_that_goes_on,
            [("register-differs", "b", None)],
            (3, 1, 0, 0, []),
            (1, "register-differs"),
        ),
    ],
)
def test_what_happened_since_the_seal(
    happens: Happens,
    gaps: list[tuple[str, str, int | None]],
    counts: tuple[Any, ...],
    quickly: tuple[int, str | None],
) -> None:
    async def case() -> tuple[Verified, Verified]:
        store = MemoryStore()
        seals = await three(store)
        await happens(store)
        return (
            await verify_store(store, seals, [KEY.public]),
            await verify_store(store, seals, [KEY.public], events=False),
        )

    found, quick = asyncio.run(case())
    assert [(one.code, one.session_id, one.entry) for one in found.gaps] == gaps
    assert found.complete is (gaps == [])
    assert found.erased_since == (["a"] if happens is contents_erased else [])
    told = (found.events_read, found.moved, found.later, found.pruned, found.unsealed)
    assert told == counts
    assert (found.sessions, found.journals, quick.sessions) == (3, 0, 3)
    assert (quick.events_read, *(one.code for one in quick.gaps)) == tuple(
        one for one in quickly if one is not None
    )


async def test_journals_are_covered_as_sessions_are() -> None:
    store = MemoryStore()
    await write(store, "diary", "said", {}, clock=CLOCK)
    await session(store, "a")
    sealing = await seal_store(store, KEY, at=5.0)
    assert (sealing.added, len(sealing.entries), sealing.seal.head.size) == (2, 4, 4)
    found = await verify_store(store, SealFile((sealing.seal,)), [KEY.public])
    assert (found.sessions, found.journals, found.events_read) == (2, 1, 2)
    await write(store, "diary", "said", {}, clock=CLOCK)
    assert (await seal_store(store, KEY, at=6.0)).added == 1
    assert (await seal_store(store, KEY, at=7.0)).added == 0
    assert [one.head.at for one in await store.records.seals()] == [5.0, 6.0, 7.0]


def test_a_seal_that_nobody_trusts_says_nothing_more() -> None:
    async def case() -> Verified:
        store = MemoryStore()
        return await verify_store(store, await three(store), [generate_key().public])

    found = asyncio.run(case())
    assert [one.code for one in found.gaps] == ["foreign-key"]
    assert (found.sessions, found.events_read, found.complete) == (0, 0, False)


@pytest.mark.parametrize(
    ("happens", "says"),
    [
        ([other_rows], "session a are not those that its trace makes$"),
        ([other_rows_of_one_that_goes_on], "rows of session b are not those"),
        ([other_rows, other_rows_of_one_that_goes_on], "session a .*, and 1 more$"),
    ],
)
async def test_nothing_is_sealed_over(happens: list[Happens], says: str) -> None:
    store = MemoryStore()
    await three(store)
    for one in happens:
        await one(store)
    before = await store.records.log()
    with pytest.raises(RunEnded, match=says) as refused:
        await seal_store(store, KEY, at=6.0)
    assert "not what was sealed before, and nothing was sealed" in str(refused.value)
    assert await store.records.log() == before


async def test_the_register_is_made_from_all_traces_or_is_none() -> None:
    store = MemoryStore()
    await three(store)
    said: list[str] = []
    await make_anew(store, tell=said.append)
    assert said == ["the register was made from the traces of 3 sessions"]
    before = await store.records.digests()
    await other_rows(store)
    assert await rebuild_register(store) == (3, {})
    assert await store.records.digests() == before
    await pruned_by_nobody(store)
    assert await rebuild_register(store) == (3, {})
    store._sessions["b"].metadata = {**store._sessions["b"].metadata, "programs": 1}
    read, problems = await rebuild_register(store, tell=said.append)
    assert (read, list(problems)) == (2, ["b"])
    assert said[-1] == "session b: session b does not name its programs"
    with pytest.raises(RunEnded, match="1 session could not be read"):
        await make_anew(store, tell=said.append)
    assert said[-1] == "the register was made from the traces of 2 sessions"


class Gone(MemoryStore):
    """Is not there any more, from some question on."""

    questions = 10_000

    async def record(self, session_id: str) -> SessionRecord:
        self.questions -= 1
        if self.questions < 0:
            raise StoreUnavailable("PostgreSQL is not available: the connection was closed")
        return await super().record(session_id)


async def often(store: MemoryStore, sealed: SealFile) -> None:
    """As often as it takes to come to that question."""
    while True:
        assert (await verify_store(store, sealed, [KEY.public])).complete


@pytest.mark.parametrize("questions", range(8))
async def test_a_store_that_goes_away_accuses_nobody(questions: int) -> None:
    store = Gone()
    sealed = await three(store)
    store.questions = questions
    with pytest.raises(StoreUnavailable):
        await often(store, sealed)
    store.questions = min(questions, 2)
    with pytest.raises(StoreUnavailable):
        await rebuild_register(store)


async def test_what_is_pruned_at_another_head_is_not_on_record() -> None:
    """Pruned on record, and then somebody put other events and another head in their place."""

    store = MemoryStore()
    seals = await three(store)
    await pruned(store)
    kept = store._sessions["a"]
    kept.head = kept.head._replace(hash="0" * 64)
    found = await verify_store(store, seals, [KEY.public])
    assert [(one.code, one.session_id) for one in found.gaps] == [
        ("erased-session", "a"), ("pruned-since", "b"), ("pruned-since", "c"),
    ]  # fmt: skip
    assert found.gaps[0].message.endswith("are gone, and nobody pruned them")


async def test_the_first_event_of_a_session_is_held_against_the_seal() -> None:
    """Sealed when nothing but its opening was there, and then begun anew."""

    store, other = MemoryStore(), MemoryStore()
    for one, model in ((store, "a"), (other, "b")):
        opened = await open_session(
            one, COUNTER, tools=CountingTools(), clock=CLOCK, session_id="a", model=model
        )
        await opened.release()
    seals = SealFile(((await seal_store(store, KEY, at=5.0)).seal,))
    assert (await verify_store(store, seals, [KEY.public])).gaps == []
    await go_on(other, "a")
    store._sessions["a"] = other._sessions["a"]
    found = await verify_store(store, seals, [KEY.public])
    assert [(one.code, one.session_id) for one in found.gaps] == [("rewritten-session", "a")]


async def test_a_later_seal_vouches_for_what_it_covers_and_no_more() -> None:
    store = MemoryStore()
    seals = await three(store)
    await session(store, "d")
    await seal_store(store, KEY, at=6.0)
    await pruned(store)
    found = await verify_store(store, seals, [KEY.public])
    assert [(one.code, one.session_id) for one in found.gaps] == [
        ("pruned-since", name) for name in ("a", "b", "c")
    ]


async def test_what_others_logged_behind_the_last_trusted_seal_vouches_for_nothing() -> None:
    """Whoever can write to the store can log that its journal has moved, and seal that with a key
    that nobody trusts."""

    store = MemoryStore()
    seals = await three(store)
    await session(store, "d")
    await seal_store(store, KEY, at=6.0)
    await pruned(store)
    await store.records.log_heads(JOURNAL, at=7.0)
    log = await store.records.log()
    await store.records.add_seal(seal_head(generate_key(), head_of(log, 7.0)))
    found = await verify_store(store, seals, [KEY.public])
    assert [(one.code, one.session_id) for one in found.gaps] == [
        ("pruned-since", name) for name in ("a", "b", "c")
    ]


async def test_contents_under_a_key_that_is_not_at_hand_are_all_there() -> None:
    store = MemoryStore()
    seals = await three(store)
    kept = store._sessions["a"]
    kept.metadata = {**kept.metadata, "locked": "x"}
    kept.payloads = {ref: {"locked": "x"} for ref in kept.payloads}
    found = await verify_store(store, seals, [KEY.public])
    assert (found.gaps, found.locked) == ([], 1)
    kept.payloads.popitem()
    found = await verify_store(store, seals, [KEY.public])
    assert [(one.code, one.session_id) for one in found.gaps] == [("erased-session", "a")]
    assert found.gaps[0].message.endswith("are gone, and nobody erased them")


async def test_the_last_seal_is_the_one_that_counts() -> None:
    """Nothing happened between the two, and the key was changed."""

    store, other = MemoryStore(), generate_key()
    await three(store)
    await seal_store(store, other, at=6.0, earlier_keys=[KEY.public])
    assert (await seal_store(store, other, at=7.0)).added == 0
    with pytest.raises(RunEnded, match="signed with another key"):
        await seal_store(store, KEY, at=8.0)
