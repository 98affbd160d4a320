"""Holes that a third attacker found: a yes used twice, one message for two questions, names that
the machine uses itself, calls that overtake or come back, patterns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from attack_desk import AnsweringTools, AttackDesk, errors, open_desk

from counter_desk import HandClock
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.program.model import Act, Check, Program, ReturnStep
from sopilot.protocols import ToolResult
from sopilot.session.opening import open_session, resume_session
from sopilot.session.questions import UserAnswer
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Amend, Call, Complete, Return
from sopilot.values.json import JSON
from sopilot.values.schema import violation
from sopilot.views.answers import CallStatus


def answering(session: Session) -> list[str]:
    asked: list[str] = []

    async def ask(question: str, about: str, closed: bool) -> UserAnswer:
        asked.append(question)
        await session.assistant_said(question)
        outcome = await session.user_said("yes")
        return UserAnswer("yes", outcome.events[0].seq)

    session.asker = ask
    return asked


async def walk(desk: AttackDesk) -> None:
    """As the program says, up to the act."""
    session = desk.session
    for _ in range(60):
        here = session.machine.position(session.configuration)
        assert here is not None
        if isinstance(here.step, Check):
            await session.operate(Call())
        elif isinstance(here.step, Act) and here.layout.soft:
            shape = session.machine.fits(session.configuration)[0]
            await session.call_tool(shape["action"], shape["arguments"])
        elif isinstance(here.step, ReturnStep):
            await session.operate(Return(True))
        else:
            return


LETTER = """
handbook: x
actions:
  read_booking: {input: {booking: string}}
  send_letter:
    {input: {booking: string}, irreversible: true, changes: [], confirm: A letter will be sent.}
predicates:
  free(booking): {says: free, verify: read_booking(booking), verdict: result.free}
procedures:
  send_letter: {requires: free(booking)}
"""


async def test_a_yes_serves_one_call() -> None:
    desk = await open_desk(LETTER, lambda name, given: {"free": True}, "pg")
    asked = answering(desk.session)
    about = {"action": "send_letter", "booking": "b"}
    await desk.start("send_letter", booking="b")
    await desk.push({"read_booking": {"booking": "b"}, "confirm_with_user": about})
    await desk.done("send_letter", booking="b")
    await desk.start_anew("send_letter", booking="b")
    await desk.push()
    await desk.held("send_letter", "an answer of the user serves one call", booking="b")
    await desk.call("confirm_with_user", **about)
    await desk.done("send_letter", booking="b")
    assert len(asked) == 2


TWO_QUESTIONS = """
handbook: x
actions:
  send: {input: {booking: string}, irreversible: true}
predicates:
  fine(booking): {says: fine, verify: user, question: Is it fine?}
  sure(booking): {says: sure, verify: user, question: Are you sure?}
procedures:
  send: {requires: [fine(booking), sure(booking)]}
"""


@pytest.mark.parametrize("one_message", [True, False])
async def test_of_questions_that_are_put_at_once_each_needs_a_message(one_message: bool) -> None:
    desk = await open_desk(TWO_QUESTIONS, lambda name, given: {}, "pg")
    session = desk.session
    answered = {"fine": asyncio.Event(), "sure": asyncio.Event()}
    messages: list[int] = []

    async def ask(question: str, about: str, closed: bool) -> UserAnswer:
        await answered[about].wait()
        if not messages or not one_message:
            messages.append((await session.user_said("yes")).events[0].seq)
        return UserAnswer("yes", messages[-1])

    session.asker = ask
    await desk.start("send", booking="b")
    await session.operate(Call())
    fine = asyncio.create_task(desk.call("ask_user", question="fine", booking="b"))
    await asyncio.sleep(0)
    sure = asyncio.create_task(desk.call("ask_user", question="sure", booking="b"))
    await asyncio.sleep(0)
    answered["sure"].set()
    await sure
    answered["fine"].set()
    await fine
    await desk.push()
    if one_message:  # which was about the other question
        await desk.held("send", "`fine` must be true and is undecided", booking="b")
    else:
        await desk.done("send", booking="b")
        await session.operate(Complete())
        assert errors(session) == []


@pytest.mark.parametrize("name", ["action", "procedure", "question"])
async def test_an_input_may_be_called_what_the_machine_calls_its_question(name: str) -> None:
    handbook = f"""
