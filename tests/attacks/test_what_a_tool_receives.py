"""The guard judges what the tool receives, after whatever a framework does to the arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")

from every_interface import reply_of
from framework_agents import EVERY_FRAMEWORK, FrameworkAgent, LangChainAgent
from langchain_core.tools import StructuredTool
from pydantic import AfterValidator, BaseModel, Field, field_validator
from scripted_moves import ENTER, Move, Script, call, say, start

from small_desks import programs_of
from sopilot.agent.approvers import Operator
from sopilot.handbook.reader import load_handbook
from sopilot.machine.call_ledger import HeldCall
from sopilot.messages.errors import UserMistake
from sopilot.records.entitlements import Vote
from sopilot.runner.hook import ProcedureHook
from sopilot.runner.tools import as_tools
from sopilot.stores.memory import MemoryStore
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS

HANDBOOK = """
handbook: payees
actions:
  read_list: {input: {}}
  pay:
    input: {payee: string, amount: {type: number, required: false}}
    irreversible: true
  wipe: {input: {}, offered: false}
predicates:
  listed(payee):
    says: The payee {payee} is on the list.
    verify: read_list()
    verdict: payee in result.names
  small(amount):
    says: The amount {amount} is small.
    verify: arguments
    verdict: amount == null || amount < 100
procedures:
  pay:
    requires: {all: [{not: listed(payee)}, small(amount)]}
"""

Tools = Mapping[str, Callable[..., str]]


class Books:
    """The simulated system: what was paid, to whom, and what it was wiped of."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, float]] = []
        self.wiped = False

    def read_list(self) -> str:
        """Reads the list."""
        return json.dumps({"names": ["mallory"]})

    def wipe(self) -> str:
        """Wipes it."""
        self.wiped = True
        return "wiped"

    def lowering(self) -> Tools:
        """The tool lower-cases its payee, and pays 500 where nobody says how much."""

        def pay(payee: Annotated[str, AfterValidator(str.lower)], amount: float = 500) -> str:
            """Pays."""
            self.paid.append((payee, amount))
            return "paid"

        return {"read_list": self.read_list, "pay": pay, "wipe": self.wipe}

    def renaming(self) -> Tools:
        """The tool takes whole euros, under another name."""

        def pay(payee: str, amount: Annotated[int | None, Field(alias="euros")] = None) -> str:
            """Pays."""
            self.paid.append((payee, amount or 0))
            return "paid"

        return {"read_list": self.read_list, "pay": pay, "wipe": self.wipe}


Drive = type[FrameworkAgent]


async def driven(
    framework: Drive,
    tools: Tools,
    *moves: Move,
    operator: Operator | None = None,
    text: str = HANDBOOK,
    **own: Any,
) -> tuple[Script, ProcedureHook]:
    """``own`` are tools of the framework in place of functions."""
    script = Script(moves)
    hook = await ProcedureHook.open(
        MemoryStore(), briefing_of(text), VIEWS["pg"], operator=operator
    )
    made = [own.get(name) or framework.tool(function, name) for name, function in tools.items()]
    await framework(hook, made, reply_of(script)).say("Please.")
    await hook.close()
    return script, hook


def briefing_of(text: str = HANDBOOK) -> Briefing:
    handbook = load_handbook(text, "payees.yaml")
    programs = programs_of(handbook)
    return Briefing(handbook, programs)


def proven(payee: str, *act: Move, **amount: JSON) -> tuple[Move, ...]:
    checked = (ENTER, call("read_list"), say(False, "read_list"), ENTER, say(True))
    return (start("pay", payee=payee, **amount), *checked, *act)


def recorded(hook: ProcedureHook) -> list[Mapping[str, JSON]]:
    return [
        one.payload["arguments"]
        for one in hook.session.own_events
        if one.kind == "domain_call" and one.payload["action"] == "pay"
    ]


@EVERY_FRAMEWORK
async def test_a_payee_that_validation_turns_into_another_is_not_paid(framework: Drive) -> None:
    books = Books()
    act = call("pay", payee="MALLORY", amount=5)
    script, _ = await driven(framework, books.lowering(), *proven("MALLORY", act, amount=5))
    assert books.paid == []
    assert script.answers[-1].startswith("Not called: "), script.answers[-1]


@EVERY_FRAMEWORK
async def test_what_is_proven_paid_and_recorded_is_one(framework: Drive) -> None:
    books = Books()
    act = call("pay", payee="BOB", amount="5")
    script, hook = await driven(framework, books.lowering(), *proven("bob", act, amount=5))
    assert books.paid == [("bob", 5)], script.answers
    assert recorded(hook) == [{"payee": "bob", "amount": 5}]


@EVERY_FRAMEWORK
async def test_a_default_of_the_tool_is_judged(framework: Drive) -> None:
    books = Books()
    script, _ = await driven(framework, books.lowering(), *proven("bob", call("pay", payee="bob")))
    assert books.paid == []
    assert script.answers[-1].startswith("Not called: "), script.answers[-1]


@EVERY_FRAMEWORK
async def test_an_alias_carries_nothing_past_the_guard(framework: Drive) -> None:
    books = Books()
    act = call("pay", payee="bob", euros=5000)
    script, _ = await driven(framework, books.renaming(), *proven("bob", act))
    assert all(amount < 100 for _, amount in books.paid), script.answers


@EVERY_FRAMEWORK
async def test_what_is_not_offered_is_not_called(framework: Drive) -> None:
    books = Books()
    script, _ = await driven(framework, books.lowering(), call("wipe"))
    assert not books.wiped
    assert "there is no tool `wipe`" in script.answers[-1]


class Amends:
    async def decide(self, held: HeldCall) -> list[Vote]:
        other = {**held.arguments, "payee": "MALLORY"}
        return [
            Vote("amend", "Kim", held.roles[0], arguments=other),
            Vote("approve", "Kim", held.roles[0]),
        ]


@EVERY_FRAMEWORK
async def test_what_people_amend_reaches_the_tool_as_they_wrote_it_or_not_at_all(
    framework: Drive,
) -> None:
    books = Books()
    act = call("pay", payee="bob", amount=5)
    text = HANDBOOK.replace("irreversible: true", "irreversible: true\n    approval: boss")
    await driven(
        framework, books.lowering(), *proven("bob", act, amount=5), operator=Amends(), text=text
    )
    assert ("mallory", 5) not in books.paid


class Lowered(BaseModel):
    payee: str
    amount: float = 5

    @field_validator("payee")
    @classmethod
    def lower(cls, value: str) -> str:
        return value.lower()


@pytest.mark.parametrize("payee", ["MALLORY", "BOB"])
async def test_a_validator_of_a_schema_is_seen(payee: str) -> None:
    books = Books()

    def pay(payee: str, amount: float) -> str:
        books.paid.append((payee, amount))
        return "paid"

    own = StructuredTool.from_function(pay, description="Pays.", args_schema=Lowered)
    act = call("pay", payee=payee, amount=5)
    moves = proven(payee.lower() if payee == "BOB" else payee, act, amount=5)
    await driven(LangChainAgent, books.lowering(), *moves, pay=own)
    assert books.paid == ([("bob", 5)] if payee == "BOB" else [])


def test_a_plain_function_has_no_default_that_nobody_judges() -> None:
    actions = load_handbook(HANDBOOK, "payees.yaml").actions

    def read_list() -> str:
        return ""

    def pay(payee: str, amount: float = 500) -> str:
        return ""

    with pytest.raises(
        UserMistake, match="`amount` of `pay` is optional, and 500 if it is left out"
    ):
        as_tools([read_list, pay], actions)
