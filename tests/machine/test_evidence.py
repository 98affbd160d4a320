"""What a verdict stands on."""

from __future__ import annotations

import pytest
from vm_programs import PROGRAMS, program
from vm_runs import ARGUMENTS, Run, in_rule, logged_in

from small_desks import WALLET, AnsweringTools, programs_of
from sopilot.machine.automation import Automation
from sopilot.program.model import (
    Act,
    Check,
    CompleteStep,
    FailStep,
    Function,
    Kind,
    ReturnStep,
)
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import REUSE, BindEvidence, Call, DomainCall, Return, Start
from sopilot.values.json import JSON


def test_citations_by_number_call_and_name() -> None:
    run = in_rule()
    first = run.tool("read_balance", username="bob")
    second = run.tool("read_ledger")
    event = run.ok(Return(True, (f"#{first}", f"{second - 1}", "read_ledger", "#999", "x")))
    cited = event.events[0].payload["bound"]
    assert cited["evidence"] == [first, second]
    assert cited["unresolved"] == ["#999", "x"]
    assert cited["earlier"] == []


def test_only_a_fresh_success_of_the_same_call_is_taken_over() -> None:
    run = in_rule()
    stale = run.tool("read_balance", username="bob")
    run.ok(Return(True))
    run.ok(Call())
    run.tool("transfer", **ARGUMENTS)
    assert run.no(BindEvidence(stale)) == "stale-result"
    fresh = in_rule()
    seqs = [
        fresh.tool("read_balance", ok=ok, username=who)
        for ok, who in ((False, "bob"), (True, "eve"), (True, "bob"))
    ]
    fresh.ok(Return(True))
    fresh.ok(Call())
    assert fresh.no(BindEvidence(seqs[0])) == "stale-result"
    assert fresh.no(BindEvidence(seqs[1])) == "other-call"
    assert fresh.no(BindEvidence(1)) == "no-such-result"
    fresh.ok(BindEvidence(seqs[2]))
    assert fresh.place.endswith("overdraft@limit")


def test_citations_that_name_nothing_are_told_where_one_judges() -> None:
    run = Run(PROGRAMS)
    assert run.machine.unresolved(run.configuration, ["#1"]) == ()
    run = logged_in()
    assert run.machine.unresolved(run.configuration, ["#1"]) == ()  # nothing is judged here
    run.ok(Call())
    run.ok(Call())
    seq = run.tool("read_balance", {"balance": 120}, username="bob")
    cited = [str(seq), "the moon"]
    assert run.machine.unresolved(run.configuration, cited) == ("the moon",)
    assert run.machine.unresolved(run.configuration, []) == ()


def test_what_the_goal_action_answered_is_no_evidence_from_before_it() -> None:
    """Though a rule looks by the same action: what it says is how things were."""
    paid = Function("paid", Kind.RULE, (), (Act("look", "pay"), ReturnStep("judge")))
    steps = (
        Act("act", "pay", goal=True),
        Check("first", "paid", (), "paid", unmet="no"),
        CompleteStep("yes"),
        FailStep("no"),
    )
    run = Run({"go": program("go", Function("go", Kind.PROCESS, (), steps), paid)})
    run.ok(Start("go"))
    run.tool("look")
    seq = run.tool("pay")
    assert run.configuration.goal_seq == seq
    run.ok(Call())
    run.automate(Automation(bind_evidence=True))
    assert run.place == "go/paid@look"
    assert run.no(BindEvidence(seq)) == "stale-result"


CARD_DESK = programs_of(
    WALLET.replace(
        "{requires: all_valid(user)}", "{requires: [all_valid(user), second_valid(user)]}"
    )
)
CARDS: JSON = {"cards": [{"number": 1}, {"number": 2}]}
VALID: JSON = {"valid": True}


def wanted(run: Run) -> tuple[JSON, JSON]:
    shape = run.machine.fits(run.configuration)[0]
    return shape["action"], shape["arguments"]


