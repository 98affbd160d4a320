"""A gate with a verdict is open where its action's newest answer says so, and not by success."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from attack_desk import FAILED, VIEWS_WITH_A_MACHINE, AttackDesk, open_desk

from sopilot.audit.audit import audit_trace
from sopilot.program.model import Kind
from sopilot.protocols import ToolResult
from sopilot.trace.events import Call, Return
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus

HANDBOOK = """
handbook: till
actions:
  login: {input: {user: string, password: string}}
  pay: {input: {user: string, amount: number}, irreversible: true, confirm: false}
predicates:
  strong(user): {says: ok, established_by: "login(user, password)", verdict: "result.level >= 2"}
procedures:
  pay: {requires: strong(user)}
"""


RULE = """
handbook: till
actions:
  look: {input: {user: string}, read_only: true}
  pay: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  known(user): {says: ok, verify: look(user), verdict: result.known}
procedures:
  pay: {requires: known(user)}
"""


@pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)
@pytest.mark.parametrize(
    ("answers", "paid"),
    [
        ([{"level": 2}], True),
        ([{"level": 1}], False),
        ([{}], False),
        (["none"], False),
        ([FAILED], False),
        ([{"level": 2}, {"level": 1}], False),
        ([{"level": 2}, FAILED], False),
    ],
)
async def test_the_newest_answer_opens_it(view: str, answers: list[Any], paid: bool) -> None:
    left: list[Any] = list(answers)

    def world(action: str, given: Mapping[str, JSON]) -> JSON:
        return left.pop(0) if action == "login" else {"paid": True}

    desk = await open_desk(HANDBOOK, world, view)
    await desk.start("pay", user="ann", amount=1)
    await desk.push({"login": {"user": "ann", "password": "x"}})
    for _ in answers[1:]:
        await desk.call("login", user="ann", password="x")
    answer = await desk.call("pay", user="ann", amount=1)
    assert (answer.status is CallStatus.DONE) == paid
    assert bool(desk.made("pay")) == paid


@pytest.mark.parametrize(("holds", "grade"), [(True, "claimed"), (None, None)])
async def test_a_verdict_that_is_returned_has_a_grade(
    holds: bool | None, grade: str | None
) -> None:
    """Without evidence it is a claim; what is no verdict has none."""

    desk = await open_desk(RULE, lambda action, given: {"known": True}, "pg")
    await desk.start("pay", user="ann")
    await desk.session.operate(Call())
    outcome = await desk.session.operate(Return(holds))
    payload = outcome.events[0].payload
    assert (payload.get("grade") or None) == grade


async def test_a_verdict_on_the_newest_answer_is_proven() -> None:
    desk = await open_desk(RULE, lambda action, given: {"known": True}, "pg")
    await desk.start("pay", user="ann")
    await desk.session.operate(Call())
    answer = await desk.call("look", user="ann")
    outcome = await desk.session.operate(Return(True, (str(answer.seq),)))
    assert outcome.events[0].payload["grade"] == "proven"


async def test_a_call_whose_arguments_do_not_fit_proves_nothing() -> None:
    text = RULE.replace("{user: string}, read_only", "{user: string, kind: string}, read_only")
    text = text.replace("verify: look(user)", 'verify: "look(user, kind=5)"')
    desk = await open_desk(text, lambda action, given: {"known": True}, "pg")
    await desk.start("pay", user="ann")
    await desk.session.operate(Call())
    answer = await desk.call("look", user="ann", kind=5)
    await desk.session.operate(Return(True, (str(answer.seq),)))
    held = await desk.call("pay", user="ann")
    assert held.status is CallStatus.HELD
    assert "`kind` must be of type string" in held.problem


DOORS = """
handbook: till
actions:
  login: {input: {number: number, password: string}}
  logout: {input: {number: number}}
  pay: {input: {number: number}, irreversible: true, confirm: false}
predicates:
  known(number):
    says: ok
    established_by: login(number, password)
    closed_by: logout(number)
    principal: true
procedures:
  pay: {requires: known(number)}
"""


@pytest.mark.parametrize(
    ("calls", "paid"),
    [
        ([], True),
        ([("logout", 1)], False),
        ([("login", 2)], False),
        ([("logout", 1), ("login", 1)], True),
        ([("login", 2), ("login", 1)], True),
        ([("login", 2), ("logout", 2)], False),
        ([("logout", 2.5)], True),
        ([("logout", 1.0)], False),
    ],
)
async def test_a_gate_is_shut_by_what_closes_it_and_by_the_next_customer(
    calls: list[tuple[str, float]], paid: bool
) -> None:
    desk = await open_desk(DOORS, lambda action, given: {"ok": True}, "pg")
    await desk.start("pay", number=1)
    await desk.push({"login": {"number": 1, "password": "x"}})
    for action, number in calls:
        more: dict[str, JSON] = {"password": "x"} if action == "login" else {}
        await desk.call(action, number=number, **more)
    answer = await desk.call("pay", number=1)
    assert (answer.status is CallStatus.DONE) == paid, answer.problem


@pytest.mark.parametrize("known", ["a", "b", ""])
async def test_no_option_is_lost_beside_one_that_needs_no_tool(known: str) -> None:
    """Of three options two are verified by tools, and the third by the arguments alone."""
    text = """
