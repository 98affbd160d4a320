"""Gates: open, shut or undecided, by calls that overlap, fail, break off or leave inputs out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from attack_desk import (
    FAILED,
    VIEWS_WITH_A_MACHINE,
    AttackDesk,
    at_the_act,
    errors,
    open_desk,
    without_proof,
)

from sopilot.audit.audit import audit_trace
from sopilot.handbook.reader import load_handbook
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ToolResult
from sopilot.trace.events import Complete
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallStatus

ENDS = """
handbook: till
actions:
  login: {input: {number: number, password: string}}
  logout: {input: {number: number}}
  pay: {input: {number: number}, irreversible: true, confirm: false}
  close: {input: {number: number}, irreversible: true, confirm: false}
predicates:
  known(number):
    says: ok
    established_by: login(number, password)
    closed_by: logout(number)
    principal: true
procedures:
  pay: {requires: known(number)}
  close: {requires: {not: known(number)}}
"""
"""An act that the gate must be open for, and one that it must be shut for."""


class Played:
    """A world in which `login:1` succeeds, `-login:1` fails, `?login:1` breaks off, and `login:1>`
    is answered only at `<login:1`. The password is `x`, or stands behind the number; behind the
    colon of `login:1:` is none, and in `login:1:text` the number is a text. `login:1+` has an
    argument that isn't declared."""

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
            word = token.strip("<>-?+")
            action, number, *password = word.split(":")
            is_text = password == ["text"]
            given: dict[str, JSON] = {"number": number if is_text else json.loads(number)}
            if action == "login" and password != [""]:
                given["password"] = password[0] if password else "x"
            if token.endswith("+"):
                given["more"] = None
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
    """Where the audit, which reads the trace by itself, contradicts the guard."""
    session = desk.session
    report = audit_trace(session.programs.programs, session.events, judge=session.judge)
    return [
        one.explanation
        for one in report.findings
        if one.code == "guard-disagrees" or "unproven" in one.explanation
    ]


BY_SUCCESS = [
    ("", False),
    ("login:1", True),
    ("-login:1", False),
    ("login:2", False),
    ("login:1 logout:1", False),
    ("login:1 logout:1.0", False),
    ("login:1 logout:2.5", True),
    ("login:1 -logout:1", True),
    ("login:1 logout:2", True),
    ("login:1 login:2", False),
    ("login:1 login:2 logout:2", False),
    ("login:1 -login:2", True),
    ("login:1 login:2 login:1", True),
    ("login:2 login:1", True),
    ("login:1 logout:1 login:1", True),
    ("login:1 logout:1 -login:1", False),
    # Of two calls that overlap, it is unknown which came last.
    ("login:1> logout:1 <login:1", None),
    ("login:1 logout:1>", None),
    ("login:1 login:1> logout:1 <login:1", None),
    ("login:1 login:2> login:1 <login:2", None),
    ("login:1>", None),
    ("logout:1> login:1 <logout:1", None),
    ("login:1 login:2> login:2:y <login:2", False),
    # A call with fewer or other inputs may have touched the gate, and proves nothing.
    ("login:1:", None),
    ("login:1+", None),
    ("login:1 logout:1+", None),
    ("login:1 logout:1 login:1:", None),
    ("login:1 login:2:", None),
    ("login:1 login:2: login:1", True),
    ("login:1 login:2: login:2", False),
    ("login:1 login:1:text", None),  # a tool may take it for the number
    ("login:2:text", None),
]
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
BY_VERDICT = [
    ("", False),
    ("login:1", True),
    ("-login:1", False),
    ("login:1 -login:1", None),  # the last answer is no answer to judge by
    ("-login:1 login:1", True),
    ("login:1:y", True),
    ("login:1 login:1:y", True),
    ("login:1> login:1:y <login:1", None),  # with which password it was opened last
    ("login:1:y> login:1> <login:1:y <login:1", None),
    ("login:1 login:1>", None),
    ("login:1 login:1:y>", None),
    ("login:1 login:2>", True),
    ("login:1 ?login:1:y", None),
    ("login:1 -login:1:y", True),
    ("?login:1:y login:1", None),  # it may be carried out at any time
    ("login:2", False),
]


