"""Every attack by a LangChain agent whose own tools stand behind the middleware; and around it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")

from attack_table import CASES, VIEWS_WITH_A_MACHINE, assert_done, assert_held
from attacks_on_evidence import READ_AGAIN
from attacks_on_values import BALANCE, COVERED
from langchain_agent import follow
from scripted_moves import Case, Move, RecordingTools, Script, call, start

from sopilot.agent.approvers import Operator, Vote
from sopilot.machine.approvals import HeldCall
from sopilot.messages.errors import UserMistake
from sopilot.runner.conversation import ProcedureHook
from sopilot.stores.memory import MemoryStore
from sopilot.values.json import JSON
from sopilot.views.catalogue import VIEWS

# The scripts move the program with the long bookkeeping tool, which other views don't have.
VIEWS_HOOKED = [
    name for name in VIEWS_WITH_A_MACHINE if VIEWS[name].has_steps and not VIEWS[name].short_step
]
PLACES = [
    *(("pg", case) for case in CASES),
    *(
        (view, case)
        for view in VIEWS_HOOKED
        for case in CASES
        if view != "pg" and case.number >= 11
    ),
]
EVERYWHERE = pytest.mark.parametrize(
    ("view", "case"), PLACES, ids=[f"{view} {case.id}" for view, case in PLACES]
)


def hooked(
    case: Case,
    script: Script,
    view: str = "pg",
    *,
    at_once: Sequence[Move] = (),
    operator: Operator | None = None,
) -> RecordingTools:
    tools = RecordingTools(case)

    async def run() -> None:
        hook = await ProcedureHook.open(
            MemoryStore(), case.briefing(), VIEWS[view], operator=operator, reader=tools
        )
        await follow(hook, script, tools, at_once)
        await hook.close()

    asyncio.run(run())
    return tools


@EVERYWHERE
def test_an_attack_is_held(case: Case, view: str) -> None:
    script = Script(case.attack)
    assert_held(case, VIEWS[view], script, hooked(case, script, view))


@EVERYWHERE
def test_its_honest_twin_goes_through(case: Case, view: str) -> None:
    script = Script(case.twin)
    assert_done(case, script, hooked(case, script, view))


(BALANCES,) = (case for case in CASES if case.handbook == BALANCE and case.number == 6)
TRANSFER: dict[str, JSON] = {"user": "ann", "amount": 80, "to": "x"}
CHECKED = (start("transfer", **TRANSFER), *COVERED)
ACT = call("transfer", **TRANSFER)


def test_acts_in_one_message_are_one() -> None:
    """The framework makes them at the same time."""
    script = Script(CHECKED)
    tools = hooked(BALANCES, script, at_once=(ACT, ACT, ACT))
    assert tools.carried_out == [("transfer", TRANSFER)]
    assert sum(answer.startswith("Not called: ") for answer in script.answers) == 2


def _with(case: Case, what: str) -> Case:
    guarded = case.handbook.replace("irreversible: true", f"irreversible: true, {what}")
    return Case(6, what, guarded, case.answers, (), (), (), ())


def test_a_hook_that_cannot_read_again_is_refused() -> None:
    """It has only the call that it wraps: it would carry the act out in order to check it."""

    async def run() -> None:
        await ProcedureHook.open(MemoryStore(), READ_AGAIN.briefing(), VIEWS["pg"])

    with pytest.raises(UserMistake, match="`transfer` has `recheck`"):
        asyncio.run(run())


class Lowers:
    async def decide(self, held: HeldCall) -> Sequence[Vote]:
        lower = {**held.arguments, "amount": 10}
        return [
            Vote("amend", "Kim", held.roles[0], arguments=lower),
            Vote("approve", "Kim", held.roles[0]),
        ]


def test_what_the_approver_amended_is_what_is_carried_out() -> None:
    script = Script((*CHECKED, ACT))
    tools = hooked(_with(BALANCES, "approval: boss"), script, operator=Lowers())
    assert tools.carried_out == [("transfer", {**TRANSFER, "amount": 10})]
