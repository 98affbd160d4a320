"""Programs written by hand: steps done for other values, facts left out, gates of several calls."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attack_desk import AttackDesk, desk_over, errors

from small_desks import AnsweringTools, Answers
from sopilot.audit.audit import audit_trace
from sopilot.program.codec import program_from_yaml
from sopilot.program.verifier import require_valid
from sopilot.protocols import ToolResult
from sopilot.records.store import Settings
from sopilot.trace.events import Call, Complete, EmitArtifact, Return, SelectBranch, UserSaid
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallStatus


async def open_by_hand(answers: Answers, *programs: str) -> AttackDesk:
    read = [program_from_yaml(program) for program in programs]
    for program in read:
        require_valid(program)
    return await desk_over({program.entry: program for program in read}, AnsweringTools(answers))


def rule(name: str, action: str, verdict: str) -> str:
    """A rule about the user that one call verifies."""
    return f"""  {name}:
    kind: rule
    parameters: [user]
    predicate: {name}
    verdict: {verdict}
    steps:
      - {{step: read, act: {action}, with: {{user: $user}}}}
      - {{step: judge, return: null}}
"""


RESERVED = """
sopilot_program: 1
entry: pay
guarded: [{action: pay, roles: [boss], needed: 1}]
types: {user: string, amount: number}
actions:
  reserve: {input: {user: string, amount: number}, changes: []}
  pay: {input: {user: string, amount: number}, required: [user, amount]}
functions:
  pay:
    kind: process
    parameters: [user, amount]
    steps:
      - {step: first, act: reserve, with: {user: $user, amount: $amount}}
      - {step: act, act: pay, with: {user: $user, amount: $amount}, goal: true}
      - {step: done, complete: Done.}
"""


async def test_what_was_done_for_other_values_was_not_done_for_these() -> None:
    desk = await open_by_hand(lambda name, given: {}, RESERVED)
    await desk.start("pay", user="u", amount=100)
    await desk.call("reserve", user="u", amount=100)
    await desk.call("pay", user="u", amount=100)
    (held,) = desk.session.held_calls
    answer = await desk.amended(held.call_id, "boss", user="u", amount=500)
    assert answer.status is CallStatus.HELD
    assert "`pay@first` was not done" in answer.problem
    assert desk.made("pay") == []


BALANCE = """
sopilot_program: 1
entry: pay
guarded: [{action: pay}]
types: {user: string, amount: number}
functions:
  pay:
    kind: process
    parameters: [user, amount]
    steps:
      - step: first
        call: covered
        with: {user: $user, amount: $amount}
        bind: covered
        unmet: no
      - {step: act, act: pay, with: {user: $user, amount: $amount}, goal: true}
      - {step: done, complete: Done.}
      - {step: no, fail: No.}
  covered:
    kind: rule
    parameters: [user, amount]
    predicate: covered
    verdict: result.balance >= amount
    steps:
      - {step: read, act: read_account, with: {user: $user}}
      - {step: judge, return: null}
"""
SAID = """
actions:
  read_account: {input: {user: string}, changes: []}
  withdraw: {input: {user: string}, changes: [balances]}
  pay: {input: {user: string, amount: number}, required: [user, amount]}
"""
OTHER = """
sopilot_program: 1
entry: quietly
actions:
  withdraw: {input: {user: string}, changes: []}
functions:
  quietly:
    kind: process
    parameters: [user]
    steps:
      - {step: act, act: note, with: {user: $user}, goal: true}
      - {step: done, complete: Done.}
"""


@pytest.mark.parametrize("programs", [(BALANCE,), (BALANCE + SAID, OTHER)])
async def test_what_a_program_by_hand_does_not_say_may_change_everything(
    programs: tuple[str, ...],
) -> None:
    balance = {"now": 500}

    def world(name: str, given: Mapping[str, JSON]) -> JSON:
        if name in ("withdraw", "pay"):
            balance["now"] -= 500
            assert balance["now"] >= 0, "the world denies it"
        return {"balance": balance["now"]}

    desk = await open_by_hand(world, *programs)
    await desk.start("pay", user="u", amount=500)
    await desk.push({"read_account": {"user": "u"}})
    await desk.call("withdraw", user="u")
    await desk.held("pay", "`withdraw`", "may have changed it", user="u", amount=500)
    balance["now"] = 500
    await desk.call("read_account", user="u")
    await desk.done("pay", user="u", amount=500)


def checked(check: str, functions: str) -> str:
    """A program that pays if this check comes out true."""
    return f"""
