"""Holes that a fourth attacker found: a second look that leads elsewhere, sums of decimals, texts
that look the same, times as texts, and words that are no yes."""

from __future__ import annotations

import pytest
from attack_desk import AttackDesk, errors, open_desk

from sopilot.handbook.expressions import VerdictError, compute, judge
from sopilot.machine.proof.licence import Licence
from sopilot.session import admission as _admission
from sopilot.trace.events import Complete
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus

EITHER = """
handbook: x
actions:
  read_a: {input: {user: string}}
  read_b: {input: {user: string}}
  pay: {input: {user: string}, irreversible: true, recheck: true}
predicates:
  a(user): {says: a, verify: read_a(user), verdict: result.ok}
  b(user): {says: b, verify: read_b(user), verdict: result.ok}
procedures:
  pay: {requires: {first: [a(user), b(user)]}}
"""


async def at_the_act(world: dict[str, bool]) -> AttackDesk:
    """With both read, and the first option taken."""
    desk = await open_desk(EITHER, lambda name, given: {"ok": world.get(name)}, "pg")
    await desk.start("pay", user="u")
    await desk.call("read_b", user="u")
    await desk.push({"read_a": {"user": "u"}})
    return desk


@pytest.mark.parametrize("b_holds", [False, True])
async def test_what_a_second_look_leads_to_is_read_again_too(b_holds: bool) -> None:
    world = {"read_a": True, "read_b": True}
    desk = await at_the_act(world)
    world.update(read_a=False, read_b=b_holds)  # by somebody else
    answer = await desk.call("pay", user="u")
    assert len(desk.made("read_b")) == 2
    assert answer.status is (CallStatus.DONE if b_holds else CallStatus.HELD)
    if b_holds:
        await desk.session.operate(Complete())
    assert errors(desk.session) == []


async def test_the_audit_sees_what_was_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = await at_the_act({"read_a": True, "read_b": True})
    monkeypatch.setattr(_admission, "_reads", lambda session, call: False)
    await desk.done("pay", user="u")
    await desk.session.operate(Complete())
    assert errors(desk.session) == ["not-read-again"]


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

    desk = await open_desk(CASES, world, "pg")
    await desk.start("pay", user="u")
    await desk.call("find_case", user="u")
    for number in range(12):
        await desk.call("read_case", case_id=f"case-{number}")
    await desk.push()
    found["moves"] = True
    await desk.done("pay", user="u")  # it is asked once, and its case is read anew
    assert desk.tools.made[-2:-1] == [("read_case", {"case_id": "case-1"})]


JUDGED = """
handbook: x
actions:
  read_a: {input: {user: string}}
  pay: {input: {user: string}, irreversible: true, recheck: true}
predicates:
  calm(user): {says: calm, verify: read_a(user), judged_by: model}
procedures:
  pay: {requires: calm(user)}
"""


@pytest.mark.parametrize("changed", [False, True])
async def test_a_models_verdict_stands_when_a_second_look_finds_nothing_new(changed: bool) -> None:
    world: dict[str, JSON] = {"notes": ["one"]}
    desk = await open_desk(JUDGED, lambda name, given: dict(world), "pg")
    await desk.start("pay", user="u")
    await desk.push({"read_a": {"user": "u"}})
    if changed:
        world["notes"] = ["one", "two"]
        await desk.held("pay", "judged on other answers", user="u")
        return
    await desk.done("pay", user="u")
    await desk.session.operate(Complete())
    assert errors(desk.session) == []


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("0.7 + 0.1", 0.8),
        ("sum([0.1, 0.2])", 0.3),
        ("0.4 - 0.1", 0.3),
        ("1.1 * 3", 3.3),
        ("4.35 * 100", 435),
        ("0.3 / 0.1", 3),
        ("0.3 % 0.1", 0),
        ("-0.3 % 0.2", -0.1),
        ("round(1.15 * 3, 1)", 3.5),
        ("9007199254740992.0 + 1", 9007199254740993),
        ("1.0 / 3 * 3", 1),
        ("1e300 * 1.5", 1.5e300),
    ],
)
def test_numbers_are_calculated_with_as_they_are_written(expression: str, value: float) -> None:
    assert compute(expression, {}) == value


def test_a_limit_is_not_passed_by_the_error_of_a_double() -> None:
    limit = {"spent": 0.7, "amount": 0.1}
    assert not judge("spent + amount < 0.8", limit)
    assert judge("spent + amount <= 0.8", limit)
    for beyond in ("1e308 * 1e10 > 0.5", "1e300 / 1e-300 > 0.5"):
        with pytest.raises(VerdictError):
            judge(beyond, {})


