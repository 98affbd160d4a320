"""Who is who in a store, what they may decide, and what an attacker made of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from commands import WAITING, ran, refused, shown, token
from counter_desk import ERRANDS, HandClock
from counter_sessions import waiting_wire
from sopilot.integrations.mcp.options import ServerOptions
from sopilot.messages.errors import UserMistake
from sopilot.records.loading import register
from sopilot.records.log import Entry
from sopilot.records.people import (
    People,
    Person,
    Principal,
    change_people,
    fold_people,
    issue_token,
    load_people,
    token_digest,
)
from sopilot.records.selection import Wanted, read_condition, read_moment, register_lines
from sopilot.stores.memory import MemoryStore

WIRE = ERRANDS["wire"]
CLOCK = HandClock()


def person(name: str, *roles: str, aliases: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"person": name, "roles": list(roles), "aliases": list(aliases), "subjects": []}


# --- limits and conditions ------------------------------------------------------------------


@pytest.mark.parametrize("amount", [float("nan"), "nan", "NaN", "-nan"])
def test_what_is_no_number_is_within_no_limit(amount: Any) -> None:
    people = People(limits={"supervisor": ("amount<=5000",)})
    assert people.beyond("supervisor", {"amount": amount}) == "amount<=5000"
    assert not read_condition("amount=7").holds({"amount": amount})


def test_a_limit_that_excludes_asks_for_the_argument_as_well() -> None:
    people = People(limits={"supervisor": ("country!=IR",)})
    assert people.beyond("supervisor", {}) == "country!=IR"
    assert people.beyond("supervisor", {"country": "DE"}) is None


@pytest.mark.parametrize(
    "text",
    [
        "amount<=NaN", "amount<=1e999", "amount>=-Infinity", "amount<<5", "amount<=5,000",
        "amount>>100", "amount==",
    ],
)  # fmt: skip
def test_a_condition_that_nobody_can_mean_is_refused(text: str) -> None:
    with pytest.raises(UserMistake, match=r"finite number|isn't a condition"):
        read_condition(text)


@pytest.mark.parametrize("text", ["9999-12-31", "0001-01-01T00:00:00+14:00", "99999-01-01", "x"])
def test_a_day_that_cannot_be_shown_is_none(text: str) -> None:
    with pytest.raises(UserMistake, match="isn't a date"):
        read_moment(text, whole_day=True)


# --- names ----------------------------------------------------------------------------------


def test_a_providers_subjects_are_compared_as_they_are_spelled() -> None:
    sue = Person("Sue", ("supervisor",), subjects=("https://id.example#abc",))
    people = People({"sue": sue, "x": Person("https://id.example#name", ())})
    found = people.of_subject("https://id.example", "abc")
    assert found.name == "Sue"
    for subject in ("ABC", "ａｂｃ", "a\u200bbc", " abc", "name"):
        with pytest.raises(UserMistake, match="unknown-subject"):
            people.of_subject("https://id.example", subject)


async def test_nobody_is_two_people_and_the_last_administrator_stays() -> None:
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
    await change("person_added", person("Mal", "supervisor", aliases=("ＡＤＡ",)), ada)
    await change("person_added", person("ada ", "administrator"), ada)  # herself, anew
    await change("token_revoked", {"token": "ada"}, ada)
    await change("person_removed", {"person": "Ada"}, ada)
    await change("person_added", {**person("Ada", "supervisor"), "anew": True}, ada)
    for who in (None, Principal("Mal", "token")):
        await change("person_added", person("Mal", "administrator"), who)
    assert codes == ["name-taken", *["last-administrator"] * 3, *["not-administrator"] * 2]


def test_adding_somebody_again_keeps_what_they_are() -> None:
    def sue() -> tuple[list[str], list[str]]:
        (found,) = shown("people", "list")["people"]
        return found["roles"], found["aliases"]

    ran("people", "add", "Sue", "--role", "supervisor", "--alias", "s.huber")
    ran("people", "add", "SUE", "--role", "auditor")
    assert sue() == (["supervisor", "auditor"], ["s.huber"])
    ran("people", "add", "Sue", "--role", "clerk", "--anew")
    assert sue() == (["clerk"], [])


def test_a_token_belongs_to_a_known_person_under_a_new_name() -> None:
    token("Sue")
    assert refused("people", "token", "Mal", "--name", "new") == "unknown-person"
    assert refused("people", "token", "Sue", "--name", " SUE") == "token-exists"


@pytest.mark.parametrize(
    "words", [("",), (" \u200b",), ("Sue", "--role", ""), ("Sue", "--alias", " ")]
)
def test_nobody_has_an_empty_name(words: tuple[str, ...]) -> None:
    assert refused("people", "add", *words) == "empty-name"
    assert shown("people", "list")["people"] == []


def test_who_was_removed_and_comes_back_has_no_token_of_before() -> None:
    issued = {"person": "Sue", "token": "t", "sha256": token_digest("sop_x")}
    found = fold_people(
        [
            Entry(0, 0.0, "person_added", person("Sue", "boss")),
            Entry(1, 0.0, "token_issued", issued),
            Entry(2, 0.0, "person_removed", {"person": "sue"}),
            Entry(3, 0.0, "person_added", person("Sue", "boss")),
        ]
    )
    with pytest.raises(UserMistake, match="revoked-token"):
        found.of_token("sop_x", 0.0)


def test_no_clients_name_is_that_of_who_comes_without_a_token(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"local {'x' * 40}\n")
    tokens.chmod(0o600)
    with pytest.raises(UserMistake, match="without a token"):
        ServerOptions(source="x", address="127.0.0.1:0", token_file=tokens, lease_seconds=3).http()


# --- decisions ------------------------------------------------------------------------------


async def test_a_rejected_call_was_approved_by_nobody() -> None:
    store = MemoryStore()
    session = await waiting_wire(store, clock=CLOCK)
    lines = "\n".join(register_lines(await register(store, Wanted()), 9, ()))
    assert "held, waits for people" in lines
    await session.decide("approve", "w", by="Sue", role="supervisor")
    await session.decide("reject", "w", by="Ada", role="auditor")
    (entry,) = (await register(store, Wanted(action="wire"))).entries(None)
    assert entry.approvers == ()
    assert [one["decision"] for one in entry.decisions] == ["approve", "reject"]


def test_where_identity_is_demanded_a_run_waits_for_people(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It doesn't break off."""
    ran("people", "add", "Sue", "--role", "supervisor")
    ran("people", "require", "identity")
    assert refused("handbooks", "release", "bank", "--as", "Ada") == "unauthenticated"
    monkeypatch.setenv("SOPILOT_TOKEN", ran("people", "token", "Sue", "--name", "desk").split()[-1])
    waits = ran("run", "bank", "--task", "wire-rent-lyon", code=WAITING)
    assert "neither `--approve` nor a scenario's `approvals` can" in waits
    assert "waiting" in waits
