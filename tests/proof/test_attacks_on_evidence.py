"""Attacks that once worked, by order, origin, spelling and word (see `test_attack_classes`)."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from attack_desk import VIEWS_WITH_A_MACHINE, open_desk
from attacked_handbooks import DOOR, NAMED, ORIGINS

from sopilot.values.json import JSON
from sopilot.values.text import quote_value

pytestmark = pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)


async def test_the_order_of_calls_decides_nothing(view: str) -> None:
    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        if name == "read_limit":
            return {"free": False}
        return {"balance": 9 if given.get("user") == "eve" else 5, "free": True}

    desk = await open_desk(NAMED, answers, view)
    await desk.start("send", user="ann", to="eve")
    await desk.call("read_account", user="ann")
    await desk.call("read_account", user="eve")
    await desk.call("read_limit", user="ann")
    # In this order `result` would be free, and the payer would be eve.
    await desk.call("read_account", user="ann")
    await desk.push()
    await desk.held("send", "richer", user="ann", to="eve")
    await desk.start_anew("send", user="eve", to="ann")
    await desk.call("read_limit", user="eve")
    await desk.call("read_account", user="ann")
    await desk.call("read_account", user="eve")
    await desk.push()
    await desk.held("send", "free", user="eve", to="ann")


def _origins(name: str, given: Mapping[str, JSON]) -> JSON:
    if name == "find_case":
        return {"case_id": f"case-of-{given['user']}"}
    if name == "read_case":
        return {"status": "closed" if given["case_id"] == "case-of-bob" else "open"}
    if name == "read_booking":
        return {"legs": [{"number": "F1"}, {"number": "F2"}]}
    return {"cancelled": given.get("number") == "F1", "done": True}


async def test_somebody_elses_case(view: str) -> None:
    desk = await open_desk(ORIGINS, _origins, view)
    await desk.start("archive", user="ann")
    await desk.push({"find_case": {"user": "ann"}, "read_case": {"case_id": "case-of-bob"}})
    await desk.held("archive", "case_closed", user="ann")
    await desk.start_anew("archive", user="bob")
    await desk.push({"find_case": {"user": "bob"}, "read_case": {"case_id": "case-of-bob"}})
    await desk.done("archive", user="bob")


async def test_one_flight_of_two(view: str) -> None:
    desk = await open_desk(ORIGINS, _origins, view)
    await desk.start("refund", booking="b")
    await desk.call("read_booking", booking="b")
    await desk.call("read_flight", number="F1")
    await desk.push({"read_booking": {"booking": "b"}})
    await desk.held("refund", "cancelled", "read_flight", booking="b")
    await desk.call("read_flight", number="F1")
    await desk.held("refund", "cancelled", "read_flight", booking="b")


CUT = """
handbook: cut
actions:
  read_order: {input: {order: string}}
  release: {input: {code: string, order: string}, irreversible: true}
predicates:
  good(code):
    says: The code {code} is good.
    verify: arguments
    verdict: code in ['ok-1']
  small(order):
    says: Half of the order {order} is at most 2.
    verify: read_order(order)
    verdict: result.total / 2 > 2
procedures:
  release: {requires: {all: [good(code), not: small(order)]}}
"""


@pytest.mark.parametrize("total", [5, 5.0])
async def test_text_is_not_cut_and_numbers_are_one_kind(view: str, total: JSON) -> None:
    desk = await open_desk(CUT, lambda name, given: {"total": total}, view)
    await desk.start("release", code="ok-1\0evil", order="o")
    await desk.push({"read_order": {"order": "o"}})
    await desk.held("release", code="ok-1\0evil", order="o")
    await desk.start_anew("release", code="ok-1", order="o")
    await desk.push({"read_order": {"order": "o"}})
    await desk.held("release", code="ok-1\0evil", order="o")
    await desk.held("release", "small", code="ok-1", order="o")


WORD = """
handbook: word
actions:
  release: {input: {amount: number}, irreversible: true}
predicates:
  reasonable(amount):
    says: The amount {amount} is reasonable.
    verify: arguments
procedures:
  release: {requires: reasonable(amount)}
"""


async def test_the_models_word_opens_nothing(view: str) -> None:
    desk = await open_desk(WORD, lambda name, given: {"done": True}, view)
    await desk.start("release", amount=5)
    await desk.push()
    await desk.held("release", "reasonable", amount=5)
    believing = WORD.replace("    verify: arguments", "    verify: arguments\n    judged_by: model")
    trusting = await open_desk(believing, lambda name, given: {"done": True}, view)
    await trusting.start("release", amount=5)
    await trusting.push()
    await trusting.held("release", "amount", amount=6)
    await trusting.done("release", amount=5)


LONG = "order-" + "x" * 120


async def test_a_shortened_text_is_never_the_value(view: str) -> None:
    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"known": str(given.get("guest", "")).startswith("order-")}

    desk = await open_desk(DOOR, answers, view)
    await desk.start("open_door", guest=LONG)
    await desk.push({"look_up": {"guest": LONG}})
    for cut in (LONG[:79] + "…", LONG[:78] + "…", LONG + "…", LONG[:-1]):
        await desk.held("open_door", guest=cut)
    await desk.done("open_door", guest=LONG)
    assert [given["guest"] for given in desk.made("open_door")] == [LONG]


async def test_what_a_frame_shows_of_a_long_value_stands_for_all_of_it(view: str) -> None:
    desk = await open_desk(DOOR, lambda name, given: {"known": True}, view)
    await desk.start("open_door", guest=LONG)
    shown = json.loads(quote_value(LONG))
    assert shown != LONG
    assert len(shown) <= 80
    await desk.push({"look_up": {"guest": shown}})
    await desk.done("open_door", guest=shown)
    assert [given["guest"] for _, given in desk.tools.made] == [LONG, LONG]
