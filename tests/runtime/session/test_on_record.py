"""What is kept in journals beside the sessions: audits and deviations, versions, readings, people,
reminders; who may write it, and what it then says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, walk
from sopilot.adapters.memory_store import MemoryStore
from sopilot.language.diagnostics import RunEnded, Severity, UserMistake
from sopilot.runtime.audit import Finding, Report, ScoreCard
from sopilot.runtime.records.people import Principal
from sopilot.runtime.session import Session, Settings, open_session
from sopilot.runtime.session.case_files import (
    KeptAudit,
    continue_deviation,
    deviation_step,
    differences,
    keep_audit,
    kept_audits,
    load_deviations,
)
from sopilot.runtime.session.identity import (
    change_people,
    issue_token,
    load_people,
    written_by,
)
from sopilot.runtime.session.journal import PREFIX, entries, is_journal, write
from sopilot.runtime.session.privacy import (
    Shredded,
    _texts,
    change_policy,
    due_sessions,
    is_demanded,
    may_read,
    note_reading,
    reading_lines,
    sessions_with,
    settings_here,
    shred,
    shred_wanted,
)
from sopilot.runtime.session.pruning import prune
from sopilot.runtime.session.releases import (
    authors_of,
    load_versions,
    release,
    require_released,
    sign_off,
    withdraw,
)
from sopilot.runtime.session.reminders import due_calls
from sopilot.runtime.session.unsettled import keep_sweeping, settle_orphan, sweep, waiting_in
from sopilot.runtime.trace import generate_key
from sopilot.runtime.vm import JSON

Case = Callable[[MemoryStore, HandClock], Awaitable[None]]


def run(case: Case) -> None:
    asyncio.run(case(MemoryStore(), HandClock()))


def code_of(refused: pytest.ExceptionInfo[UserMistake]) -> str:
    return refused.value.diagnostics[0].code


async def session(store: MemoryStore, clock: HandClock, name: str, **given: Any) -> Session:
    return await open_session(
        store, COUNTER, tools=CountingTools(), clock=clock, session_id=name, **given
    )


async def person(store: MemoryStore, name: str, *roles: str, demand: str = "") -> None:
    """Before there is an administrator, anybody may say who is there."""
    clock = HandClock()
    if name:
        said: dict[str, JSON] = {"person": name, "roles": list(roles)}
        said |= {"aliases": [], "subjects": []}
        await write(store, "people", "person_added", said, clock=clock)
        given: dict[str, JSON] = {"person": name, "token": f"of {name}", "sha256": name}
        await write(store, "people", "token_issued", given, clock=clock)
    if demand:
        await write(store, "people", "demanded", {"what": demand, "on": True}, clock=clock)


def who(name: str) -> Principal:
    return Principal(name, "token", f"of {name}")


# --- audits and deviations -----------------------------------------------------------


def found(code: str, seq: int, sentence: str = "", **more: Any) -> Finding:
    return Finding(code, seq, f"{code} is so", sentence=sentence, **more)


def report(session_id: str, *findings: Finding) -> Report:
    blank = dict.fromkeys(ScoreCard.__dataclass_fields__)
    card = ScoreCard(**{**blank, "session_id": session_id, "outcome": "completed", "grades": {}})  # type: ignore[arg-type]
    return Report(findings, card)


NOTE = found("N", 1, severity=Severity.NOTE)


def test_an_audit_is_kept_and_its_findings_open_deviations_once() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        await walk(await session(store, clock, "s"), "rename")
        first = report("s", found("A", 2, "It is so."), found("B", 3), NOTE)
        key = generate_key()
        given: dict[str, Any] = {"release": "r1", "clock": clock}
        assert await keep_audit(store, first, key=key, who=who("ann"), **given) == 0
        assert await keep_audit(store, report("s", NOTE), who=who("bo"), **given) == 1
        assert await keep_audit(store, first, **given) == 2
        opened = await load_deviations(store)
        assert [(one.code, one.seq, one.sentence, one.opened_by) for one in opened.values()] == [
            ("A", 2, "It is so.", "ann"), ("B", 3, "", "ann"),
        ]  # fmt: skip
        signed, clean, _ = await kept_audits(store, "s")
        head = (await store.record("s")).head
        assert signed == KeptAudit(
            0, 1000.0, "r1", (head.seq, head.hash), False, "completed",
            (("A", 2, "It is so."), ("B", 3, "")), "ann", key.public, True,
        )  # fmt: skip
        assert (clean.clean, clean.findings, clean.by) == (True, (), "bo")
        assert (clean.key, clean.genuine) == ("", None)

    run(case)


def test_a_signature_that_does_not_fit_is_not_genuine() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        key = generate_key()
        said: dict[str, JSON] = {"session": "s", "key": key.public, "signature": key.sign(b"x")}
        await write(store, "audits.s", "audited", said, clock=clock)
        (one,) = await kept_audits(store, "s")
        assert (one.genuine, one.key, one.head, one.clean) == (
            False,
            key.public,
            (0, "None"),
            False,
        )

    run(case)


def test_of_private_sessions_sentences_are_kept_as_digests() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        await walk(await session(store, clock, "s", settings=Settings(private=True)), "rename")
        told = report("s", found("A", 2, "Una is known."), found("B", 3))
        await keep_audit(store, told, release="r", clock=clock)
        (one,) = await kept_audits(store, "s")
        (_, _, digest), (_, _, none) = one.findings
        assert digest.startswith("#")
        assert (len(digest), none) == (17, "")
        (opened, _) = (await load_deviations(store)).values()
        assert "is so" not in opened.explanation
        salt = str((await store.record("s")).metadata["salt"])
        assert differences(one, told, salt) == []
        assert differences(one, report("s"), salt) == [
            f"no longer found: A at #2 ({digest})", "no longer found: B at #3",
        ]  # fmt: skip

    run(case)


def test_where_a_report_judges_otherwise_than_the_one_that_was_kept() -> None:
    kept = KeptAudit(0, 0.0, "r", (5, "h"), False, "completed",
                     (("A", 2, "It is so."), ("B", 3, "")), "", "", None)  # fmt: skip
    same = (found("A", 2, "It is so."), found("B", 3))
    assert differences(kept, report("s", *same)) == []
    assert differences(kept, report("s", *same, NOTE, found("C", 6))) == []
    assert differences(kept, report("s", same[0], found("C", 5), found("B", 4, "x"))) == [
        "no longer found: B at #3", "newly found: B at #4 (x)", "newly found: C at #5",
    ]  # fmt: skip


def test_the_life_of_a_deviation_and_who_may_go_on_with_it() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        await walk(await session(store, clock, "s"), "rename")
        await keep_audit(
            store, report("s", found("A", 2)), release="r", clock=clock, who=who("ann")
        )
        (number,) = await load_deviations(store)
        with pytest.raises(UserMistake) as refused:
            await continue_deviation(store, number + 9, "commented", {}, clock=clock, by="bo")
        assert code_of(refused) == "unknown-deviation"
        said = await deviation_step(
            store, "commented", {"number": number, "by": "bo", "text": "hm"}, who=None, clock=clock
        )
        assert said == f"deviation {number}: open"
        judged = {"disposition": "true", "cause": "c", "remedy": "r"}
        one = await continue_deviation(store, number, "judged", judged, clock=clock, by="bo")
        assert (one.state, one.judged_by) == ("judged", "bo")
        for by, problem in (("", "nobody"), ("bo", "same-person")):
            with pytest.raises(UserMistake) as refused:
                await continue_deviation(store, number, "closed", {}, clock=clock, by=by)
            assert code_of(refused) == problem
        await person(store, "", demand="identity")
        with pytest.raises(UserMistake) as refused:
            await continue_deviation(store, number, "closed", {}, clock=clock, by="cy")
        assert code_of(refused) == "unauthenticated"
        closed = await continue_deviation(
            store, number, "closed", {}, clock=clock, who=who("cy"), by="x"
        )
        assert (closed.state, closed.closed_by) == ("closed", "cy")

    run(case)


# --- versions ------------------------------------------------------------------------


def test_versions_are_released_signed_off_by_another_and_withdrawn() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        given: dict[str, Any] = {"text": "t", "coverage": None, "clock": clock, "who": None}
        programs = {"goal": "hash"}
        made = await release(
            store, "bank", programs=programs, begin=0.0, end=None, by="Ann", **given
        )
        assert (made.number, made.handbook, made.author) == (1, "bank", "Ann")
        more = await release(store, "bank", programs={}, begin=5.0, end=6.0, by="Ann", **given)
        assert more.number == 2
        one = {"handbook": "bank", "number": 1}
        people = await load_people(store)
        await require_released(store, people, "bank", {"x": "y"}, 1.0)
        await person(store, "", demand="sign-off")
        people = await load_people(store)
        with pytest.raises(UserMistake):
            await require_released(store, people, "bank", programs, 1.0)
        with pytest.raises(UserMistake) as refused:
            await sign_off(
                store, "version_signed_off", {**one, "by": " ann"}, who=None, clock=clock
            )
        assert code_of(refused) == "author"
        with pytest.raises(UserMistake) as refused:
            await sign_off(store, "version_signed_off", {**one, "by": " "}, who=None, clock=clock)
        assert code_of(refused) == "nobody"
        said = await sign_off(
            store, "version_signed_off", {**one, "by": "Bo"}, who=None, clock=clock
        )
        assert said == "version 1 of bank: signed off by Bo"
        await require_released(store, people, "bank", programs, 1.0)
        assert await authors_of(store, {"handbook": "bank", "programs": programs}) == {"ann"}
        assert await authors_of(store, {}) == frozenset()
        gone = await withdraw(
            store, "version_withdrawn", {**one, "by": "Cy"}, who=None, clock=clock
        )
        assert gone == "version 1 of bank: withdrawn"
        with pytest.raises(UserMistake):
            await require_released(store, people, "bank", programs, 2000.0)
        await person(store, "", demand="identity")
        with pytest.raises(UserMistake) as refused:
            await withdraw(store, "version_withdrawn", {**one, "by": "Cy"}, who=None, clock=clock)
        assert code_of(refused) == "unauthenticated"
        assert len((await load_versions(store)).of["bank"]) == 2

    run(case)


# --- people --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("principal", "name", "by", "identity"),
    [
        (None, "", "", "unauthenticated"),
        (None, "ann", "ann", "unauthenticated"),
        (who("bo"), "ann", "bo", "token"),
        (Principal("", "token", "p"), "ann", "ann", "token"),
    ],
)
def test_who_stands_behind_an_entry(
    principal: Principal | None, name: str, by: str, identity: str
) -> None:
    written = written_by(principal, name)
    assert written["by"] == by
    assert str(written["identity"]).startswith(identity)


def test_only_an_administrator_changes_people_once_there_is_one() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        async def add(name: str, by: Principal | None) -> None:
            said: dict[str, JSON] = {"person": name, "roles": ["administrator"]}
            await change_people(store, "person_added", said, who=by, clock=clock)

        await add("ann", None)
        with pytest.raises(UserMistake) as refused:
            await issue_token(
                store, "token_issued", {"person": "x", "token": "t"}, who=None, clock=clock
            )
        assert code_of(refused) == "unknown-person"
        given = {"person": "ANN", "token": "T", "expires_at": None}
        token = await issue_token(store, "token_issued", given, who=None, clock=clock)
        assert token.startswith("sop_")
        assert len(token) == len("sop_") + 43
        for by in (None, who("bo")):
            with pytest.raises(UserMistake) as refused:
                await add("cy", by)
            assert code_of(refused) == "not-administrator"
        with pytest.raises(UserMistake) as refused:
            await issue_token(
                store, "token_issued", {**given, "token": " t"}, who=who("ann"), clock=clock
            )
        assert code_of(refused) == "token-exists"
        await add("bo", who("ann"))
        await add("cy", who("bo"))
        people = await load_people(store)
        assert set(people.persons) == {"ann", "bo", "cy"}
        assert people.of_token(token, 0.0) == Principal("ann", "token", "T")

    run(case)


def test_only_who_may_changes_what_is_kept_how_long() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        said: dict[str, JSON] = {"roles": ["judge"]}
        await change_policy(store, "readers_named", said, who=None, clock=clock)
        await person(store, "ann", "administrator")
        await person(store, "bo", "privacy")
        await person(store, "cy", "judge")
        for by in (None, who("cy"), who("nobody")):
            with pytest.raises(UserMistake) as refused:
                await change_policy(store, "readers_named", said, who=by, clock=clock)
            assert code_of(refused) == "not-entitled"
        for by in (who("ann"), who("bo")):
            await change_policy(store, "readers_named", said, who=by, clock=clock)
        readers = [await may_read(store, by) for by in (None, who("ann"), who("cy"), who("x"))]
        assert readers == [False, False, True, False]
        await change_policy(store, "readers_named", {"roles": []}, who=who("ann"), clock=clock)
        assert await may_read(store, None) is True

    run(case)


def test_what_a_store_demands_of_new_sessions() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        own = Settings()
        assert await settings_here(store, await load_people(store), own) is own
        assert await is_demanded(store) is False
        await write(store, "privacy", "columns_named", {"columns": ["amount"]}, clock=clock)
        await person(store, "", demand="privacy")
        assert await is_demanded(store) is True
        found = await settings_here(store, await load_people(store), own)
        assert found == replace(own, private=True, columns=frozenset({"amount"}))
        private = Settings(private=True)
        assert await settings_here(store, await load_people(store), private) is private
        await person(store, "", demand="keys")
        with pytest.raises(UserMistake) as refused:
            await settings_here(store, await load_people(store), own)
        assert code_of(refused) == "no-keys"

    run(case)


# --- readings and erasures ------------------------------------------------------------


def test_who_read_contents_is_on_record() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        await write(store, "privacy", "readers_named", {"roles": ["judge"]}, clock=clock)
        await person(store, "cy", "judge")
        for by, how in (
            (who("cy"), {}), (None, {}), (None, {"to_all": True}), (None, {"or_nothing": True}),
            (who("cy"), {"or_nothing": True}),
        ):  # fmt: skip
            await note_reading(store, "show", ["a", "b"], who=by, clock=clock, **how)
        lines = reading_lines(await entries(store, "reading"))
        assert [line.partition("show ")[2] for line in lines[:-1]] == [
            f"a, b ({seen}) by {by}"
            for seen, by in (
                ("contents", "cy, token"), ("masked", "somebody, unauthenticated"),
                ("contents", "somebody, unauthenticated"), ("refused", "somebody, unauthenticated"),
                ("contents", "cy, token"),
            )
        ]  # fmt: skip
        assert lines[-1] == "5 on record"

    run(case)


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (None, []),
        (True, ["true"]),
        (1.5, ["1.5"]),
        ("una", ["una"]),
        ({"name": ["una", 1]}, ["name", "una", "1"]),
        (("a", "b"), ["a", "b"]),
        ('{"a": "b"}', ['{"a": "b"}', "a", "b"]),
        ("[1]", ["[1]", "1"]),
        ("{no", ["{no"]),
        ('"a\\u0062"', ['"a\\u0062"', "ab"]),
        ("(1)", ["(1)"]),
    ],
)
def test_every_text_in_a_value(value: JSON, texts: list[str]) -> None:
    assert list(_texts(value)) == texts


@pytest.mark.parametrize(
    ("result", "lines", "all_erased"),
    [
        (Shredded((), {}, (), ()), ["the contents of 0 sessions were erased"], True),
        (Shredded(("a",), {}, (), ()), ["the contents of 1 session were erased"], True),
        (Shredded((), {"a": "suit"}, (), ()), ["a is on hold: suit"], False),
        (Shredded((), {}, ("a",), ()), ["a was opened without privacy: "], False),
        (Shredded((), {}, (), ("a",)), ["a is running: try again"], False),
        (Shredded((), {}, (), (), ("a",)), ["a has a call that waits for people"], False),
    ],
)
def test_what_was_erased_in_words(result: Shredded, lines: list[str], all_erased: bool) -> None:
    assert result.all_erased is all_erased
    assert result.lines()[-1].startswith(lines[-1])
    told = result.as_json()
    assert told["erased"] == list(result.erased)
    assert (told["held"], told["inside_the_chain"]) == (dict(result.held), list(result.bare))
    assert (told["running"], told["unfinished"]) == (list(result.running), list(result.unfinished))


def test_what_is_erased_and_what_is_not() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        private = Settings(private=True)
        for name, settings in (("a", private), ("kept", private), ("bare", Settings())):
            await walk(one := await session(store, clock, name, settings=settings), "rename")
            await one.release()
        await session(store, clock, "running", settings=private)
        waits = await session(store, clock, "waits", settings=private)
        await walk(waits, "wire", stop_at_action="wire")
        await waits.call_tool("wire", ERRANDS["wire"], "w")
        await waits.release()
        await write(store, "privacy", "hold_set", {"what": "kept", "why": "suit"}, clock=clock)
        asked: dict[str, Any] = {"subjects": [], "session_ids": [], "due": False, "why": "y"}
        with pytest.raises(UserMistake, match="name what to erase"):
            await shred_wanted(store, who=None, clock=clock, **asked)
        names = ["a", "kept", "bare", "running", "waits"]
        told = await shred_wanted(
            store, who=None, clock=clock, **{**asked, "session_ids": [*names, "a"]}
        )
        assert (told.erased, told.held) == (("a",), {"kept": "suit"})
        assert (told.bare, told.running, told.unfinished) == (("bare",), ("running",), ("waits",))
        assert (await store.record("a")).is_erased
        again = await shred(
            store, [await store.record(one) for one in ("a", "waits")], "y",
            unfinished=True, who=None, clock=clock,
        )  # fmt: skip
        assert again.erased == ("waits",)

    run(case)


def test_sessions_in_which_somebody_stands_and_those_beyond_their_period() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        private = Settings(private=True)
        for name, goal in (("a", "rename"), ("b", "transfer")):
            one = await session(store, clock, name, settings=private, handbook="counter")
            await walk(one, goal)
            await one.release()
        assert [one.id for one in await sessions_with(store, ["ＢＯＢ"])] == ["b"]
        assert {one.id for one in await sessions_with(store, ["UNA", "x"])} == {"a", "b"}
        assert await sessions_with(store, ["", "nobody at all"]) == []
        assert await due_sessions(store, clock.now()) == []
        period: dict[str, JSON] = {"handbook": "counter/rename", "seconds": 50}
        await write(store, "privacy", "period_set", period, clock=clock)
        clock.advance(49)
        assert await due_sessions(store, clock.now()) == []
        clock.advance(1)
        assert [one.id for one in await due_sessions(store, clock.now())] == ["a"]
        await write(store, "privacy", "hold_set", {"what": "una", "why": "suit"}, clock=clock)
        asked: dict[str, Any] = {"session_ids": [], "why": "", "who": None, "clock": clock}
        told = await shred_wanted(store, subjects=["una"], due=True, **asked)
        assert (told.erased, set(told.held)) == ((), {"a", "b"})
        await write(store, "privacy", "hold_lifted", {"what": "una"}, clock=clock)
        assert (await shred_wanted(store, subjects=[], due=True, **asked)).erased == ("a",)
        assert await due_sessions(store, clock.now()) == []
        assert (await shred_wanted(store, subjects=["bob"], due=False, **asked)).erased == ("b",)

    run(case)


def test_what_is_archived_before_it_is_pruned_and_by_whom() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        for name in ("a", "kept"):
            await walk(one := await session(store, clock, name), "rename")
            await one.release()
        await write(store, "privacy", "hold_set", {"what": "kept", "why": "suit"}, clock=clock)
        archived: list[Sequence[str]] = []

        async def archive(ids: Any) -> None:
            assert not (await store.record("a")).is_pruned
            archived.append(tuple(ids))

        dry = await prune(store, days=0, clock=clock, archive=archive, dry=True)
        assert (archived, dry.pruned, dry.held, dry.dry) == ([], ("a",), {"kept": "suit"}, True)
        count = (await store.record("a")).head.seq + 1
        found = await prune(store, days=0, why="old", clock=clock, archive=archive)
        assert (archived, found.pruned, found.events) == ([("a",)], ("a",), count)
        assert (await store.record("a")).owner == ""
        (entry,) = [one for one in await entries(store, "privacy") if one.name == "pruned"]
        head = (await store.record("a")).head
        assert entry.details["why"] == "old"
        assert entry.details["sessions"] == {"a": [head.seq, head.hash]}
        assert (await prune(store, days=0, states=["refused"], clock=clock)).pruned == ()
        await person(store, "ann", "administrator")
        with pytest.raises(UserMistake) as refused:
            await prune(store, days=0, clock=clock)
        assert code_of(refused) == "not-entitled"
        await prune(store, days=0, clock=clock, dry=True)

    run(case)


# --- what waits, and what was left -----------------------------------------------------


def test_who_is_told_of_what_expires() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await session(store, clock, "s")
        await walk(one, "wire", stop_at_action="wire")
        await one.call_tool("wire", ERRANDS["wire"], "w")
        await one.release()
        await person(store, "ann", "supervisor")
        await person(store, "bo", "officer")
        said: dict[str, JSON] = {"role": "auditor", "to": "officer", "before_seconds": 600.0}
        await write(store, "people", "escalation_set", said, clock=clock)
        for later, escalated in (
            (2999, {}),
            (1, {"auditor": "officer"}),
            (600, {"auditor": "officer"}),
        ):
            clock.advance(later)
            (call,) = await due_calls(store, clock=clock)
            assert call.escalated == escalated
            assert call.people["supervisor"] == ["ann"]
            assert (call.approvals, call.needed, call.expires_at) == (0, 2, 4600.0)
        (told,) = await due_calls(store, once=True, clock=clock)
        assert await due_calls(store, once=True, clock=clock) == []
        assert [one.details["call"] for one in await entries(store, "reminders")] == [told.told_as]

    run(case)


class Slow(CountingTools):
    """Dies in the middle of a call that cannot be undone."""

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> Any:
        if name == "transfer":
            raise asyncio.CancelledError
        return await super().call(name, arguments, key=key)


def test_a_sweep_waits_until_the_owner_counts_as_gone() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await open_session(store, COUNTER, tools=Slow(), clock=clock, session_id="s")
        await walk(one, "transfer", stop_at_action="transfer")
        with pytest.raises(asyncio.CancelledError):
            await one.call_tool("transfer", ERRANDS["transfer"], "t")
        waiting = await waiting_in(store, "s", clock=clock)
        assert (waiting.unknown, waiting.running) == ((), True)
        assert await settle_orphan(store, "s", clock=clock) == []
        clock.advance(one.settings.lease_seconds + 1.9)
        assert await sweep(store, clock=clock) == []
        waiting = await waiting_in(store, "s", clock=clock)
        assert [one.call_id for one in waiting.unknown] == ["t"]
        assert waiting.running is False
        clock.advance(0.2)
        (left,) = await sweep(store, clock=clock)
        assert left.as_json() == {"session": "s", "call_id": "t", "action": "transfer"}
        assert await sweep(store, clock=clock) == []
        assert [one.call_id for one in (await waiting_in(store, "s", clock=clock)).unknown] == ["t"]

    run(case)


def test_sweeping_goes_on_where_a_store_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        answers: list[Any] = [RunEnded("gone"), [], ["left"], []]

        async def swept(store: Any, **given: Any) -> Any:
            answer = answers.pop(0)
            if isinstance(answer, RunEnded):
                raise answer
            return answer

        monkeypatch.setattr("sopilot.runtime.session.unsettled.sweep", swept)
        told: list[Any] = []
        warned: list[str] = []
        with pytest.raises(IndexError):
            await keep_sweeping(store, 0.0, told.append, warned.append)
        assert (told, warned) == ([[], ["left"], []], ["sopilot: gone"])
        answers[:] = [["left"]]
        assert await keep_sweeping(store, None, told.append, warned.append) is True
        answers[:] = [[]]
        assert await keep_sweeping(store, None, told.append, warned.append) is False
        answers[:] = [RunEnded("gone")]
        with pytest.raises(RunEnded):
            await keep_sweeping(store, None, told.append, warned.append)
        assert len(warned) == 1

    run(case)


def test_journals_are_no_sessions() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        assert await entries(store, "diary") == []
        assert [await write(store, "diary", "said", {"n": n}, clock=clock) for n in range(3)] == [
            0, 1, 2,
        ]  # fmt: skip
        clock.advance(5)
        await write(store, "diary", "heard", {}, clock=clock)
        found = await entries(store, "diary")
        assert [(one.number, one.at, one.name) for one in found] == [
            (0, 1000.0, "said"), (1, 1000.0, "said"), (2, 1000.0, "said"), (3, 1005.0, "heard"),
        ]  # fmt: skip
        record = await store.record(PREFIX + "diary")
        assert (record.metadata["format"], record.owner) == (1, "")
        assert is_journal(record.id)
        assert not is_journal("diary")

    run(case)