handbook: till
actions:
  ask_a: {input: {user: string}, read_only: true}
  ask_b: {input: {user: string}, read_only: true}
  pay: {input: {user: string, amount: number}, irreversible: true, confirm: false}
predicates:
  a(user): {says: a, verify: ask_a(user), verdict: result.yes}
  b(user): {says: b, verify: ask_b(user), verdict: result.yes}
  small(amount): {says: c, verify: arguments, verdict: amount < 5}
procedures:
  pay: {requires: {any: [a(user), b(user), small(amount)]}}
"""

    desk = await open_desk(text, lambda action, given: {"yes": action[-1] == known}, "pg")
    await desk.start("pay", user="ann", amount=9)
    for action in ("ask_a", "ask_b"):
        await desk.call(action, user="ann")
    await desk.push()
    answer = await desk.call("pay", user="ann", amount=9)
    assert (answer.status is CallStatus.DONE) == bool(known), answer.problem


async def test_what_is_missing_is_named_inside_of_groups_too() -> None:
    text = """
handbook: till
actions:
  ask_a: {input: {user: string}, read_only: true}
  ask_b: {input: {user: string}, read_only: true}
  pay: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  a(user): {says: a, verify: ask_a(user), verdict: result.yes}
  b(user): {says: b, verify: ask_b(user), verdict: result.yes}
  c(user): {says: c, verify: ask_a(user), verdict: result.no}
procedures:
  pay: {requires: {all: [c(user), {any: [{all: [a(user), b(user)]}, b(user)]}]}}
"""

    desk = await open_desk(text, lambda action, given: {"yes": False, "no": True}, "pg")
    await desk.start("pay", user="ann")
    await desk.call("ask_a", user="ann")
    await desk.push()
    held = await desk.call("pay", user="ann")
    assert held.status is CallStatus.HELD
    assert "`b` must be true and is undecided" in held.problem


CLOSE = "  close: {input: {number: number}, irreversible: true, confirm: false}\npredicates:"
ENDS = DOORS.replace("predicates:", CLOSE) + "  close: {requires: {not: known(number)}}\n"
"""The same gate, and an act that it must be shut for."""


class Played:
    """A world in which `login:1` succeeds, `-login:1` fails, `?login:1` breaks off, and `login:1>`
    is answered only at `<login:1`. The password is `x`, or stands behind the number; behind the
    colon of `login:1:` is none, and in `login:1:text` the number is a text."""

    def __init__(self) -> None:
        self.running: dict[str, tuple[asyncio.Future[JSON], asyncio.Task[Any]]] = {}
        self.how = ""
        self.awaited: asyncio.Future[JSON] | None = None

    def __call__(self, action: str, given: Mapping[str, JSON]) -> Any:
        if self.awaited is not None:
            future, self.awaited = self.awaited, None
            return future
        broken = ToolResult(False, None, unknown=True)
        return {"-": FAILED, "?": broken}.get(self.how, {"ok": True})

    async def play(self, desk: AttackDesk, calls: str) -> None:
        for token in calls.split():
            word = token.strip("<>-?")
            action, number, *password = word.split(":")
            given: dict[str, JSON] = {"number": number if password == ["text"] else int(number)}
            if action == "login" and password != [""]:
                given["password"] = password[0] if password else "x"
            if token.startswith("<"):
                future, task = self.running.pop(word)
                future.set_result({"ok": True})
                await task
                continue
            self.how = token[0]
            if token.endswith(">"):
                future = self.awaited = asyncio.get_running_loop().create_future()
                self.running[word] = future, asyncio.create_task(desk.call(action, **given))
                while self.awaited is not None:
                    await asyncio.sleep(0)
            else:
                await desk.call(action, **given)

    async def end(self) -> None:
        for future, task in self.running.values():
            future.set_result({"ok": True})
            await task


def disagreements(desk: AttackDesk) -> list[str]:
    """What the audit finds in what the guard has judged: it reads the trace by itself."""
    session = desk.session
    report = audit_trace(session.programs.programs, session.events, judge=session.judge)
    return [
        one.explanation
        for one in report.findings
        if one.code == "guard-disagrees" or "unproven" in one.explanation
    ]


@pytest.mark.parametrize(
    ("calls", "known"),
    [
        ("", False),
        ("login:1", True),
        ("-login:1", False),
        ("login:2", False),
        ("login:1 logout:1", False),
        ("login:1 -logout:1", True),
        ("login:1 logout:2", True),
        ("login:1 login:2", False),
        ("login:1 -login:2", True),
        ("login:1 login:2 login:1", True),
        ("login:2 login:1", True),
        ("login:1 logout:1 login:1", True),
        ("login:1 logout:1 -login:1", False),
        # Who of two that overlap came last, nobody can tell.
        ("login:1> logout:1 <login:1", None),
        ("login:1 logout:1>", None),
        ("login:1 login:1> logout:1 <login:1", None),
        ("login:1 login:2> login:1 <login:2", None),
        ("login:1>", None),
        ("logout:1> login:1 <logout:1", None),
        # What leaves an input out may have touched the gate, and proves nothing.
        ("login:1:", None),
        ("login:1 logout:1 login:1:", None),
        ("login:1 login:2:", None),
        ("login:1 login:2: login:1", True),
        ("login:1 login:2: login:2", False),
        ("login:1 login:1:text", None),  # a tool may take it for the number
        ("login:2:text", None),
    ],
)
@pytest.mark.parametrize("act", ["pay", "close"])
async def test_open_shut_or_neither_as_the_guard_and_the_audit_read_it(
    calls: str, known: bool | None, act: str
) -> None:
    """An act that a gate must be open for and one that it must be shut for: where it is neither,
    both are held. The audit reads every verdict and every act as the guard does."""

    desk = await open_desk(ENDS, played := Played(), "pg")
    await desk.start(act, number=1)
    await played.play(desk, calls)
    await desk.push()
    answer = await desk.call(act, number=1)
    may = known is (act == "pay")
    assert (answer.status is CallStatus.DONE) == may, answer.problem
    assert not disagreements(desk)
    await played.end()


LEVELS = """
handbook: till
actions:
  login: {input: {number: number, password: string}}
  pay: {input: {number: number}, irreversible: true, confirm: false}
  close: {input: {number: number}, irreversible: true, confirm: false}
