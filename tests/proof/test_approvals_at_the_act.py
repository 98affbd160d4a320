"""P14: an approval covers the facts, the arguments and the request that people saw."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attack_desk import (
    ACCOUNT,
    VIEWS_WITH_A_MACHINE,
    AttackDesk,
    errors,
    open_desk,
    till,
    till_desk,
)

from small_desks import WALLET
from sopilot.session import admission
from sopilot.trace.events import Complete, Fail, JudgeCheck
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallStatus

HANDBOOK = """
handbook: orders
actions:
  by_mail: {input: {email: string}, changes: []}
  by_phone: {input: {number: string}, changes: []}
  withdraw: {input: {amount: number}}
  read_balance: {input: {customer: string}}
  cancel: {input: {customer: string}, irreversible: true}
predicates:
  mailed(customer):
    says: The customer {customer} was found by mail.
    established_by: by_mail(email)
    verdict: result.customer == customer
    principal: true
  phoned(number):
    says: Somebody with the number {number} is on the line.
    established_by: by_phone(number)
    principal: true
  covered(customer):
    says: The balance of {customer} covers the fee.
    verify: read_balance(customer)
    verdict: result.balance > 100
procedures:
  cancel: {requires: [mailed(customer), covered(customer)]}
"""
CUSTOMERS = {"a@x": "anna", "11": "anna", "22": "bob"}
Call = tuple[str, dict[str, JSON]]
BEFORE_AND_AFTER: list[tuple[Call, Call]] = [
    (("by_phone", {"number": "11"}), ("by_phone", {"number": "22"})),
    (("withdraw", {"amount": 10}), ("withdraw", {"amount": 480})),
    (("withdraw", {"amount": 10}), ("withdraw", {"amount": 10})),
]


class Counter:
    """Who is on the line, and what the account holds."""

    def __init__(self) -> None:
        self.customer = ""
        self.balance = 500.0
        self.cancelled: list[tuple[str, float]] = []

    def answer(self, name: str, arguments: Mapping[str, JSON]) -> JSON:
        if name == "withdraw":
            self.balance -= float(str(arguments["amount"]))
        elif name == "read_balance":
            return {"balance": self.balance}
        elif name == "cancel":
            self.cancelled.append((self.customer, self.balance))
        else:
            (key,) = arguments.values()
            self.customer = CUSTOMERS[str(key)]
            return {"customer": self.customer}
        return {"done": True}


async def _approved(counter: Counter, view: str, first: Call) -> AttackDesk:
    """A person approved the call, in the state of things after ``first``."""
    desk = await open_desk(HANDBOOK, counter.answer, view)
    await desk.start("cancel", customer="anna")
    await desk.call("by_mail", email="a@x")
    await desk.push({"by_mail": {"email": "a@x"}, "read_balance": {"customer": "anna"}})
    await desk.call(first[0], **first[1])
    await desk.call("cancel", customer="anna")
    (request,) = desk.session.held_calls
    await desk.session.decide("approve", request.call_id, by="sue", role="operator")
    return desk


@pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)
@pytest.mark.parametrize(("before", "after"), BEFORE_AND_AFTER)
async def test_an_approval_of_an_undecided_check_ends_with_the_next_change(
    view: str, before: Call, after: Call
) -> None:
    counter = Counter()
    desk = await _approved(counter, view, before)
    await desk.call(after[0], **after[1])
    answer = await desk.call("cancel", customer="anna")
    assert answer.status is CallStatus.HELD, answer
    assert counter.cancelled == []


@pytest.mark.parametrize("before", [one for one, _ in BEFORE_AND_AFTER[:2]])
async def test_an_approval_serves_the_state_of_things_that_it_was_given_in(before: Call) -> None:
    counter = Counter()
    desk = await _approved(counter, VIEWS_WITH_A_MACHINE[0], before)
    await desk.done("cancel", customer="anna")
    assert counter.cancelled == [("anna", counter.balance)]
    assert _blamed(desk) == []


@pytest.mark.parametrize(("before", "after"), BEFORE_AND_AFTER)
async def test_the_audit_blames_a_guard_that_overlooks_the_change(
    before: Call, after: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_same_facts", lambda *_: True)

    counter = Counter()
    desk = await _approved(counter, VIEWS_WITH_A_MACHINE[0], before)
    await desk.call(after[0], **after[1])
    await desk.done("cancel", customer="anna")
    assert len(counter.cancelled) == 1
    assert _blamed(desk) != []


def _blamed(desk: AttackDesk) -> list[str]:
    """Errors about the guarded call: of calls that no program asks for the audit says so, too."""
    return [code for code in errors(desk) if code != "unlicensed-call"]


async def test_an_amended_call_is_what_the_process_is_about() -> None:
    desk = await open_desk(ACCOUNT, lambda *_: {"balance": 300})
    await desk.start("pay", user="a", amount=500)
    await desk.push({"read_account": {"user": "a"}})
    await desk.held("pay", "`covered` must be true, but is false", user="a", amount=500)
    (held,) = desk.session.held_calls
    assert (await desk.amended(held.call_id, user="a", amount=200)).status is CallStatus.DONE
    assert (await desk.call("pay", user="a", amount=500)).status is CallStatus.HELD
    assert (await desk.session.operate(Complete())).accepted
    assert desk.made("pay") == [{"user": "a", "amount": 200}]


async def test_an_amendment_that_changes_nothing_is_no_dead_end_for_a_later_process() -> None:
    """An approval of an unproven call counts for its own process: people are asked anew."""
    desk = await open_desk(ACCOUNT, lambda *_: {"balance": 300})
    values: dict[str, JSON] = {"user": "a", "amount": 500}
    for attempt in (1, 2):
        await desk.start("pay", **values)
        await desk.push({"read_account": {"user": "a"}})
        await desk.held("pay", "`covered` must be true, but is false", **values)
        request = desk.session.held_calls[-1]
        assert (len(desk.session.held_calls), request.approvals) == (attempt, 0)
        await desk.session.decide(
            "amend", request.call_id, by="Clara", role=request.roles[0], arguments=values
        )
        if attempt == 1:
            assert (await desk.session.operate(Fail("not now"))).accepted
    assert (await desk.call("pay", **values)).status is CallStatus.DONE
    assert desk.made("pay") == [values]


AMENDED = """
handbook: amended
actions:
  look_up: {input: {user: string}}
  send:
    input: {amount: number, user: {type: string, required: false}}
    irreversible: true
    approval: supervisor