handbook: x
actions:
  book:
    input: {{patient: string, {name}: string}}
    irreversible: true
    confirm: "{{patient}} gets {{{name}}}."
predicates:
  wanted(patient, {name}): {{says: wanted, verify: user, question: "Is it {{{name}}}?"}}
procedures:
  book: {{requires: "wanted(patient, {name})"}}
"""

    desk = await open_desk(handbook, lambda name, given: {}, "pg")
    asked = answering(desk.session)
    given = {"patient": "p", name: "x-ray"}
    await desk.start("book", **given)
    await walk(desk)
    answer = await desk.call("book", **{**given, name: "surgery"})
    assert answer.status is CallStatus.HELD
    assert (await desk.call("book", **given)).status is CallStatus.DONE
    assert asked[0] == "Is it x-ray?"
    assert asked[1].startswith("p gets x-ray.")
    assert f'{name}: "x-ray"' in asked[1]
    await desk.session.operate(Complete())
    assert errors(desk.session) == []


IN_FLIGHT = """
handbook: x
actions:
  login: {input: {user: string}, changes: []}
  logout: {input: {user: string}, changes: []}
  read_account: {input: {user: string}}
  send_letter: {input: {user: string}, irreversible: true, changes: []}
  deactivate: {input: {user: string}, irreversible: true}
predicates:
  logged_in(user): {says: in, established_by: login(user), closed_by: logout(user)}
  active(user): {says: active, verify: read_account(user), verdict: result.active}
procedures:
  send_letter: {requires: [logged_in(user), active(user)]}
  deactivate: {requires: active(user)}
"""


@pytest.mark.parametrize("overtaking", ["logout", "deactivate"])
async def test_neither_a_gate_nor_another_guarded_call_overtakes_one_under_way(
    overtaking: str,
) -> None:
    state = {"active": True, "in": False}
    reached = asyncio.Event()

    async def world(name: str, given: Mapping[str, JSON]) -> JSON:
        if name == "login":
            state["in"] = True
        elif name in ("logout", "deactivate"):
            state["active"] = state["in"] = False
        elif name == "send_letter":
            reached.set()
            await asyncio.sleep(0.02)
            assert all(state.values()), "the world denies it"
        return dict(state)

    desk = await open_desk(IN_FLIGHT, world, "pg")
    await desk.start("send_letter", user="u")
    await desk.push({"login": {"user": "u"}, "read_account": {"user": "u"}})
    sending = asyncio.create_task(desk.call("send_letter", user="u"))
    await reached.wait()
    if overtaking == "deactivate":
        await desk.start("deactivate", user="u")
        await desk.push()
    held = await desk.call(overtaking, user="u")
    assert held.status is CallStatus.HELD
    assert "`send_letter` is being carried out" in held.problem
    assert (await sending).status is CallStatus.DONE
    assert (await desk.call(overtaking, user="u")).status is CallStatus.DONE


def programs_of(handbook: str) -> dict[str, Program]:
    return {goal: one.program for goal, one in compile_handbook(load_handbook(handbook)).items()}


WITHDRAWN = """
handbook: x
actions:
  read_account: {input: {user: string}}
  withdraw: {input: {user: string, amount: number}}
  pay: {input: {user: string, amount: number}, irreversible: true}
predicates:
  covered(user, amount):
    {says: covered, verify: read_account(user), verdict: result.balance >= amount}
procedures:
  pay: {requires: "covered(user, amount)"}
