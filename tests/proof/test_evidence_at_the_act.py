"""P1–P6 at the act: the values of the act, the newest answers, and nothing that changed them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attack_desk import (
    ACCOUNT,
    AttackDesk,
    at_the_act,
    desk_over,
    errors,
    open_desk,
    till,
    till_desk,
    under_way,
)

from counter_desk import HandClock
from small_desks import WALLET, AnsweringTools, programs_of
from sopilot.audit.audit import audit_trace
from sopilot.protocols import ToolResult
from sopilot.records.store import Settings
from sopilot.session import admission
from sopilot.trace.events import Call, Complete, Fail
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallStatus

ANN: Mapping[str, JSON] = {"user": "ann"}


async def ready_to_pay(balance: float, **values: JSON) -> AttackDesk:
    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"balance": balance}

    return await at_the_act(ACCOUNT, answers, "pay", {**ANN, **values}, {"read_account": ANN})


# --- P1: values of the act ------------------------------------------------------------


async def test_a_number_that_no_double_can_hold() -> None:
    desk = await ready_to_pay(2.0**53, amount=2**53 + 1)
    await desk.held("pay", "covered", user="ann", amount=2**53 + 1)
    desk = await ready_to_pay(2.0**53, amount=2**53)
    await desk.done("pay", user="ann", amount=2**53)


async def test_bounds_of_an_input_apply() -> None:
    desk = await ready_to_pay(300)
    await desk.held("pay", "at least 0", user="ann", amount=-5)
    desk = await open_desk(ACCOUNT, lambda name, given: {})
    assert not (await desk.start("pay", user="ann", amount=-5)).accepted


TWINS = """
handbook: twins
actions:
  look_up: {input: {user: string}}
  send: {input: {user: string, to: string}, irreversible: true}
predicates:
  known(user):
    says: The customer {user} is known.
    verify: look_up(user)
    verdict: result.known
procedures:
  give_back: {action: "send(user=friend, to=friend)", requires: known(friend)}
"""


async def test_one_name_for_two_inputs_is_one_value() -> None:
    desk = await open_desk(TWINS, lambda name, given: {"known": given.get("user") == "bob"})
    await desk.call("look_up", user="bob")
    await desk.start("give_back")
    await desk.push()
    await desk.held("send", "friend", user="ann", to="bob")
    await desk.held("send", "friend", user="bob", to="ann")
    await desk.done("send", user="bob", to="bob")


VOUCHER = """
handbook: voucher
actions:
  read_voucher: {input: {voucher: string}}
  redeem: {input: {user: string, voucher: string}, irreversible: true}
predicates:
  has_voucher(user):
    says: The customer {user} has a voucher.
    verify: read_voucher(voucher)
    ask: [voucher]
    verdict: result.owner == user
procedures:
  redeem: {requires: has_voucher(user)}
"""


@pytest.mark.parametrize("voucher", ["gift-1", "gift-3"])
async def test_the_voucher_that_was_shown_is_the_one_that_is_redeemed(voucher: str) -> None:
    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"owner": "eve" if given.get("voucher") == "gift-3" else "bob"}

    values = {"user": "eve", "voucher": voucher}
    shown = {"read_voucher": {"voucher": "gift-3"}}
    desk = await at_the_act(VOUCHER, answers, "redeem", values, shown)
    if voucher == "gift-3":
        await desk.done("redeem", **values)
    else:
        await desk.held("redeem", **values)


async def test_a_call_whose_arguments_do_not_fit_proves_nothing() -> None:
    text = FROZEN.replace("day: {type: string, required: false}", "day: string")
    text = text.replace("verify: look_up(user)", 'verify: "look_up(user, day=5)"')
    desk = await open_desk(text, lambda action, given: {"fine": True})
    await desk.start("pay", user="u")
    await desk.session.operate(Call())
    await desk.call("look_up", user="u", day=5)
    await desk.say(True)
    held = await desk.call("pay", user="u")
    assert "`day` must be of type string" in held.problem


DOOR = """
handbook: door
actions:
  read_list: {input: {user: string}}
  open_door: {input: {user: string, note: {type: object, required: false}}, irreversible: true}
