"""No value is a value where the handbook says what it means, and nowhere else. The judge is the
world: which limits it has, and what it was told to pay."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from attack_desk import VIEWS_WITH_A_MACHINE, AttackDesk, desk_over, open_desk

from small_desks import AnsweringTools, programs_of
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.records.store import Settings
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallStatus

HANDBOOK = """
handbook: fees
parameters: {most: 5}
actions:
  read_limit: {input: {user: string, kind: {type: string, required: false}}}
  pay:
    input: {user: string, amount: number, fee: {type: number, required: false}}
    irreversible: true
    confirm: false
predicates:
  allowed(user, kind): {says: ok, verify: "read_limit(user, kind)", verdict: result.ok}
  plain(user): {says: ok, verify: "read_limit(user, kind=null)", verdict: result.ok}
  slight(fee): {says: ok, verify: arguments, verdict: "fee == null || fee < most"}
  unsaid(fee): {says: ok, verify: arguments, verdict: "fee < most"}
procedures:
  pay: {requires: %s}
"""
LIMITS: dict[tuple[str, str | None], bool] = {("ann", None): True, ("ann", "vip"): False}


def world(action: str, given: Mapping[str, JSON]) -> JSON:
    if action == "read_limit":
        return {"ok": LIMITS[str(given["user"]), given.get("kind")]}  # type: ignore[index]
    return {"paid": True}


async def desk_for(requires: str, view: str = "pg") -> AttackDesk:
    return await open_desk(HANDBOOK % requires, world, view)


async def done(desk: AttackDesk, **arguments: JSON) -> bool:
    return (await desk.call("pay", **arguments)).status is CallStatus.DONE


@pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)
@pytest.mark.parametrize("requires", ['"allowed(user, null)"', "plain(user)"])
async def test_null_is_a_call_without_the_input(requires: str, view: str) -> None:
    desk = await desk_for(requires, view)
    await desk.start("pay", user="ann", amount=1)
    await desk.push({"read_limit": {"user": "ann"}})
    assert await done(desk, user="ann", amount=1)


async def test_an_answer_about_a_kind_says_nothing_about_none() -> None:
    LIMITS["ann", "gold"], LIMITS["bob", None] = True, False
    desk = await desk_for('"allowed(user, null)"')
    await desk.start("pay", user="ann", amount=1)
    await desk.push({"read_limit": {"user": "ann", "kind": "gold"}})
    await desk.held("pay", "", user="ann", amount=1)
    await desk.start_anew("pay", user="bob", amount=1)
    await desk.push({"read_limit": {"user": "bob"}})
    await desk.held("pay", "", user="bob", amount=1)
    assert desk.made("pay") == []


@pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)
async def test_what_is_left_out_is_proven_for_a_call_without_it_alone(view: str) -> None:
    """Started, judged and called with every pair of fees: what is paid is within the limit."""

    for started, called in itertools.product((None, 1, 9), repeat=2):
        desk = await desk_for("slight(fee)", view)
        fee = {} if started is None else {"fee": started}
        await desk.start("pay", user="ann", amount=1, **fee)
        await desk.push()
        given = {} if called is None else {"fee": called}
        paid = await done(desk, user="ann", amount=1, **given)
        for one in desk.made("pay"):
            assert one.get("fee") is None or one["fee"] < 5  # type: ignore[operator]
        if started == called != 9:
            assert paid, f"an honest call with {called} was held"


async def test_null_is_no_value_that_a_call_may_have() -> None:
    desk = await desk_for("slight(fee)")
    await desk.start("pay", user="ann", amount=1)
    await desk.push()
    assert not await done(desk, user="ann", amount=1, fee=None)
    assert desk.made("pay") == []


async def test_where_nobody_says_what_it_means_nothing_is_proven() -> None:
    desk = await desk_for("unsaid(fee)")
    await desk.start("pay", user="ann", amount=1)
    await desk.push()
    assert not await done(desk, user="ann", amount=1)
    negated = await desk_for("{not: unsaid(fee)}")
    await negated.start("pay", user="ann", amount=1)
    await negated.push()
    assert not await done(negated, user="ann", amount=1)


def test_a_name_that_must_have_a_value_is_not_taken_for_none() -> None:
    """`amount` is required: that `slight` has a meaning without a value does not let it go."""
    text = HANDBOOK % '["slight(amount)", "slight(fee)"]'
    program = compile_handbook(load_handbook(text))["pay"].program
    assert program.functions["slight"].optional == ()


COMPUTED = """{any: [slight(fee), plain(user)]}
    arguments: {amount: "fee == null ? 10 : 10 + fee"}"""


@pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)
async def test_in_a_group_and_in_a_computed_argument(view: str) -> None:
    text = HANDBOOK.replace("pay: {requires: %s}", "pay:\n    requires: %s") % COMPUTED

    for fee, amount in ((None, 10), (2, 12)):
        desk = await open_desk(text, world, view)
        given = {} if fee is None else {"fee": fee}
        await desk.start("pay", user="ann", **given)
        await desk.push({"read_limit": {"user": "ann"}})
        assert not await done(desk, user="ann", amount=amount + 1, **given)
        assert await done(desk, user="ann", amount=amount, **given)


@pytest.mark.parametrize(
    ("kinds", "given"),
    [
        ("string", {"user": "ann"}),
        ("[string, number]", {"user": "ann"}),
        ("[string, 'null']", {"user": "ann", "kind": None}),
        ("'null'", {"user": "ann", "kind": None}),
    ],
)
async def test_null_is_passed_on_to_an_input_that_takes_it(
    kinds: str, given: dict[str, JSON]
) -> None:
    text = (HANDBOOK % "plain(user)").replace(
        "kind: {type: string", f"kind: {{schema: {{type: {kinds}}}", 1
    )
    tools = AnsweringTools(lambda name, _: {"ok": True})
    desk = await desk_over(programs_of(text), tools, settings=Settings(guard="auto"))
    assert await done(desk, user="ann", amount=1)
    assert desk.made("read_limit") == [given]


MEMBER = """
handbook: club
actions:
  sign_in: {input: {member: string}, changes: []}
  pay: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  known(member): {says: known, established_by: sign_in(member)}
procedures:
  pay: {inputs: {member: string}, requires: known(member)}
"""


@pytest.mark.parametrize("member", [None, "m7"])
async def test_a_gate_for_nobody_is_not_open(member: str | None) -> None:
    """Another member's may be; people can be asked."""
    desk = await open_desk(MEMBER, lambda *_: {"ok": True})
    await desk.call("sign_in", member="m7")
    await desk.start("pay", user="ann", **({"member": member} if member else {}))
    await desk.push()
    if member:
        await desk.done("pay", user="ann")
    else:
        await desk.held("pay", "`member` has no value", user="ann")
        (held,) = desk.session.held_calls
        assert "`known` must be true" in held.why


@pytest.mark.parametrize("given", [{"user": "ann"}, {"user": "ann", "amount": None}])
async def test_a_guarded_call_has_every_input_that_its_tool_requires(
    given: dict[str, JSON],
) -> None:
    desk = await desk_for("plain(user)")
    await desk.start("pay", user="ann")
    await desk.push({"read_limit": {"user": "ann"}})
    await desk.held("pay", "`amount`", **given)
    assert await done(desk, user="ann", amount=1)