def in_wallet() -> tuple[Run, list[int]]:
    """In the first rule, with the answers to all its calls."""
    run = Run(CARD_DESK)
    run.ok(Start("pay", {"user": "ann"}))
    run.ok(Call())
    seqs = [run.tool("list_cards", CARDS, user="ann")]
    return run, [*seqs, *(run.tool("read_card", VALID, number=number) for number in (2, 1))]


def test_a_call_that_looks_into_an_answer_is_asked_for_once_it_is_there() -> None:
    run = Run(CARD_DESK)
    run.ok(Start("pay", {"user": "ann"}))
    run.ok(Call())
    asking = run.place
    for given in ({}, {"user": "eve"}):
        run.tool("list_cards", CARDS, **given)
        assert (run.place, wanted(run)) == (asking, ("list_cards", {"user": "ann"}))
    assert run.machine.fits(run.configuration)[0]["missing"] == []
    listed = run.tool("list_cards", CARDS, user="ann")
    reading = run.place
    assert reading != asking
    seqs = []
    calls = ((1, 3, True), (1, 2, False), (1, 1, True), (2, 1, True), (2, 2, True))
    for wants, number, ok in calls:
        assert (run.place, wanted(run)) == (reading, ("read_card", {"number": wants}))
        seqs.append(run.tool("read_card", VALID, ok, number=number))
    assert run.place != reading
    bound = run.ok(Return(True)).events[0].payload["bound"]
    assert bound["evidence"] == [listed, *seqs[1:]]


def test_an_empty_list_asks_for_nothing() -> None:
    run = Run(CARD_DESK)
    run.ok(Start("pay", {"user": "ann"}))
    run.ok(Call())
    run.tool("list_cards", {"cards": []}, user="ann")
    assert run.machine.fits(run.configuration)[0]["operation"] == "return"


@pytest.mark.parametrize("changed", ["", "a failure", "a call under way"])
def test_answers_of_a_linked_recipe_are_taken_over_while_they_are_new(changed: str) -> None:
    run, seqs = in_wallet()
    run.ok(Return(True))
    run.ok(Call())
    if changed == "a failure":
        run.tool("list_cards", ok=False, user="ann")
    elif changed:
        run.ok(DomainCall("late", "list_cards", {"user": "ann"}))
    run.automate(Automation(bind_evidence=True))
    taken = [event.payload["result"] for event in run.events if event.kind == REUSE]
    assert taken == ([] if changed else seqs[:2])


JUDGED = """
handbook: pay-desk
actions:
  read_user: {input: {user: string}, read_only: true}
  login: {input: {user: string}, changes: []}
  pay: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  rich(user): {says: rich, verify: read_user(user), verdict: result.rich}
  wise(user): {says: wise, verify: read_user(user), judged_by: model}
  known(user): {says: known, established_by: login(user)}
procedures:
  pay: {requires: CHECK(user)}
"""


@pytest.mark.parametrize(
    ("check", "read", "says", "grade"),
    [
        ("rich", True, True, "proven"),
        ("rich", True, False, "claimed"),
        ("rich", False, True, "claimed"),
        ("rich", False, None, None),
        ("wise", True, True, "attested"),
        ("wise", True, False, "attested"),
        ("wise", False, True, "claimed"),
        ("known", True, True, "proven"),
        ("known", False, True, "claimed"),
        ("known", False, False, "proven"),
    ],
)
async def test_a_verdict_is_graded_by_what_it_rests_on(
    check: str, read: bool, says: bool | None, grade: str | None
) -> None:
    tools = AnsweringTools(lambda *_: {"rich": True})
    session = await open_session(
        MemoryStore(), programs_of(JUDGED.replace("CHECK", check)), tools=tools
    )
    await session.operate(Start("pay", {"user": "ann"}))
    await session.operate(Call())
    if read:
        action = "login" if check == "known" else "read_user"
        await session.call_tool(action, {"user": "ann"}, "c")
    returned = (await session.operate(Return(says))).events[0]
    assert returned.payload.get("grade") == grade