predicates:
  blocked(user):
    says: The guest {user} is blocked.
    verify: read_list(user)
    verdict: user in result.blocked
procedures:
  open_door: {requires: {not: blocked(user)}}
"""
GUEST: Mapping[str, JSON] = {"user": "u1"}


@pytest.mark.parametrize("blocked", [{"u1"}, frozenset({"u1"}), {"u1": 1}.keys()])
async def test_an_answer_that_is_no_json_decides_nothing(blocked: object) -> None:
    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"blocked": blocked}

    desk = await at_the_act(DOOR, answers, "open_door", GUEST, {"read_list": GUEST})
    await desk.held("open_door", "`blocked` must be false", "undecided", user="u1")


@pytest.mark.parametrize(
    "note", [{"$ref": "x", "bytes": 1}, {"in": [{"$ref": "x", "bytes": 1}]}, {"n": float("nan")}]
)
async def test_no_tool_is_given_a_stand_in_for_a_value(note: JSON) -> None:
    """A value in the form of a reference isn't kept, and neither is one that isn't JSON."""
    values = {**GUEST, "note": note}
    desk = await at_the_act(
        DOOR, lambda *_: {"blocked": []}, "open_door", values, {"read_list": GUEST}
    )
    answer = await desk.call("open_door", **values)
    assert "can't pass to a tool unchanged" in answer.problem
    assert desk.made("open_door") == []


OBJECT = """
handbook: x
actions:
  look_up: {input: {where: object}}
  move: {input: {where: object}, irreversible: true}
predicates:
  fine(where): {says: fine, verify: look_up(where), verdict: result.fine}
procedures:
  move: {requires: fine(where)}
"""
LINKED = """
handbook: x
actions:
  find: {input: {where: object}}
  look_up: {input: {where: object}}
  move: {input: {where: object}, irreversible: true}
predicates:
  fine(where):
    says: fine
    verify: {all: [find(where), look_up(find.where)]}
    verdict: results.look_up.fine
procedures:
  move: {requires: fine(where)}
"""
ODD: JSON = {"$ref": "0" * 64, "bytes": 3}
CLEAR: JSON = {"country": "ch"}


@pytest.mark.parametrize("handbook", [OBJECT, LINKED])
@pytest.mark.parametrize(("meant", "asked"), [(ODD, CLEAR), (CLEAR, ODD), (ODD, ODD)])
async def test_a_value_that_looks_withheld_is_an_honest_value(
    handbook: str, meant: JSON, asked: JSON
) -> None:
    """The machine tells it from others; the audit can't, and reports nothing."""
    desk = await open_desk(handbook, lambda name, given: {"fine": True, "where": meant})
    for where in (meant, {"country": None}, CLEAR if meant == ODD else ODD, meant):
        assert (await desk.start("move", where=where)).accepted
    await desk.session.operate(Call())
    await desk.call("find" if handbook is LINKED else "look_up", where=asked)
    if handbook is LINKED:
        for other in (CLEAR, ODD):
            await desk.call("look_up", where=other)
    assert "inconsistent-trace" not in errors(desk)
    assert len(desk.session.configuration.processes) == 3


# --- P4, P5: newest and fresh ---------------------------------------------------------

FROZEN = """
handbook: x
actions:
  look_up: {input: {user: string, day: {type: string, required: false}}}
  pay: {input: {user: string}, irreversible: true}
predicates:
  fine(user): {says: fine, verify: look_up(user), verdict: result.fine}
procedures:
  pay: {requires: fine(user)}
"""


@pytest.mark.parametrize(
    ("more", "held"), [({"loudly": True}, True), ({"user ": "u"}, True), ({"day": "monday"}, False)]
)
async def test_an_answer_to_the_same_call_and_something_more_is_newer(
    more: dict[str, JSON], held: bool
) -> None:
    """A declared input makes it another call; an argument that isn't declared doesn't."""
    world = {"fine": True}
    user = {"user": "u"}
    desk = await at_the_act(FROZEN, lambda *_: dict(world), "pay", user, {"look_up": user})
    world["fine"] = False
    await desk.call("look_up", user="u", **more)
    if held:
        await desk.held("pay", "called again with extra arguments", user="u")
        world["fine"] = True
        await desk.call("look_up", user="u")
    await desk.done("pay", user="u")
    await desk.session.operate(Complete())
    assert errors(desk) == []