predicates:
  strong(number): {says: ok, established_by: "login(number, password)", verdict: "result.ok"}
procedures:
  pay: {requires: strong(number)}
  close: {requires: {not: strong(number)}}
"""


@pytest.mark.parametrize(
    ("calls", "strong"),
    [
        ("", False),
        ("login:1", True),
        ("-login:1", False),
        ("login:1 -login:1", None),  # the last answer is no answer to judge by
        ("-login:1 login:1", True),
        ("login:1:y", True),
        ("login:1 login:1:y", True),
        ("login:1> login:1:y <login:1", None),  # with which password it was opened last
        ("login:1:y> login:1> <login:1:y <login:1", None),
        ("login:1 login:1>", None),  # what it opens by now, nobody knows
        ("login:1 login:1:y>", None),
        ("login:1 login:2>", True),
        ("login:1 ?login:1:y", None),  # nobody knows whether it was carried out
        ("login:1 -login:1:y", True),
        ("?login:1:y login:1", None),  # it may be carried out at any time
        ("login:2", False),
    ],
)
@pytest.mark.parametrize("act", ["pay", "close"])
async def test_a_gate_with_a_verdict_as_the_guard_and_the_audit_read_it(
    calls: str, strong: bool | None, act: str
) -> None:
    desk = await open_desk(LEVELS, played := Played(), "pg")
    await desk.start(act, number=1)
    await played.play(desk, calls)
    await desk.push()
    answer = await desk.call(act, number=1)
    assert (answer.status is CallStatus.DONE) == (strong is (act == "pay")), answer.problem
    assert not disagreements(desk)
    await played.end()


async def test_of_a_group_that_is_met_nothing_is_named_as_missing() -> None:
    """Who decides without the proof decides about what is missing, and about nothing else."""
    options = [f"p{number}(user)" for number in range(8)]
    text = "\n".join(
        [
            "handbook: till",
            "actions:",
            *(f"  ask{n}: {{input: {{user: string}}, read_only: true}}" for n in range(9)),
            "  pay: {input: {user: string}, irreversible: true, confirm: false}",
            "predicates:",
            *(
                f"  p{n}(user): {{says: x, verify: ask{n}(user), verdict: result}}"
                for n in range(9)
            ),
            "procedures:",
            f"  pay: {{requires: {{all: [{{any: [{', '.join(options)}]}}, p8(user)]}}}}",
        ]
    )

    desk = await open_desk(text, lambda action, given: action in ("ask0", "ask7"), "pg")
    functions = desk.session.machine.programs.layouts["pay"].program.functions.values()
    assert Kind.GROUP in {one.kind for one in functions}
    await desk.start("pay", user="ann")
    for number in range(9):
        await desk.call(f"ask{number}", user="ann")
    await desk.push()
    held = await desk.call("pay", user="ann")
    assert held.status is CallStatus.HELD
    assert "`p8` must be true and is false" in held.problem
    assert "`p1`" not in held.problem
    assert "was not done" not in held.problem  # nor the act itself
