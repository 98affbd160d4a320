"""What an attacker tried against people, limits, versions, privacy and bundles, and got."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.integrations.mcp.options import ServerOptions
from sopilot.messages.diagnostic import Diagnostic
from sopilot.messages.errors import StoreCorrupt, UserMistake
from sopilot.protocols import SystemClock
from sopilot.records.log import SealFile
from sopilot.records.people import (
    People,
    Person,
    Principal,
    change_people,
    fold_people,
    issue_token,
    load_people,
)
from sopilot.records.privacy import change_policy, erase_wanted, load_policy, sessions_with
from sopilot.records.sealing import seal_store, verify_store
from sopilot.records.selection import read_condition
from sopilot.records.store import Settings
from sopilot.records.versions import fold_versions
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.signing import generate_key

CLOCK = SystemClock()


def run(*arguments: str, token: str = "") -> Result:
    return CliRunner(env={"SOPILOT_TOKEN": token}).invoke(sopilot, list(arguments))


def code_of(result: Result) -> str:
    assert isinstance(result.exception, UserMistake), result.output
    return result.exception.diagnostics[0].code


def person(name: str, *roles: str, aliases: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"person": name, "roles": list(roles), "aliases": list(aliases), "subjects": []}


# --- limits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", [float("nan"), "nan", "NaN", "-nan"])
def test_what_is_no_number_is_within_no_limit(amount: object) -> None:
    people = People(limits={"supervisor": ("amount<=5000",)})
    assert people.beyond("supervisor", {"amount": amount}) == "amount<=5000"
    assert not read_condition("amount=7").holds({"amount": amount})
    with pytest.raises(UserMistake, match="no number"):
        read_condition("amount<=NaN")


def test_a_limit_that_excludes_asks_for_the_argument_as_well() -> None:
    people = People(limits={"supervisor": ("country!=IR",)})
    assert people.beyond("supervisor", {}) == "country!=IR"
    assert people.beyond("supervisor", {"country": "DE"}) is None


# --- people ---------------------------------------------------------------------------------


def test_a_providers_subjects_are_compared_as_they_are_spelled() -> None:
    sue = Person("Sue", ("supervisor",), subjects=("https://id.example#abc",))
    people = People({"sue": sue, "x": Person("https://id.example#name", ())})
    found = people.of_subject("https://id.example", "abc")
    assert isinstance(found, Principal)
    assert found.name == "Sue"
    for subject in ("ABC", "ａｂｃ", "a\u200bbc", " abc", "name"):
        assert isinstance(people.of_subject("https://id.example", subject), Diagnostic), subject


def test_nobody_is_two_people_and_the_last_administrator_stays() -> None:
    async def tried() -> list[str]:
        store, codes = MemoryStore(), []

        async def change(name: str, details: Mapping[str, Any], who: Principal | None) -> None:
            try:
                await change_people(store, name, details, who=who, clock=CLOCK)
            except UserMistake as problem:
                codes.append(problem.diagnostics[0].code)

        await change("person_added", person("Ada", "administrator"), None)
        issued = {"person": "Ada", "token": "ada", "expires_at": None}
        token = await issue_token(store, "token_issued", issued, who=None, clock=CLOCK)
        ada = (await load_people(store)).of_token(token, 0.0)
        assert isinstance(ada, Principal)
        await change("person_added", person("Mal", "supervisor", aliases=("ＡＤＡ",)), ada)
        await change("person_added", person("ada ", "administrator"), ada)  # herself, anew
        await change("token_revoked", {"token": "ada"}, ada)
        await change("person_removed", {"person": "Ada"}, ada)
        await change("person_added", {**person("Ada", "supervisor"), "anew": True}, ada)
        await change("person_added", person("Mal", "administrator"), None)
        return codes

    last = ["last-administrator"] * 3
    assert asyncio.run(tried()) == ["name-taken", *last, "not-administrator"]


# --- versions -------------------------------------------------------------------------------


def released(version: int, at: float, begin: float) -> tuple[float, str, dict[str, Any]]:
    programs = {"pay": f"hash {version}"}
    said = {"handbook": "till", "by": "Ada", "text": "", "programs": programs, "from": begin}
    return at, "version_released", said


def signed(version: int, at: float) -> tuple[float, str, dict[str, Any]]:
    return at, "version_signed_off", {"handbook": "till", "version": version, "by": "Bo"}


def test_a_session_without_programs_is_no_version() -> None:
    versions = fold_versions([released(1, 0, 0), signed(1, 1)])
    assert versions.objection("till", {"pay": "hash 1"}, 2) is None
    problem = versions.objection("till", {}, 2)
    assert problem is not None
    assert problem.code == "not-released"


def test_a_release_that_nobody_signed_stops_nothing() -> None:
    first, second = {"pay": "hash 1"}, {"pay": "hash 2"}
    entries = [released(1, 0, 0), signed(1, 1), released(2, 10, 5)]
    assert fold_versions(entries).objection("till", first, 20) is None
    entries.append(signed(2, 30))
    versions = fold_versions(entries)
    assert versions.of["till"][0].end == 30  # it held until the other was signed off
    assert versions.objection("till", first, 31) is not None
    assert versions.objection("till", second, 31) is None


def test_an_older_version_signed_late_ends_where_the_newer_begins() -> None:
    versions = fold_versions([released(1, 0, 0), released(2, 1, 50), signed(2, 2), signed(1, 3)])
    one, two = versions.of["till"]
    assert (one.holds_at(10), one.holds_at(60), two.holds_at(60)) == (True, False, True)


# --- privacy --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ['O"Brien', "back\\slash", "two\nlines", "Zo\u0308e", "İpek"])
def test_a_person_is_found_however_their_name_is_spelled(name: str) -> None:
    async def found() -> list[int]:
        store = MemoryStore()
        session = await open_session(store, {}, extra={"customer": {"name": name}})
        await session.user_said(f"I am {name}.")
        await open_session(store, {}, extra={"customer": json.dumps({"name": name})})
        await open_session(store, {})
        return [len(await sessions_with(store, [one])) for one in (name, name.upper(), "nobody")]

    assert asyncio.run(found()) == [2, 2, 0]


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """A store with readers and an administrator; who → token."""
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path}/store.db")
    run("people", "require", "privacy")
    run("privacy", "set", "readers", "reader")
    tokens = {}
    for name, role in (("Rita", "reader"), ("Mo", "clerk"), ("Root", "administrator")):
        token = tokens.get("Root", "")
        assert run("people", "add", name, "--role", role, token=token).exit_code == 0
        tokens[name] = run("people", "token", name, "--name", name, token=token).stdout.strip()
    return tokens


def test_going_on_with_a_session_shows_its_contents_to_readers_alone(
    guarded: Mapping[str, str],
) -> None:
    done = run("run", "bank", "--task", "transfer-rent-share", "--json")
    session = json.loads(done.stdout)["session"]
    refused = run("resume", session, token=guarded["Mo"])
    assert code_of(refused) == "not-entitled"
    assert "anna" not in refused.output
    shown = run("resume", session, token=guarded["Rita"])
    assert "anna" in shown.output
    readings = json.loads(run("privacy", "log", "--json").stdout)["readings"]
    assert [(one["what"], one["by"], one["contents"]) for one in readings] == [
        ("resume", "Mo", False),
        ("resume", "Rita", True),
    ]


def test_where_a_text_stands_is_not_told_to_who_may_not_erase_it(
    guarded: Mapping[str, str],
) -> None:
    wanted = ("privacy", "erase", "--subject", "anna", "--why", "asked for")
    assert code_of(run(*wanted, token=guarded["Mo"])) == "not-entitled"
    assert run(*wanted, token=guarded["Root"]).exit_code == 0


def test_no_byte_of_a_person_stays_in_what_is_written_about_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holds and questions name people; what is erased is erased there as well, or named."""
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path}/store.db")
    run("people", "require", "privacy")
    run("run", "bank", "--task", "transfer-rent-share")
    run("records", "actions", "--where", "username=anna")
    run("privacy", "hold", "anna", "--why", "anna ./. ben")
    wanted = ("privacy", "erase", "--subject", "Anna", "--json", "--why")
    assert list(json.loads(run(*wanted, "request 7").stdout)["held"].values()) == ["anna ./. ben"]
    assert code_of(run("privacy", "lift", "ann")) == "no-hold"
    assert run("privacy", "lift", "anna").exit_code == 0
    assert code_of(run(*wanted, "ANNA asked for it")) == "reason-names-subject"
    done = run(*wanted, "request 7")
    assert (done.exit_code, json.loads(done.stdout)["noted"]) == (0, [])
    kept = b"".join(one.read_bytes() for one in tmp_path.glob("store.db*"))
    assert b"anna" not in kept
    # What people say about the store itself is part of a chain, and is told.
    run("people", "add", "Anna Bell")
    again = run(*wanted, "request 7")
    assert (again.exit_code, json.loads(again.stdout)["noted"]) == (1, ["journal.people"])