@pytest.mark.parametrize(("more", "reads"), [({"loudly": True}, 3), ({"day": "monday"}, 2)])
async def test_an_attempt_reads_again_what_was_called_with_something_more(
    more: dict[str, JSON], reads: int
) -> None:
    book = FROZEN.replace("irreversible: true", "irreversible: true, confirm: false")
    tools = AnsweringTools(lambda *_: {"fine": True})
    desk = await desk_over(programs_of(book), tools, settings=Settings(guard="auto"))
    await desk.done("look_up", user="u")
    await desk.done("look_up", user="u", **more)
    await desk.done("pay", user="u")
    assert len(desk.made("look_up")) == reads


@pytest.mark.parametrize(
    ("more", "held"),
    [({}, True), ({"loudly": True}, True), ({"day": "monday"}, False), ({"user": "w"}, False)],
)
async def test_the_same_call_under_way_may_be_answered_otherwise(
    more: dict[str, JSON], held: bool
) -> None:
    user = {"user": "u"}
    desk = await at_the_act(FROZEN, lambda *_: {"fine": True}, "pay", user, {"look_up": user})
    async with under_way(desk, "look_up", **{**user, **more}):
        if held:
            await desk.held("pay", "`look_up", user="u")
        else:
            await desk.done("pay", user="u")
    assert errors(desk) == []


async def test_a_call_that_changes_what_it_reads_is_never_fresh() -> None:
    text = FROZEN.replace("required: false}}}", "required: false}}, changes: [tokens]}")
    user = {"user": "u"}
    desk = await at_the_act(text, lambda *_: {"fine": True}, "pay", user, {"look_up": user})
    await desk.held("pay", "fine", "changes the data that it reads", user="u")


LOCKED = """
handbook: x
actions:
  lock: {input: {user: string}}
  unlock: {input: {user: string}}
  read_account: {input: {user: string}}
  pay: {input: {user: string}, irreversible: true}
predicates:
  unlocked(user): {says: unlocked, established_by: unlock(user), closed_by: lock(user)}
  active(user): {says: active, verify: read_account(user), verdict: result.active}
procedures:
  pay: {requires: active(user)}
"""


async def test_an_action_that_opens_or_shuts_a_gate_may_change_an_answer() -> None:
    desk = await at_the_act(LOCKED, lambda *_: {"active": True}, "pay", ANN, {"read_account": ANN})
    await desk.call("lock", user="ann")
    await desk.held("pay", "must be called again", user="ann")


async def test_a_refusal_after_a_held_call_is_no_mistake() -> None:
    left = [300]

    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"balance": left[0]}

    values = {**ANN, "amount": 200}
    desk = await at_the_act(ACCOUNT, answers, "pay", values, {"read_account": ANN})
    left[0] = 0
    await desk.call("read_account", user="ann")
    await desk.held("pay", "`covered` must be true, but is false", **values)
    await desk.session.operate(Fail("the account does not cover it any more"))
    session = desk.session
    report = audit_trace(programs_of(ACCOUNT), session.events, judge=session.judge)
    assert report.clean, report.findings


# --- P6: judged -----------------------------------------------------------------------

BLOCK = """
handbook: block
actions:
  read_block: {input: {user: string}, not_found: "result.error == 'no such block'"}
  pay: {input: {user: string}, irreversible: true, confirm: false, recheck: true}
predicates:
  blocked(user):
    says: "{user} is blocked."
    verify: read_block(user)
    verdict: "!has(result.error) && result.blocked"
procedures:
  pay: {requires: {not: blocked(user)}}
"""


@pytest.mark.parametrize("broken", [False, True])
async def test_an_answer_that_there_is_nothing_is_read_again_too(broken: bool) -> None:
    """A tool that breaks off hasn't answered, whatever its error says."""
    made: list[str] = []

    def world(name: str, given: Mapping[str, JSON]) -> ToolResult:
        made.append(name)
        if broken and len(made) > 1:
            raise RuntimeError("no such block")
        return ToolResult(name == "pay", {"error": "no such block"})

    text = BLOCK.replace("result.error == 'no such block'", "'no such block' in [result.error]")
    desk = await open_desk(text if broken else BLOCK, world, "fused")
    await desk.start("pay", user="ann")
    await desk.call("read_block", user="ann")
    await desk.push()
    if broken:
        await desk.held("pay", "failed the last time it was called", user="ann")
    else:
        await desk.done("pay", user="ann")
    assert len(desk.made("read_block")) == 2