sopilot_program: 1
entry: pay
guarded: [{{action: pay}}]
types: {{user: string}}
functions:
  pay:
    kind: process
    parameters: [user]
    steps:
      - {{step: first, call: {check}, with: {{user: $user}}, bind: {check}, unmet: no}}
      - {{step: act, act: pay, with: {{user: $user}}, goal: true}}
      - {{step: done, complete: Done.}}
      - {{step: no, fail: No.}}
{functions}"""


SECOND_FACTOR = """  second_factor:
    kind: gate
    parameters: [user]
    predicate: second_factor
    steps:
      - {step: send, act: send_code, with: {user: $user}}
      - {step: confirm, act: confirm_code, with: {user: $user, code: "?code"}}
      - {step: judge, return: null}
"""


@pytest.mark.parametrize("code", ["", "wrong", "right"])
async def test_a_gate_of_two_calls_is_open_when_both_succeeded(code: str) -> None:
    def world(name: str, given: Mapping[str, JSON]) -> JSON | ToolResult:
        return ToolResult(given.get("code") in (None, "right"), {"sent": True})

    desk = await open_by_hand(world, checked("second_factor", SECOND_FACTOR))
    await desk.start("pay", user="u")
    confirmed = {"confirm_code": {"user": "u", "code": code}} if code else {}
    await desk.push({"send_code": {"user": "u"}, **confirmed})
    if code != "right":
        await desk.held("pay", "`second_factor` must be true, but is false", user="u")
    else:
        await desk.done("pay", user="u")
        await desk.session.operate(Complete())
        assert errors(desk) == []


ELIGIBLE = """  eligible:
    kind: rule
    parameters: [user]
    predicate: eligible
    verdict: result.eligible
    steps:
      - {step: who, call: known, with: {user: $user}, bind: known, unmet: no}
      - {step: read, act: read_account, with: {user: $user}}
      - {step: judge, return: null}
      - {step: no, return: false}
""" + rule("known", "read_user", "result.known")


@pytest.mark.parametrize(
    ("known", "eligible", "missing"),
    [(True, True, ""), (False, True, "`known` must be true"), (True, False, "`eligible` must be")],
)
async def test_a_rule_that_asks_others_first_holds_by_them_too(
    known: bool, eligible: bool, missing: str
) -> None:
    world = {"known": known, "eligible": eligible}
    desk = await open_by_hand(lambda name, given: world, checked("eligible", ELIGIBLE))
    await desk.start("pay", user="u")
    await desk.push({"read_user": {"user": "u"}, "read_account": {"user": "u"}})
    if missing:
        await desk.held("pay", missing, user="u")
    else:
        await desk.done("pay", user="u")
        await desk.session.operate(Complete())
        assert errors(desk) == []


@pytest.mark.parametrize(
    ("predicate", "named"), [("    predicate: solvent\n", "solvent"), ("", "covered")]
)
@pytest.mark.parametrize("balance", [None, 1])
async def test_a_check_is_named_by_its_predicate_or_else_by_its_function(
    predicate: str, named: str, balance: int | None
) -> None:
    text = BALANCE.replace("    predicate: covered\n", predicate)
    desk = await open_by_hand(lambda name, given: {"balance": balance}, text)
    await desk.start("pay", user="u", amount=500)
    await desk.push({"read_account": {"user": "u"}})
    found = "false" if balance else "undecided"
    await desk.held("pay", f"`{named}` must be true, but is {found}", user="u", amount=500)


BY_ITSELF = """      - {step: look, do: Look at it., uses: [search]}
      - {step: write, emit: memo}
      - {step: first, act: reserve, with: {user: $user, amount: $amount}}