@pytest.mark.parametrize(
    ("handbook", "calls", "is_open"),
    [*((ENDS, *row) for row in BY_SUCCESS), *((LEVELS, *row) for row in BY_VERDICT)],
)
@pytest.mark.parametrize("act", ["pay", "close"])
async def test_open_shut_or_neither_as_the_guard_and_the_audit_read_it(
    handbook: str, calls: str, is_open: bool | None, act: str
) -> None:
    """Where the gate is neither, both acts are held."""
    desk = await open_desk(handbook, played := Played())
    await desk.start(act, number=1)
    await played.play(desk, calls)
    await desk.push()
    answer = await desk.call(act, number=1)
    may = is_open is (act == "pay")
    assert (answer.status is CallStatus.DONE) == may, answer.problem
    assert not disagreements(desk)
    await played.end()


@pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)
@pytest.mark.parametrize(
    ("answers", "paid"),
    [
        ([{"level": 2}], True),
        ([{"level": 1}], False),
        ([{}], False),
        (["none"], False),
        ([{"level": 2}, {"level": 1}], False),
        ([{"level": 2}, FAILED], False),
    ],
)
async def test_the_newest_answer_opens_it(view: str, answers: list[Any], paid: bool) -> None:
    left: list[Any] = list(answers)

    def world(action: str, given: Mapping[str, JSON]) -> JSON:
        return left.pop(0) if action == "login" else {"paid": True}

    login: dict[str, JSON] = {"number": 1, "password": "x"}
    text = LEVELS.replace("result.ok", "result.level >= 2")
    desk = await at_the_act(text, world, "pay", {"number": 1}, {"login": login}, view)
    for _ in answers[1:]:
        await desk.call("login", **login)
    answer = await desk.call("pay", number=1)
    assert (answer.status is CallStatus.DONE) == paid
    assert bool(desk.made("pay")) == paid


def test_a_failure_that_answers_opens_no_gate() -> None:
    for way in ("established_by", "done"):
        with pytest.raises(UserMistake, match="gate-not-found"):
            load_handbook(
                f"""
handbook: x
actions:
  find: {{input: {{user: string}}, not_found: "result.error == 'none'"}}
  pay: {{input: {{user: string}}, irreversible: true}}
predicates:
  known(user): {{says: known, {way}: find(user)}}
procedures:
  pay: {{requires: known(user)}}
"""
            )


CANCEL = """
handbook: cancel
actions:
  cancel: {input: {booking: string, note: {type: string, required: false}}}
  pay: {input: {booking: string}, irreversible: true, confirm: false}
predicates:
  cancelled(booking): {says: "{booking} was cancelled.", done: cancel(booking)}
procedures:
  pay: {requires: cancelled(booking)}
  cancel: {}
"""


@pytest.mark.parametrize(
    ("more", "done"), [({}, True), ({"note": "please"}, True), ({"dry_run": True}, False)]
)
async def test_an_act_counts_as_done_with_any_declared_input(
    more: dict[str, JSON], done: bool
) -> None:
    desk = await open_desk(CANCEL, lambda name, given: {"done": True}, "fused")
    await desk.start("cancel", booking="b")
    await desk.call("cancel", booking="b", **more)
    if done:
        await desk.session.operate(Complete())
    await desk.start("pay", booking="b")
    await desk.push()
    if done:
        await desk.done("pay", booking="b")
        await desk.session.operate(Complete())
        assert errors(desk) == []
    else:
        await desk.held("pay", booking="b")


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


@pytest.mark.parametrize(("user", "held"), [("Jose\u0301", True), ("Josefa", False)])
async def test_a_gate_that_was_opened_for_a_look_alike_is_not_proven_shut(
    user: str, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await open_desk(ENROLLED, lambda name, given: {"known": True})
    await desk.call("enroll", user="Jos\u00e9")
    await desk.start("welcome", user=user)
    await desk.push({"read_user": {"user": user}})
    if held:
        await desk.held("welcome", "`enrolled` must be false", user=user)
        without_proof(monkeypatch)
    await desk.done("welcome", user=user)
    assert ("gate-shut" in errors(desk)) is held