def test_a_hold_whose_words_are_gone_is_missed() -> None:
    """Who can write to the database lifts no hold by deleting what it is about."""

    async def tried() -> list[str]:
        store, key = MemoryStore(), generate_key()
        said = {"what": "anna", "why": "a suit"}
        await change_policy(store, "hold_set", said, who=None, clock=CLOCK)
        assert (await load_policy(store)).holds == {"anna": "a suit"}
        seals = SealFile(((await seal_store(store, key, at=1.0)).seal,))
        assert (await verify_store(store, seals, [key.public])).complete
        await store.erase_payloads("journal.privacy", list(await store.payloads("journal.privacy")))
        with pytest.raises(StoreCorrupt, match="legal hold"):
            await load_policy(store)
        return [gap.code for gap in (await verify_store(store, seals, [key.public])).gaps]

    assert asyncio.run(tried()) == ["unreadable-session"]


def test_contents_that_nobody_erased_on_record_are_missed(tmp_path: Path) -> None:
    """Who can write to the database can make a session look erased."""
    key = generate_key()

    async def verified(store: SQLiteStore) -> list[str]:
        sealing = await seal_store(store, key, at=2.0)
        found = await verify_store(store, SealFile((sealing.seal,)), [key.public])
        return [gap.code for gap in found.gaps]

    async def tried() -> list[list[str]]:
        store = SQLiteStore(tmp_path / "s.db")
        ids = []
        for _ in range(2):
            session = await open_session(store, {}, settings=Settings(private=True))
            await session.user_said("I am Anna.")
            await session.release()
            ids.append(session.id)
        told = [await verified(store)]
        await erase_wanted(
            store, subjects=(), session_ids=[ids[0]], due=False, why="asked for", who=None,
            clock=CLOCK,
        )  # fmt: skip
        told.append(await verified(store))
        await store.erase({ids[1]: {**(await store.record(ids[1])).metadata, "erased": 1.0}})
        told.append(await verified(store))
        await store.close()
        return told

    assert asyncio.run(tried()) == [[], [], ["erased-session"]]


def test_no_clients_name_is_that_of_who_comes_without_a_token(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"local {'x' * 40}\n")
    tokens.chmod(0o600)
    with pytest.raises(UserMistake, match="has no token"):
        ServerOptions(source="x", address="127.0.0.1:0", token_file=tokens, lease_seconds=3).http()


def test_people_of_an_earlier_release_are_read_as_they_are() -> None:
    """Two who shared a name before that was refused are still there."""
    both = [person("Ada", "administrator"), person("Mal", aliases=("Ada",))]
    assert len(fold_people(("person_added", one) for one in both).persons) == 2