"""
CHOSEN = (
    """
sopilot_program: 1
entry: pay
guarded: [{action: pay, roles: [boss], needed: 1}]
types: {user: string, amount: number}
actions:
  read_small: {input: {user: string}, changes: []}
  read_large: {input: {user: string}, changes: []}
  reserve: {input: {user: string, amount: number}, changes: []}
  pay: {input: {user: string, amount: number}, required: [user, amount]}
functions:
  pay:
    kind: process
    parameters: [user, amount]
    steps:
      - step: way
        choose: Which way?
        options: [{name: small, to: small}, {name: large, to: large}]
      - {step: small, call: small, with: {user: $user}, bind: small, met: look, unmet: no}
      - {step: large, call: large, with: {user: $user}, bind: large, met: look, unmet: no}
"""
    + BY_ITSELF
    + """      - {step: act, act: pay, with: {user: $user, amount: $amount}, goal: true}
      - {step: done, complete: Done.}
      - {step: no, fail: No.}
"""
    + rule("small", "read_small", "result.yes")
    + rule("large", "read_large", "result.yes")
)


@pytest.mark.parametrize("way", ["small", "large"])
@pytest.mark.parametrize("holds", ["small", "large", "neither"])
@pytest.mark.parametrize("amount", [5, 6])
async def test_one_way_that_is_proven_and_what_was_done_on_it(
    way: str, holds: str, amount: int
) -> None:
    """Whichever way was taken, one of them must be proven; and what the executor does by itself
    must have been done for the very values of the act. The audit reads the same."""

    desk = await open_by_hand(lambda name, given: {"yes": name == f"read_{holds}"}, CHOSEN)
    await desk.start("pay", user="u", amount=5)
    for name in ("read_small", "read_large"):
        await desk.call(name, user="u")
    await desk.session.operate(SelectBranch(way))
    await desk.session.operate(Call())
    await desk.say(True)
    await desk.session.operate(SelectBranch("next"))
    await desk.session.operate(EmitArtifact("memo", "seen"))
    await desk.call("reserve", user="u", amount=5)
    await desk.call("pay", user="u", amount=5)
    (held,) = desk.session.held_calls
    proven = holds != "neither" and amount == 5
    assert ("must be true" in held.why) == (holds == "neither")
    if holds == "neither":
        assert "`small` must be true, but is false" in held.why
    answer = await desk.amended(held.call_id, "boss", user="u", amount=amount)
    assert ("`pay@first` was not done" in answer.problem) == (amount == 6)
    assert bool(desk.made("pay")) == (amount == 5), answer.problem
    report = audit_trace(
        desk.session.programs.programs, desk.session.events, judge=desk.session.judge
    )
    unproven = [one.code for one in report.findings if "ran unproven" in one.explanation]
    assert not unproven, "people decided about what they were told"
    assert "guard-disagrees" not in {one.code for one in report.findings}
    nobody = [
        one.event._replace(payload={**one.event.payload, "by": ""})
        if one.event.kind == "decision"
        else one.event
        for one in desk.session.events
    ]
    report = audit_trace(desk.session.programs.programs, nobody, judge=desk.session.judge)
    unproven = [one.code for one in report.findings if "ran unproven" in one.explanation]
    assert bool(unproven) == (amount == 5 and not proven)


BY_HAND = """
sopilot_program: 1
entry: operate
guarded: [{action: operate}]
types: {user: string}
actions:
  read_patient: {input: {user: string}, changes: []}
  take_consent: {input: {user: string}, changes: []}
  operate: {input: {user: string}, required: [user]}
functions:
  operate:
    kind: process
    parameters: [user]
    steps:
      - {step: first, call: emergency, with: {user: $user}, bind: emergency, met: act}
      - {step: consent, act: take_consent, with: {user: $user}}
      - {step: act, act: operate, with: {user: $user}, goal: true}
      - {step: done, complete: Done.}