JOSE, SPELLED = "Jos\u00e9", "Jose\u0301"


@pytest.mark.parametrize("other", [SPELLED, JOSE + " ", "\u200b" + JOSE, "\uff2aos\u00e9"])
@pytest.mark.parametrize(
    "expression",
    ["user in blocked", "user == blocked[0]", "user != blocked[0]", "lookup(limits, user, 0) == 0"],
)
def test_texts_that_look_the_same_are_neither_equal_nor_unequal(
    other: str, expression: str
) -> None:
    with pytest.raises(VerdictError):
        judge(expression, {"user": other, "blocked": [JOSE], "limits": {JOSE: 5}})
    assert judge("user in blocked", {"user": other, "blocked": [JOSE, other]})
    assert not judge("user in blocked", {"user": "Josefa", "blocked": [JOSE]})
    assert not judge("user == 'ann'", {"user": "Ann"})


NOON = "2026-01-31T11:00:00+00:00"


@pytest.mark.parametrize(
    ("expression", "until", "holds"),
    [
        ("until > now", "2026-02-01T00:30:00+14:00", None),  # half an hour ago
        ("until <= now", "2026-02-01T00:30:00+14:00", None),
        ("until > now", "2026-01-31T11:00:00.5Z", True),
        ("until > now", "2026-01-31T11:00:00.5+00:00", True),
        ("until == now", "2026-01-31T11:00:00Z", None),
        ("until == now", "2026-02-01T00:30:00+14:00", False),
        ("until > now", "2026-02-02T00:30:00+14:00", True),
        ("until > now", "2026-02-01", True),
        ("until > now", "2026-01-30", False),
        ("max([until, now]) == now", "2026-02-01T00:30:00+14:00", None),
        ("until > now", "never", True),
    ],
)
def test_a_time_in_text_is_not_later_than_by_the_clock(
    expression: str, until: str, holds: bool | None
) -> None:
    try:
        found: bool | None = judge(expression, {"until": until, "now": NOON})
    except VerdictError:
        found = None
    assert found is holds


ENROLLED = """
handbook: x
actions:
  enroll: {input: {user: string}, changes: []}
  read_user: {input: {user: string}}
  welcome: {input: {user: string}, irreversible: true}
predicates:
  enrolled(user): {says: enrolled, established_by: enroll(user)}
  known(user): {says: known, verify: read_user(user), verdict: result.known}
procedures:
  welcome: {requires: [not: enrolled(user), known(user)]}
"""


@pytest.mark.parametrize(("user", "held"), [(SPELLED, True), ("Josefa", False)])
async def test_a_gate_that_was_opened_for_a_look_alike_is_not_proven_shut(
    user: str, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await open_desk(ENROLLED, lambda name, given: {"known": True}, "pg")
    await desk.call("enroll", user=JOSE)
    await desk.start("welcome", user=user)
    await desk.push({"read_user": {"user": user}})
    if held:
        await desk.held("welcome", "`enrolled` must be false", user=user)
        monkeypatch.setattr(_admission, "_license", lambda session, arguments: Licence())
    await desk.done("welcome", user=user)
    assert ("gate-shut" in errors(desk.session)) is held


TWO_WAYS_IN = """
handbook: x
actions:
  by_mail: {input: {user: string}, changes: []}
  by_phone: {input: {user: string, number: string}, changes: []}
  read_user: {input: {user: string}}
  pay: {input: {user: string}, irreversible: true}
predicates:
  mailed(user): {says: mailed, established_by: by_mail(user), principal: true}
  phoned(user): {says: phoned, established_by: "by_phone(user, number)", principal: true}
  known(user): {says: known, verify: read_user(user), verdict: result.known}
procedures:
  pay: {requires: [any: [mailed(user), phoned(user)], known(user)]}
"""


@pytest.mark.parametrize("last", ["ann", "bob", "ann\u200b"])
async def test_one_customer_at_a_time_whichever_way_they_came_in(
    last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await open_desk(TWO_WAYS_IN, lambda name, given: {"known": True}, "pg")
    await desk.call("by_mail", user="ann")
    await desk.call("by_phone", user=last, number="1")
    await desk.start("pay", user="ann")
    await desk.push({"read_user": {"user": "ann"}})
    if last != "ann":
        await desk.held("pay", "`mailed` must be true", user="ann")
        monkeypatch.setattr(_admission, "_license", lambda session, arguments: Licence())
    await desk.done("pay", user="ann")
    assert ("gate-shut" in errors(desk.session)) is (last != "ann")