"""


async def test_a_call_that_fails_when_it_is_made_again_may_have_been_carried_out() -> None:
    balance, broken = {"now": 500}, [True]

    async def world(name: str, given: Mapping[str, JSON]) -> JSON | ToolResult:
        if name != "read_account" and balance["now"] < 500:
            assert name != "pay", "the world denies it"
            return ToolResult(False, {"error": "not enough"})
        if name == "withdraw":
            balance["now"] -= 500
            if broken.pop():
                raise asyncio.CancelledError
        return {"balance": balance["now"]}

    tools, store, clock = AnsweringTools(world), MemoryStore(), HandClock()
    session = await open_session(store, programs_of(WITHDRAWN), tools=tools, clock=clock)
    desk = AttackDesk(session, tools)
    given: dict[str, JSON] = {"user": "u", "amount": 500}
    await desk.start("pay", **given)
    await desk.push({"read_account": {"user": "u"}})
    with pytest.raises(asyncio.CancelledError):
        await desk.call("withdraw", **given)
    await session.release()
    desk = AttackDesk(await resume_session(store, session.id, tools=tools, clock=clock), tools)
    for call_id in desk.session.retryable:
        await desk.session.retry(call_id)
    await desk.held("pay", "`withdraw`", "its outcome is unknown", **given)


async def test_a_yes_to_the_words_of_another_handbook_is_none() -> None:
    told = LETTER.replace("A letter will be sent.", "Nothing will be sent.")

    tools, store, clock = AnsweringTools(lambda *_: {"free": True}), MemoryStore(), HandClock()
    session = await open_session(store, programs_of(told), tools=tools, clock=clock)
    desk = AttackDesk(session, tools)
    answering(session)
    about = {"action": "send_letter", "booking": "b"}
    calls = {"read_booking": {"booking": "b"}, "confirm_with_user": about}
    await desk.start("send_letter", booking="b")
    await desk.push(calls)
    await session.release()
    session = await resume_session(
        store, session.id, tools=tools, clock=clock,
        programs=programs_of(LETTER), accept_changed=True,
    )  # fmt: skip
    desk = AttackDesk(session, tools)
    asked = answering(session)
    await desk.start("send_letter", booking="b")
    await desk.push()
    await desk.held("send_letter", "`confirm_with_user(", "not been called", booking="b")
    await desk.start_anew("send_letter", booking="b")
    await walk(desk)
    await desk.done("send_letter", booking="b")
    assert "A letter will be sent." in asked[0]


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("^[A-Z]{3}$", "ABC", True),
        ("^[A-Z]{3}$", "ABC\n", False),
        (r"^\d{4}$", "١٢٣٤", False),
        (r"^\w+ [a-z]+$", "pay ann\n", False),
        (r"^a\$[$]$", "a$$", True),
        ("(", "x", False),
    ],
)
def test_a_pattern_means_what_it_means_in_json_schema(pattern: str, text: str, fits: bool) -> None:
    schema: dict[str, object] = {"type": "string", "pattern": pattern}
    assert (violation(text, schema) is None) is fits


BOOKED = """
handbook: x
actions:
  read_booking: {input: {booking: string}}
  pay: {input: {user: string, amount: number}, irreversible: true, approval: manager}
predicates:
  theirs(user, booking):
    {says: theirs, verify: read_booking(booking), verdict: result.owner == user}
procedures:
  pay: {inputs: {booking: string}, requires: "theirs(user, booking)"}
"""


@pytest.mark.parametrize("way", ["amended", "started anew", "the same"])
async def test_an_approval_is_for_the_errand_that_people_saw(way: str) -> None:
    desk = await open_desk(BOOKED, lambda name, given: {"owner": "ann"}, "pg")
    given: dict[str, JSON] = {"user": "ann", "amount": 100}
    await desk.start("pay", **given, booking="b1")
    await walk(desk)
    await desk.call("pay", **given)
    (held,) = desk.session.held_calls
    await desk.session.decide("approve", held.call_id, by="Clara", role="manager")
    if way == "amended":
        assert (await desk.session.operate(Amend({"booking": "b2"}))).accepted
    else:
        booking = "b1" if way == "the same" else "b2"
        await desk.start_anew("pay", **given, booking=booking)
    await walk(desk)
    answer = await desk.call("pay", **given)
    served = way == "the same"
    assert answer.status is (CallStatus.DONE if served else CallStatus.HELD)
    assert bool(desk.made("pay")) is served