async def test_a_computed_value_is_computed_anew_with_a_new_start() -> None:
    text = """
handbook: late
actions:
  read_loan: {input: {loan: string}}
  charge: {input: {loan: string, amount: number}, irreversible: true, confirm: false}
procedures:
  charge:
    arguments:
      amount: {verify: read_loan(loan), value: "10 * round(hours_between(result.due, now), 0)"}
"""
    desk = await open_desk(text, lambda *_: {"due": "1970-01-01T00:00:00Z"}, "fused")

    async def charge() -> tuple[JSON, CallStatus, str]:
        await desk.push()
        process = desk.session.configuration.process
        assert process is not None
        amount = process.known["amount"]
        answer = await desk.call("charge", loan="l", amount=amount)
        return amount, answer.status, answer.problem

    await desk.start("charge", loan="l")
    await desk.call("read_loan", loan="l")
    assert isinstance(desk.session.clock, HandClock)
    desk.session.clock.advance(2 * 3600)
    first, status, why = await charge()
    assert status is CallStatus.HELD
    assert "`amount` would now have a different value: start the goal again" in why
    await desk.start_anew("charge", loan="l")
    await desk.call("read_loan", loan="l")
    again, status, _ = await charge()
    assert (status, first, again) == (CallStatus.DONE, 0, 20)


# --- recheck --------------------------------------------------------------------------

CLAUSES = """
handbook: clauses
actions:
  read_clause: {input: {text: string}}
  sign: {input: {first: string, second: string}, irreversible: true, recheck: true}
predicates:
  legal(text):
    says: The clause is legal.
    verify: read_clause(text)
    verdict: result.legal
procedures:
  sign: {requires: [legal(first), legal(second)]}
"""


async def test_long_values_are_rechecked_one_by_one() -> None:
    first, second = "a" * 1200 + "1", "a" * 1200 + "2"
    legal = {first: True, second: True}

    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"legal": legal[given["text"]]} if name == "read_clause" else {}

    desk = await at_the_act(CLAUSES, answers, "sign", {"first": first, "second": second})
    for text in (first, second):
        await desk.call("read_clause", text=text)
    legal[first] = False
    await desk.held("sign", "`legal` must be true, but is false", first=first, second=second)


RECHECKED = "irreversible: true, recheck: true"


async def first_option_taken(true: set[str]) -> AttackDesk:
    desk = await till_desk(till("{first: [a(user), b(user)]}", RECHECKED), true)
    await desk.start("pay", user="u")
    await desk.call("read_b", user="u")
    await desk.push({"read_a": {"user": "u"}})
    return desk


@pytest.mark.parametrize("b_holds", [False, True])
async def test_calls_that_a_second_look_leads_to_are_read_again_too(b_holds: bool) -> None:
    true = {"a", "b"}
    desk = await first_option_taken(true)
    true -= {"a"} if b_holds else {"a", "b"}
    if b_holds:
        await desk.done("pay", user="u")
        await desk.session.operate(Complete())
    else:
        await desk.held("pay", user="u")
    assert len(desk.made("read_b")) == 2
    assert errors(desk) == []


async def test_the_audit_finds_an_answer_that_was_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = await first_option_taken({"a", "b"})
    monkeypatch.setattr(admission, "_reads", lambda session, call: False)
    await desk.done("pay", user="u")
    await desk.session.operate(Complete())
    assert errors(desk) == ["not-read-again"]


CASES = """
handbook: x
actions:
  find_case: {input: {user: string}}
  read_case: {input: {case_id: string}}
  pay: {input: {user: string}, irreversible: true, recheck: true}
predicates:
  closed(user):
    says: closed
    verify: {all: [find_case(user), read_case(find_case.id)]}
    verdict: results.read_case.closed
procedures:
  pay: {requires: closed(user)}
"""