predicates:
  known(user):
    says: The customer {user} is known.
    verify: look_up(user)
    verdict: result.known
procedures:
  send: {requires: known(user)}
  send_five: {action: send(amount=5), requires: known(user)}
"""


@pytest.mark.parametrize(
    ("goal", "amended", "says"),
    [
        ("send", {"amount": 5}, "`user` has no value"),
        ("send", {"amount": 5, "user": "eve"}, "`known` must be true"),
        ("send_five", {"amount": 5000, "user": "ann"}, "`amount` is fixed to 5"),
    ],
    ids=["left out", "somebody else", "a fixed input"],
)
async def test_an_amendment_is_proven_anew(goal: str, amended: dict[str, JSON], says: str) -> None:
    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"known": given.get("user") == "ann"}

    desk = await open_desk(AMENDED, answers)
    values = {"user": "ann"} if goal == "send_five" else {"user": "ann", "amount": 5}
    await desk.start(goal, **values)
    await desk.push({"look_up": {"user": "ann"}})
    waiting = await desk.call("send", user="ann", amount=5)
    assert waiting.held is not None
    assert not waiting.held.why
    answer = await desk.amended(waiting.call_id, "supervisor", **amended)
    assert answer.status is CallStatus.HELD
    assert says in answer.problem
    assert not desk.made("send")


TWICE = """
handbook: x
actions:
  look_up: {input: {user: string}}
  move:
    input:
      owner: string
      to: {type: string, required: false}
      why: string
    irreversible: true
    approval: boss
predicates:
  fine(user): {says: fine, verify: look_up(user), verdict: result.fine}
procedures:
  move:
    requires: fine(friend)
    action: move(owner=friend, to=friend, why="a gift")