""" + rule("emergency", "read_patient", "result.emergency")


@pytest.mark.parametrize("undecided", [True, False])
async def test_what_was_not_done_is_not_passed(undecided: bool) -> None:
    """The executor claims the short way; the long way was never gone."""
    desk = await open_by_hand(lambda *_: {"emergency": False}, BY_HAND)
    await desk.start("operate", user="u")
    await desk.push({} if undecided else {"read_patient": {"user": "u"}})
    await desk.held("operate", "`emergency` must be true", user="u")


async def test_an_undecided_check_opens_neither_side() -> None:
    stop_if = (
        BY_HAND.replace("met: act}", "met: stop, unmet: act}")
        .replace("      - {step: consent, act: take_consent, with: {user: $user}}\n", "")
        .replace("complete: Done.}", "complete: Done.}\n      - {step: stop, fail: No.}")
    )
    desk = await open_by_hand(lambda *_: {"error": "no"}, stop_if)
    await desk.start("operate", user="u")
    await desk.push()
    await desk.session.operate(Return(undecided=True))
    await desk.held("operate", "emergency", user="u")


WITH_CODE = BALANCE.replace(
    "user: $user}}\n      - {step: judge", 'user: $user, code: "?code"}}\n      - {step: judge'
)


WITH_YEAR = BALANCE + SAID.replace(
    "{input: {user: string}, changes: []}",
    "{input: {user: string, year: number}, required: [user, year], changes: []}",
)


@pytest.mark.parametrize(
    ("program", "read", "missing"),
    [
        (WITH_CODE, {"user": "u"}, "`code` has no value"),
        (WITH_CODE, {"user": "u", "code": "7"}, ""),
        (WITH_YEAR, {"user": "u"}, "`year`"),
    ],
)
async def test_a_call_without_a_value_that_its_rule_or_its_tool_needs_proves_nothing(
    program: str, read: dict[str, JSON], missing: str
) -> None:
    desk = await open_by_hand(lambda *_: {"balance": 900}, program)
    await desk.start("pay", user="u", amount=500)
    await desk.push({"read_account": read})
    if missing:
        await desk.held("pay", missing, user="u", amount=500)
    else:
        await desk.done("pay", user="u", amount=500)
        assert errors(desk) == []


ASKED = (
    CHOSEN.replace(", roles: [boss], needed: 1", "")
    .replace("      - step: way", "      - {step: greet, ask: [name]}\n      - step: way")
    .replace(BY_ITSELF, "      - {step: look, call: glad, bind: glad, unmet: no}\n")
    + """  glad:
    kind: rule
    predicate: glad
    verdict: "true"
    steps:
      - {step: ask, ask: [mood]}
      - {step: judge, return: null}
"""
)
PAID: dict[str, JSON] = {"user": "u", "amount": 5}


@pytest.mark.parametrize("holds", ["small", "large", "neither"])
async def test_an_attempt_reads_for_whichever_way_leads_to_the_act(holds: str) -> None:
    tools = AnsweringTools(lambda name, _: {"yes": name == f"read_{holds}"})
    program = program_from_yaml(ASKED)
    require_valid(program)
    desk = await desk_over({"pay": program}, tools, settings=Settings(guard="auto"))
    answer = await desk.call("pay", **PAID)
    assert (answer.status is CallStatus.DONE) == (holds != "neither"), answer.problem
    assert bool(desk.made("pay")) == (holds != "neither")
    assert bool(desk.made("read_large")) == (holds != "small")


async def test_a_call_before_its_checks_is_told_which_step_comes_first() -> None:
    desk = await open_by_hand(lambda *_: {"yes": True}, ASKED)
    says = [
        (UserSaid("I am Ann"), "`name`"),
        (SelectBranch("small"), "`way`"),
        (Call(), "`small`"),
        (None, "read_small("),
        (Return(True), ""),
        (Call(), "`glad`"),
        (UserSaid("fine"), "`mood`"),
        (Return(True), "`glad`"),
    ]
    await desk.start("pay", **PAID)
    for move, named in says:
        answer = await desk.call("pay", **PAID)
        assert answer.status is CallStatus.HELD
        assert named in answer.problem
        if move is None:
            await desk.call("read_small", user="u")
        else:
            assert (await desk.session.operate(move)).accepted
    await desk.done("pay", **PAID)