async def test_a_case_that_a_second_look_names_is_read_again() -> None:
    found = {"turn": 0, "moves": False}

    def world(name: str, given: object) -> JSON:
        if name != "find_case":
            return {"closed": True}
        found["turn"] += found["moves"]
        return {"id": f"case-{found['turn'] % 12}"}

    desk = await open_desk(CASES, world)
    await desk.start("pay", user="u")
    await desk.call("find_case", user="u")
    for number in range(12):
        await desk.call("read_case", case_id=f"case-{number}")
    await desk.push()
    found["moves"] = True
    await desk.done("pay", user="u")  # it is asked once, and its case is read anew
    assert desk.tools.made[-2:-1] == [("read_case", {"case_id": "case-1"})]


@pytest.mark.parametrize("changed", [False, True])
async def test_a_models_verdict_counts_if_a_second_look_finds_nothing_new(changed: bool) -> None:
    world: dict[str, JSON] = {"notes": ["one"]}
    user = {"user": "u"}
    book = till("wise(user)", RECHECKED)
    desk = await at_the_act(book, lambda *_: dict(world), "pay", user, {"read_i": user})
    if changed:
        world["notes"] = ["one", "two"]
        await desk.held("pay", "answers that aren't the newest", user="u")
        return
    await desk.done("pay", user="u")
    await desk.session.operate(Complete())
    assert errors(desk) == []


# --- answers of another shape -----------------------------------------------------------

CARDS: list[JSON] = [{"number": 1}, {"number": 2}]
VALID: JSON = {"valid": True}
NO_VALUE, NOT_DECIDED = "the answer has no value at", "the answers don't decide its verdict"


@pytest.mark.parametrize(
    ("action", "listed", "card", "says"),
    [
        ("pay", {"cards": CARDS}, VALID, ""),
        ("pay", {"cards": []}, VALID, ""),
        ("pay", {"cards": CARDS}, {"valid": False}, "Not true"),
        ("pay", {"cards": "12"}, VALID, "`list_cards.cards` isn't a list"),
        ("pay", {"cards": {"number": 1}}, VALID, "`list_cards.cards` isn't a list"),
        ("pay", {"cards": CARDS * 501}, VALID, "`list_cards.cards` has more than"),
        ("pay", {"cards": None}, VALID, "the answer is null at `list_cards.cards`"),
        ("pay", {}, VALID, f"{NO_VALUE} `list_cards.cards`"),
        ("pay", "cards", VALID, f"{NO_VALUE} `list_cards.cards`"),
        ("pay", {"cards": [*CARDS, {}]}, VALID, f"{NO_VALUE} `card.number`"),
        ("pay", {"cards": [{"number": "1"}]}, VALID, "`number` must be of type integer"),
        ("lend", {"cards": CARDS}, VALID, ""),
        ("lend", {"cards": CARDS[:1]}, VALID, NO_VALUE),
        ("lend", {"cards": "12"}, VALID, NO_VALUE),
        ("lend", {"cards": {"1": CARDS[1]}}, VALID, NO_VALUE),
        ("lend", {"cards": CARDS}, {"valid": False}, "Not true"),
        ("lend", {"cards": CARDS}, {}, f"{NOT_DECIDED}: `result.valid` failed"),
        ("lend", {"cards": CARDS}, {"valid": 1}, NOT_DECIDED),
        ("lend", {"cards": CARDS}, None, NOT_DECIDED),
    ],
)
async def test_an_answer_of_another_shape_proves_nothing(
    action: str, listed: JSON, card: JSON, says: str
) -> None:
    """The runtime reads by itself, and says why it can't tell."""
    tools = AnsweringTools(lambda name, _: listed if name == "list_cards" else card)
    desk = await desk_over(programs_of(WALLET), tools, settings=Settings(guard="auto"))
    answer = await desk.call(action, user="ann")
    assert says in answer.problem
    assert bool(answer.problem) is bool(says)
    assert len(desk.made(action)) == (not says)
    read = {"pay": [1, 2], "lend": [2]}[action] if listed == {"cards": CARDS} else []
    assert [given["number"] for given in desk.made("read_card")] == read
