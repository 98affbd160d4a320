"""Audits and deviations, versions and people in journals beside the sessions: who may write it,
and what it then says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from journal_cases import code_of, person, session, who

from counter_desk import HandClock, walk
from sopilot.audit.findings import Finding
from sopilot.audit.report import Report, ScoreCard
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import UserMistake
from sopilot.records.audits import (
    deviation_step,
    differences,
    keep_audit,
    kept_audits,
    load_deviations,
)
from sopilot.records.journal import write
from sopilot.records.people import Principal, change_people, issue_token, load_people, written_by
from sopilot.records.privacy import change_policy, is_demanded, may_read, settings_here
from sopilot.records.store import Settings
from sopilot.records.versions import (
    authors_of,
    load_versions,
    release,
    require_released,
    sign_off,
    withdraw,
)
from sopilot.stores.memory import MemoryStore
from sopilot.trace.signing import generate_key
from sopilot.values.json import JSON

# --- audits and deviations -----------------------------------------------------------


def found(code: str, seq: int, sentence: str = "", **more: Any) -> Finding:
    return Finding(code, seq, f"{code} is so", sentence=sentence, **more)


def report(session_id: str, *findings: Finding) -> Report:
    blank = dict.fromkeys(ScoreCard.__dataclass_fields__)
    card = ScoreCard(**{**blank, "session_id": session_id, "outcome": "completed", "grades": {}})  # type: ignore[arg-type]
    return Report(findings, card)


NOTE = found("N", 1, severity=Severity.NOTE)


async def test_an_audit_is_kept_and_its_findings_open_deviations_once() -> None:
    store, clock = MemoryStore(), HandClock()
    await walk(await session(store, clock, "s"), "rename")
    first = report("s", found("A", 2, "It is so."), found("B", 3), NOTE)
    key = generate_key()
    given: dict[str, Any] = {"release": "r1", "clock": clock}
    assert await keep_audit(store, first, key=key, who=who("ann"), **given) == 0
    assert await keep_audit(store, report("s", NOTE), who=who("bo"), **given) == 1
    assert await keep_audit(store, first, **given) == 2
    opened = await load_deviations(store)
    assert [(one.code, one.event, one.sentence) for one in opened.values()] == [
        ("A", 2, "It is so."), ("B", 3, ""),
    ]  # fmt: skip
    signed, clean, _ = await kept_audits(store, "s")
    head = (await store.record("s")).head
    assert (signed.release, signed.head, signed.clean) == ("r1", (head.seq, head.hash), False)
    assert (signed.by, signed.genuine) == ("ann", True)
    assert [(one.code, one.seq, one.sentence) for one in signed.findings] == [
        ("A", 2, "It is so."), ("B", 3, ""),
    ]  # fmt: skip
    assert (clean.clean, clean.findings, clean.by, clean.genuine) == (True, (), "bo", None)


async def test_a_signature_that_does_not_fit_is_not_genuine() -> None:
    store, clock = MemoryStore(), HandClock()
    key = generate_key()
    said: dict[str, JSON] = {"session": "s", "key": key.public, "signature": key.sign(b"x")}
    await write(store, "audits.s", "audited", said, clock=clock)
    (one,) = await kept_audits(store, "s")
    assert (one.genuine, one.head, one.clean) == (False, (0, "None"), None)


async def test_of_private_sessions_sentences_are_kept_as_digests() -> None:
    store, clock = MemoryStore(), HandClock()
    await walk(await session(store, clock, "s", settings=Settings(private=True)), "rename")
    told = report("s", found("A", 2, "Una is known."), found("B", 3))
    await keep_audit(store, told, release="r", clock=clock)
    (one,) = await kept_audits(store, "s")
    digest, none = (finding.sentence for finding in one.findings)
    assert digest.startswith("#")
    assert (len(digest), none) == (17, "")
    (opened, _) = (await load_deviations(store)).values()
    assert "is so" not in opened.explanation
    salt = str((await store.record("s")).metadata["salt"])
    assert differences(one, told, salt) == []
    assert differences(one, report("s"), salt) == [
        f"no longer found: A at #2 ({digest})", "no longer found: B at #3",
    ]  # fmt: skip


async def test_where_a_report_judges_otherwise_than_the_one_that_was_kept() -> None:
    store, clock = MemoryStore(), HandClock()
    await walk(await session(store, clock, "s"), "rename")
    same = (found("A", 2, "It is so."), found("B", 3))
    await keep_audit(store, report("s", *same), release="r", clock=clock)
    (kept,) = await kept_audits(store, "s")
    later = found("C", kept.head[0] + 1)
    assert differences(kept, report("s", *same, NOTE, later)) == []
    assert differences(kept, report("s", same[0], found("C", 5), found("B", 4, "x"))) == [
        "no longer found: B at #3", "newly found: B at #4 (x)", "newly found: C at #5",
    ]  # fmt: skip


async def test_the_life_of_a_deviation_and_who_may_go_on_with_it() -> None:
    store, clock = MemoryStore(), HandClock()
    await walk(await session(store, clock, "s"), "rename")
    await keep_audit(store, report("s", found("A", 2)), release="r", clock=clock, who=who("ann"))
    (number,) = await load_deviations(store)

    async def step(name: str, by: str, at: int = number, **more: Any) -> str:
        """What is said, or the code of what is refused."""
        person = more.pop("who", None)
        details = {"number": at, "by": by, **more}
        try:
            return await deviation_step(store, name, details, who=person, clock=clock)
        except UserMistake as refused:
            return refused.diagnostics[0].code

    assert await step("commented", "bo", at=number + 9) == "unknown-deviation"
    assert await step("commented", "bo", text="hm") == f"deviation {number}: open"
    judged = await step("judged", "bo", disposition="true", cause="c", remedy="r")
    assert judged == f"deviation {number}: judged"
    assert [await step("closed", by) for by in ("", "bo")] == ["nobody", "same-person"]
    await person(store, "", demand="identity")
    assert await step("closed", "cy") == "unauthenticated"
    assert await step("closed", "x", who=who("cy")) == f"deviation {number}: closed"
    (closed,) = (await load_deviations(store)).values()
    assert (closed.judged_by, closed.closed_by) == ("bo", "cy")


# --- versions ------------------------------------------------------------------------


async def test_versions_are_released_signed_off_by_another_and_withdrawn() -> None:
    store, clock = MemoryStore(), HandClock()
    given: dict[str, Any] = {"text": "t", "coverage": None, "clock": clock, "who": None}
    programs = {"goal": "hash"}
    made = await release(store, "bank", programs=programs, begin=0.0, end=None, by="Ann", **given)
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
        await sign_off(store, "version_signed_off", {**one, "by": " ann"}, who=None, clock=clock)
    assert code_of(refused) == "author"
    with pytest.raises(UserMistake) as refused:
        await sign_off(store, "version_signed_off", {**one, "by": " "}, who=None, clock=clock)
    assert code_of(refused) == "nobody"
    said = await sign_off(store, "version_signed_off", {**one, "by": "Bo"}, who=None, clock=clock)
    assert said == "version 1 of bank: signed off by Bo"
    await require_released(store, people, "bank", programs, 1.0)
    assert await authors_of(store, {"handbook": "bank", "programs": programs}) == {"ann"}
    assert await authors_of(store, {}) == frozenset()
    gone = await withdraw(store, "version_withdrawn", {**one, "by": "Cy"}, who=None, clock=clock)
    assert gone == "version 1 of bank: withdrawn"
    with pytest.raises(UserMistake):
        await require_released(store, people, "bank", programs, 2000.0)
    await person(store, "", demand="identity")
    with pytest.raises(UserMistake) as refused:
        await withdraw(store, "version_withdrawn", {**one, "by": "Cy"}, who=None, clock=clock)
    assert code_of(refused) == "unauthenticated"
    assert len((await load_versions(store)).of["bank"]) == 2


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


async def test_only_an_administrator_changes_people_once_there_is_one() -> None:
    store, clock = MemoryStore(), HandClock()

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


async def test_only_who_may_changes_what_is_kept_how_long() -> None:
    store, clock = MemoryStore(), HandClock()
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


async def test_what_a_store_demands_of_new_sessions() -> None:
    store, clock = MemoryStore(), HandClock()
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