"""
MOVE = {"owner": "u", "to": "u", "why": "a gift"}


@pytest.mark.parametrize(
    ("amended", "runs"),
    [
        (MOVE, True),
        ({**MOVE, "owner": "w", "to": "w"}, True),
        ({"owner": "u", "why": "a gift"}, False),
        ({**MOVE, "to": "w"}, False),
        ({**MOVE, "owner": "w"}, False),
        ({**MOVE, "why": "a loan"}, False),
    ],
)
async def test_an_amendment_is_the_act_of_the_procedure(
    amended: dict[str, JSON], runs: bool
) -> None:
    desk = await open_desk(TWICE, lambda name, given: {"fine": True})
    await desk.call("look_up", user="w")
    await desk.start("move", friend="u")
    await desk.push({"look_up": {"user": "u"}})
    session = desk.session
    held = (await desk.call("move", **MOVE)).held
    assert held is not None
    answer = await desk.amended(held.call_id, "boss", **amended)
    assert answer.status is (CallStatus.DONE if runs else CallStatus.HELD)
    assert bool(desk.made("move")) is runs
    if runs:
        await session.operate(Complete())
    assert errors(desk) == []


THEIRS = """
handbook: x
actions:
  read_booking: {input: {booking: string}}
  pay:
    input: {user: string, amount: number}
    irreversible: true
    approval: {roles: [clerk, manager], needed: 2, when: amount > 1000}
predicates:
  theirs(user, booking):
    {says: theirs, verify: read_booking(booking), verdict: result.owner == user}
procedures:
  pay: {inputs: {booking: string}, requires: "theirs(user, booking)"}
"""


async def test_what_people_make_of_a_call_needs_as_many_of_them() -> None:
    desk = await open_desk(THEIRS, lambda name, given: {"owner": "eve"})
    await desk.start("pay", user="a", amount=100, booking="b1")
    await desk.push({"read_booking": {"booking": "b1"}})
    await desk.call("pay", user="a", amount=100)
    (held,) = desk.session.held_calls
    answer = await desk.amended(held.call_id, "clerk", user="a", amount=50_000)
    assert answer.status is CallStatus.HELD
    assert not desk.made("pay")


@pytest.mark.parametrize(("judged", "served"), [(None, True), (True, True), (False, False)])
async def test_an_approval_ends_when_a_model_judges_otherwise(
    judged: bool | None, served: bool
) -> None:
    """What it said at first rests on nothing that it read."""
    desk = await till_desk(till("wise(user)"), "")
    given: dict[str, JSON] = {"user": "ann", "amount": 1}
    await desk.start("pay", **given)
    await desk.push()
    await desk.held("pay", "`wise` must be true", **given)
    (held,) = desk.session.held_calls
    await desk.session.decide("approve", held.call_id, by="Clara", role="operator")
    if judged is not None:
        judgement = JudgeCheck(held.facts[0]["function"], {"user": "ann"}, judged)
        assert (await desk.session.operate(judgement)).accepted
    answer = await desk.call("pay", **given)
    assert answer.status is (CallStatus.DONE if served else CallStatus.HELD)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("changed", [False, True])
async def test_an_approval_covers_the_answer_to_every_call_of_a_list(
    number: int, changed: bool
) -> None:
    blocked = {"since": "May"}

    def world(name: str, given: Mapping[str, JSON]) -> JSON:
        if name == "list_cards":
            return {"cards": [{"number": 1}, {"number": 2}]}
        return {"valid": False, **blocked}

    desk = await open_desk(WALLET, world)
    await desk.start("pay", user="ann")
    await desk.push(follow=True)
    await desk.held("pay", "`all_valid` must be true, but is false", user="ann")
    (held,) = desk.session.held_calls
    await desk.session.decide("approve", held.call_id, by="Clara", role="operator")
    if changed:
        blocked["since"] = "June"
    await desk.call("read_card", number=number)
    answer = await desk.call("pay", user="ann")
    another = changed and number in (1, 2)
    assert answer.status is (CallStatus.HELD if another else CallStatus.DONE)
