"""A store held against a seal, finding by finding."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from counter_desk import CountingTools, HandClock, walk
from counter_sessions import opened
from sopilot.messages.errors import RunEnded, StoreUnavailable
from sopilot.records.journal import write
from sopilot.records.loading import Traces, rebuild_completely, rebuild_register
from sopilot.records.log import SealFile, head_of, seal_head
from sopilot.records.privacy import erase_contents
from sopilot.records.pruning import prune
from sopilot.records.sealing import seal_store, sealed_lines, verified_lines, verify_store
from sopilot.records.store import SessionRecord, Settings
from sopilot.session.opening import resume_session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.signing import generate_key

KEY = generate_key()
CLOCK = HandClock()
PRIVATE = Settings(private=True)


async def session(store: MemoryStore, name: str, goal: str = "rename") -> None:
    one = await opened(store, clock=CLOCK, session_id=name, settings=PRIVATE)
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
    result = await prune(store, days=0, clock=CLOCK)
    assert result.pruned


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
        (rewritten, [("rewritten-session", "a", 3)], (3, 1, 0, 0, []), (1, "rewritten-session")),
        (other_rows, [("register-differs", "a", None)], (2, 0, 0, 0, []), (0, "register-differs")),
        (
            other_rows_of_one_that_goes_on,
            [("register-differs", "b", None)],
            (3, 1, 0, 0, []),
            (1, "register-differs"),
        ),
    ],
)
async def test_a_store_held_against_an_earlier_seal(
    happens: Happens,
    gaps: list[tuple[str, str, int | None]],
    counts: tuple[Any, ...],
    quickly: tuple[int, str | None],
    store: MemoryStore,
) -> None:
    """With the events of every session, and quickly without them."""
    seals = await three(store)
    await happens(store)
    result = await verify_store(store, seals, [KEY.public])
    quick = await verify_store(store, seals, [KEY.public], events=False)
    assert [(one.code, one.session_id, one.entry) for one in result.gaps] == gaps
    assert result.complete is (gaps == [])
    assert result.erased_since == (["a"] if happens is contents_erased else [])
    seen = (result.events_read, len(result.moved), result.later, result.pruned, result.unsealed)
    assert seen == counts
    assert (result.sessions, result.journals, quick.sessions) == (3, 0, 3)
    assert (quick.events_read, *(one.code for one in quick.gaps)) == tuple(
        one for one in quickly if one is not None
    )


async def pruned_at_another_head(store: MemoryStore) -> None:
    """Pruned on record; then somebody put other events and another head in their place."""
    await pruned(store)
    stored = store._sessions["a"]
    stored.head = stored.head._replace(hash="0" * 64)


async def gone_on_and_pruned_at_another_head(store: MemoryStore) -> None:
    """The seal covers an earlier head, so only the record of the pruning names this one."""
    await go_on(store, "a")
    await pruned_at_another_head(store)


async def pruned_after_a_later_seal(store: MemoryStore) -> None:
    """A seal vouches for what it covers and no more."""
    await session(store, "d")
    await seal_store(store, KEY, at=6.0)
    await pruned(store)


async def logged_by_others_behind_the_last_seal(store: MemoryStore) -> None:
    """Anybody who can write to the store can log that its journal has moved, and seal that with a
    key that nobody trusts."""
    await pruned_after_a_later_seal(store)
    await store.records.log_heads(JOURNAL, at=7.0)
    log = await store.records.log()
    await store.records.add_seal(seal_head(generate_key(), head_of(log, 7.0)))


async def under_a_key_that_is_not_at_hand(store: MemoryStore) -> None:
    stored = store._sessions["a"]
    stored.metadata = {**stored.metadata, "locked": "x"}
    stored.payloads = {ref: {"locked": "x"} for ref in stored.payloads}


async def under_a_key_and_deleted(store: MemoryStore) -> None:
    await under_a_key_that_is_not_at_hand(store)
    store._sessions["a"].payloads.popitem()


ALL_PRUNED = [("pruned-since", name, "") for name in ("a", "b", "c")]
GONE = "are gone, and no"


@pytest.mark.parametrize(
    ("happens", "gaps"),
    [
        (pruned_at_another_head, [("rewritten-session", "a", "differs"), *ALL_PRUNED[1:]]),
        (
            gone_on_and_pruned_at_another_head,
            [("erased-session", "a", f"{GONE} pruning is on record"), *ALL_PRUNED[1:]],
        ),
        (pruned_after_a_later_seal, ALL_PRUNED),
        (logged_by_others_behind_the_last_seal, ALL_PRUNED),
        (under_a_key_that_is_not_at_hand, []),
        (under_a_key_and_deleted, [("erased-session", "a", f"{GONE} erasure is on record")]),
    ],
)
async def test_gaps_that_somebody_tried_to_hide(
    happens: Happens, gaps: list[tuple[str, str, str]], store: MemoryStore
) -> None:
    seals = await three(store)
    await happens(store)
    result = await verify_store(store, seals, [KEY.public])
    assert [(one.code, one.session_id) for one in result.gaps] == [gap[:2] for gap in gaps]
    for one, gap in zip(result.gaps, gaps, strict=True):
        assert one.message.endswith(gap[2])
    assert result.locked == int("under_a_key" in happens.__name__)


async def test_the_first_event_of_a_session_is_held_against_the_seal(store: MemoryStore) -> None:
    """Sealed when nothing but its opening was there, and then begun anew."""
    other = MemoryStore()
    for one, model in ((store, "a"), (other, "b")):
        await (await opened(one, clock=CLOCK, session_id="a", model=model)).release()
    seals = SealFile(((await seal_store(store, KEY, at=5.0)).seal,))
    assert (await verify_store(store, seals, [KEY.public])).gaps == []
    await go_on(other, "a")
    store._sessions["a"] = other._sessions["a"]
    result = await verify_store(store, seals, [KEY.public])
    assert [(one.code, one.session_id) for one in result.gaps] == [("rewritten-session", "a")]


async def test_journals_are_covered_as_sessions_are(store: MemoryStore) -> None:
    await write(store, "diary", "said", {}, clock=CLOCK)
    await session(store, "a")
    sealing = await seal_store(store, KEY, at=5.0)
    assert (sealing.added, len(sealing.entries), sealing.seal.head.size) == (2, 4, 4)
    result = await verify_store(store, SealFile((sealing.seal,)), [KEY.public])
    assert (result.sessions, result.journals, result.events_read) == (1, 1, 2)
    assert next(verified_lines(result, False)).startswith("complete: all 1 session and 1 journal ")
    await write(store, "diary", "said", {}, clock=CLOCK)
    assert (await seal_store(store, KEY, at=6.0)).added == 1
    assert (await seal_store(store, KEY, at=7.0)).added == 0
    assert [one.head.at for one in await store.records.seals()] == [5.0, 6.0, 7.0]


async def test_a_seal_names_what_was_pruned_since_the_last_one(store: MemoryStore) -> None:
    await three(store)
    await pruned(store)
    sealing = await seal_store(store, KEY, at=6.0)
    assert sealing.pruned == ("a", "b", "c")
    assert any("events of 3 sessions were deleted" in line for line in sealed_lines(sealing))
    assert (await seal_store(store, KEY, at=7.0)).pruned == ()


@pytest.mark.parametrize(
    ("happens", "says"),
    [
        ([other_rows], "session a differ from its trace$"),
        ([other_rows_of_one_that_goes_on], "records of session b differ from its trace"),
        ([other_rows, other_rows_of_one_that_goes_on], "session a .*, and 1 more$"),
    ],
)
async def test_nothing_is_sealed_over(
    happens: list[Happens], says: str, store: MemoryStore
) -> None:
    await three(store)
    for one in happens:
        await one(store)
    before = await store.records.log()
    with pytest.raises(RunEnded, match=says) as refused:
        await seal_store(store, KEY, at=6.0)
    assert "the store differs from the last seal, so nothing was sealed" in str(refused.value)
    assert await store.records.log() == before


async def test_the_register_is_made_from_all_traces_or_is_none(store: MemoryStore) -> None:
    await three(store)
    messages: list[str] = []
    await rebuild_completely(store, tell=messages.append)
    assert messages == ["the action records were recomputed from the traces of 3 sessions"]
    before = await store.records.digests()
    await other_rows(store)
    assert await rebuild_register(store) == (3, {})
    assert await store.records.digests() == before
    await pruned_by_nobody(store)
    assert await rebuild_register(store) == (3, {})
    store._sessions["b"].metadata = {**store._sessions["b"].metadata, "programs": 1}
    read, problems = await rebuild_register(store, tell=messages.append)
    assert (read, list(problems)) == (2, ["b"])
    assert messages[-1] == "session b: session b does not name its programs"
    with pytest.raises(RunEnded, match="1 session could not be read"):
        await rebuild_completely(store, tell=messages.append)
    assert messages[-1] == "the action records were recomputed from the traces of 2 sessions"


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


async def test_the_last_seal_is_the_one_that_counts() -> None:
    """Nothing happened between the two, and the key was changed."""

    store, other = MemoryStore(), generate_key()
    await three(store)
    await seal_store(store, other, at=6.0, earlier_keys=[KEY.public])
    assert (await seal_store(store, other, at=7.0)).added == 0
    with pytest.raises(RunEnded, match="signed with another key"):
        await seal_store(store, KEY, at=8.0)
