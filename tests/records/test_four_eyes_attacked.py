"""Four eyes against somebody who has read the rules: by amending, and by spelling."""

from __future__ import annotations

import asyncio
import unicodedata
from dataclasses import replace

import pytest
from test_four_eyes import WIRE, office

from sopilot.files.sign_in import sign_in
from sopilot.machine.approvals import HeldState
from sopilot.machine.state import CallRecord, Configuration
from sopilot.records.people import People, load_people, no_witness, objection
from sopilot.session.decisions import decide_or_leave
from sopilot.values.json import JSON, look_the_same, same_name


@pytest.mark.parametrize("payee", ["Sue", "ＳＵＥ", "s.upervisor"])
async def test_nobody_amends_a_call_to_their_own_favour(payee: str) -> None:
    """An amendment is an approval: who is meant in what they make of a call is a party to it."""

    here = await office()
    wire = await here.wire()
    own = {**WIRE, "username": payee}
    assert await here.vote(wire, "Sue-1", "supervisor", "amend", arguments=own) == "party"
    assert await here.vote(wire, "Ada-1", "auditor", "amend", arguments=own) == "waiting"
    assert await here.vote(wire, "Sue-1", "supervisor") == "party"


async def test_an_approval_that_was_left_is_for_the_arguments_that_were_seen() -> None:
    """Whoever runs the session takes up an amendment first that nobody else could see yet."""

    here = await office()
    wire = await here.wire()
    more = {**WIRE, "amount": 9_000}
    votes: list[tuple[str, str, str, dict[str, JSON] | None]] = [
        ("amend", "Ada-1", "auditor", more),
        ("approve", "Sue-1", "supervisor", None),
    ]
    for decision, token, role, arguments in votes:
        who = await sign_in(here.store, here.tokens[token], clock=here.clock)
        shown, _, left = await decide_or_leave(
            here.store, wire.id, decision, "w", by="", role=role, arguments=arguments, who=who,
            clock=here.clock,
        )  # fmt: skip
        assert left
        assert shown.arguments["amount"] == WIRE["amount"]  # what they saw
    await wire.take_decisions()
    held = wire.ledger.held["w"]
    assert held.arguments["amount"] == 9_000
    assert [one.by for one in held.rulings] == ["Ada"]
    assert held.state is HeldState.WAITING
    refused = [one.event.payload for one in wire.events if one.event.kind == "note"]
    assert refused[-1]["details"]["code"] == "amended-since"


@pytest.mark.parametrize(
    "given",
    [
        {"to": {"Nora": 100}},
        {"payer": 4711.0},
        {"payer": "٤٧١١"},
        {"payer": "N\u3164ora"},
        {"payer": "No\u034fra"},
        {"payer": "Nora\ufe0f"},
        {"payer": "N\x08ora\x00"},
    ],
    ids=ascii,
)
def test_a_customer_is_known_by_name_however_it_is_written(given: dict[str, JSON]) -> None:
    async def code() -> str:
        here = await office()
        wire = await here.wire()
        await here.add("Nora", "supervisor", aliases=("4711",))
        held = replace(wire.ledger.held["w"], arguments=given)
        problem, _ = objection(
            await load_people(here.store), wire.metadata, wire.configuration, held, "approve",
            by="Nora", role="supervisor", arguments=None, who=None, at=0.0,
        )  # fmt: skip
        return "" if problem is None else problem.code

    assert asyncio.run(code()) == "party"


def test_who_wrote_the_rules_does_not_say_how_a_call_ended() -> None:
    pending = CallRecord(3, "c", "wire", {"to": "una"}, None, 1)
    found = no_witness(People(), {}, Configuration(), pending, "ＡＤＡ", None, {"ada"})
    assert found is not None
    assert found.code == "party"


def test_capitals_and_forms_of_any_letter_are_one_name() -> None:
    """Greek letters come apart when they are folded, Turkish ones keep a dot."""
    letters = [*map(chr, range(0x20, 0x2100)), "ﬃ", "Ａ", "ﾊ\uff9e"]
    for letter in letters:
        name = f"a{letter}b"
        for case in (name, name.upper(), name.lower(), name.title()):
            for form in ("NFC", "NFD", "NFKC", "NFKD"):
                assert same_name(unicodedata.normalize(form, case)) == same_name(name), ascii(name)


def test_what_a_screen_leaves_out_makes_no_other_text() -> None:
    for sign in ("\u200b", "\u034f", "\u3164", "\uffa0", "\ufe0f", "\u115f", "\x07", "\U000e0101"):
        assert look_the_same("Ada", f"A{sign}da"), ascii(sign)
        assert same_name(f"A{sign}da") == "ada", ascii(sign)
    assert not look_the_same("a\nb", "ab")
