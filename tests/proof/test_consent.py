"""P9: a yes is a closed choice about exactly the arguments shown, and serves one call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from attack_desk import (
    VIEWS_WITH_A_MACHINE,
    AttackDesk,
    answering,
    errors,
    open_desk,
    resumed,
    under_way,
    unproven,
    without_proof,
)

from sopilot.session.questions import UserAnswer
from sopilot.trace.events import Call, Complete
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallStatus

BOOKING = """
handbook: hotel
actions:
  book:
    input: {adults: integer, rooms: integer, note: string}
    irreversible: true
    confirm: "{adults} adults, {rooms} rooms. {note}"
predicates:
  wanted(note): {says: wanted, verify: user, question: "Is this what you want: {note}"}
procedures:
  book: {requires: wanted(note)}
"""


async def test_it_is_asked_again_and_a_plain_yes_counts() -> None:
    desk = await open_desk(BOOKING, lambda name, given: {})
    values: dict[str, JSON] = {"adults": 3, "rooms": 2, "note": "x"}
    questions = answering(desk, "Yes, 2 adults.", "Yes.", "Why?", "well", "Yes please")
    await desk.start("book", **values)
    about = {"action": "book", **values}
    await desk.push({"ask_user": {"question": "wanted", "note": "x"}, "confirm_with_user": about})
    await desk.done("book", **values)
    assert desk.made("book") == [values]
    assert len(questions) == 5
    await desk.session.operate(Complete())
    assert unproven(desk) == set()


REFUEL = """
handbook: tanks
actions:
  refuel: {input: {tank: string}, irreversible: true, confirm: false, changes: []}
  drain: {input: {tank: string}, irreversible: true, confirm: false, changes: []}
predicates:
  full(tank): {says: wanted, verify: user, question: "May we work on {tank}?"}
procedures:
  refuel: {requires: full(tank)}
  drain: {requires: full(tank)}
"""
ABOUT = {"ask_user": {"question": "full", "tank": "t"}}


@pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)
@pytest.mark.parametrize("reusable", [False, True])
async def test_an_answer_serves_one_call(reusable: bool, view: str) -> None:
    text = REFUEL.replace('?"}', '?", reusable: true}') if reusable else REFUEL
    desk = await open_desk(text, lambda name, given: {}, view)
    questions = answering(desk, "yes")
    await desk.start("refuel", tank="t")
    await desk.push(ABOUT)
    await desk.done("refuel", tank="t")
    await desk.session.operate(Complete())
    await desk.start("refuel", tank="t")
    await desk.push()
    if not reusable:
        await desk.held("refuel", "counts for one call", tank="t")
        assert len(desk.made("refuel")) == 1
        await desk.call("ask_user", **ABOUT["ask_user"])
        await desk.start_anew("refuel", tank="t")
        await desk.push()
    await desk.done("refuel", tank="t")
    assert (len(desk.made("refuel")), len(questions)) == (2, 1 if reusable else 2)
    await desk.session.operate(Complete())
    assert unproven(desk) == set()


async def test_the_audit_finds_an_answer_that_served_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = await open_desk(REFUEL, lambda name, given: {})
    answering(desk, "yes")
    await desk.start("refuel", tank="t")
    await desk.push(ABOUT)
    await desk.done("refuel", tank="t")
    await desk.session.operate(Complete())
    assert unproven(desk) == set()
    await desk.start("refuel", tank="t")
    await desk.push()
    without_proof(monkeypatch)
    await desk.done("refuel", tank="t")
    assert "evidence-stale" in errors(desk)


async def test_an_answer_about_another_tank_is_not_used_up() -> None:
    desk = await open_desk(REFUEL, lambda name, given: {})
    questions = answering(desk, "yes")
    for tank in ("t", "u"):
        await desk.start_anew("refuel", tank=tank)
        await desk.push({"ask_user": {"question": "full", "tank": tank}})
    await desk.done("refuel", tank="u")
    await desk.start_anew("refuel", tank="t")
    await desk.push()
    await desk.done("refuel", tank="t")
    assert len(questions) == 2


async def _about_to_refuel(*, breaks_off: bool) -> AttackDesk:
    """With the user's yes."""

    def tank_farm(name: str, given: Mapping[str, JSON]) -> JSON:
        if name == "refuel" and breaks_off:
            raise TimeoutError("no answer in time")
        return {}

    desk = await open_desk(REFUEL, tank_farm)
    answering(desk, "yes")
    await desk.start("refuel", tank="t")
    await desk.push(ABOUT)
    return desk


@pytest.mark.parametrize("again", [False, True], ids=["same", "resumed"])
@pytest.mark.parametrize("carried_out", [True, False])
async def test_an_open_call_has_used_its_answers(again: bool, carried_out: bool) -> None:
    """The second action changes nothing that the first rests on, so only P9 holds it."""

    desk = await _about_to_refuel(breaks_off=True)
    lost = await desk.call("refuel", tank="t")
    assert lost.status is CallStatus.UNKNOWN
    if again:
        desk = await resumed(desk)
        answering(desk, "no")
    await desk.start_anew("drain", tank="t")
    await desk.push()
    await desk.held("drain", "counts for one call", tank="t")
    await desk.session.resolve_outcome(lost.call_id, ok=carried_out, by="dana")
    if carried_out:
        await desk.held("drain", "counts for one call", tank="t")
    else:
        await desk.done("drain", tank="t")
    assert len(desk.made("drain")) == (not carried_out)
    assert unproven(desk) == set()


async def test_a_call_in_flight_has_used_its_answers() -> None:
    desk = await _about_to_refuel(breaks_off=False)
    async with under_way(desk, "refuel", tank="t"):
        await desk.start_anew("drain", tank="t")
        await desk.push()
        await desk.held("drain", "counts for one call", tank="t")
    await desk.held("drain", "counts for one call", tank="t")
    assert not desk.made("drain")


@pytest.mark.parametrize("reusable", [False, True])
@pytest.mark.parametrize("doubted", ["another check", "the answer"])
async def test_a_call_that_people_let_through_has_used_its_answers(
    doubted: str, reusable: bool
) -> None:
    text = REFUEL.replace("refuel: {requires: ", "refuel: {requires: [sealed(tank), ")
    text = text.replace("full(tank)}\n  drain", "full(tank)]}\n  drain")
    text = text.replace(
        "predicates:",
        """  look: {input: {tank: string}, read_only: true}
predicates:
  sealed(tank): {says: s, verify: look(tank), verdict: result.sealed}""",
    )
    if reusable:
        text = text.replace('?"}', '?", reusable: true}')
    if doubted == "the answer":
        text = text.replace("drain: {requires: full(tank)", "drain: {requires: {not: full(tank)}")
    world: dict[str, JSON] = {"sealed": True}
    desk = await open_desk(text, lambda name, given: dict(world))
    answering(desk, "no" if doubted == "the answer" else "yes")
    await desk.start("refuel", tank="t")
    await desk.call("ask_user", **ABOUT["ask_user"])
    await desk.push({"look": {"tank": "t"}})
    world["sealed"] = doubted == "the answer"
    await desk.call("look", tank="t")
    blocked = await desk.call("refuel", tank="t")
    await desk.session.decide("approve", blocked.call_id, by="dana", role="operator")
    assert (await desk.session.run_held(blocked.call_id)).status is CallStatus.DONE
    await desk.start_anew("drain", tank="t")
    await desk.push()
    if reusable:
        await desk.done("drain", tank="t")
    else:
        await desk.held("drain", "counts for one call", tank="t")
    assert (len(desk.made("refuel")), len(desk.made("drain"))) == (1, reusable)


async def test_the_audit_finds_an_answer_that_an_open_call_has_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = await _about_to_refuel(breaks_off=True)
    await desk.call("refuel", tank="t")
    await desk.start_anew("drain", tank="t")
    await desk.push()
    without_proof(monkeypatch)
    await desk.done("drain", tank="t")
    assert "evidence-stale" in errors(desk)


TWO_TEXTS = """
handbook: x
actions:
  read_booking: {input: {booking: string}}
  cancel: {input: {booking: string}, irreversible: true}
predicates:
  free(booking): {says: "free", verify: read_booking(booking), verdict: result.free}
procedures:
  cancel_free: {action: cancel, requires: free(booking), confirm: "You get all your money back."}
  cancel_late: {action: cancel, requires: {not: free(booking)}, confirm: "You get nothing back."}
"""


async def test_the_user_is_shown_the_words_of_the_procedure_that_runs() -> None:
    desk = await open_desk(TWO_TEXTS, lambda name, given: {"free": False})
    asked = answering(desk, "yes")
    about = {"action": "cancel", "booking": "b"}
    await desk.start("cancel_late", booking="b")
    await desk.call("read_booking", booking="b")
    await desk.call("confirm_with_user", **about, procedure="cancel_free")
    await desk.push({"read_booking": {"booking": "b"}})
    await desk.held("cancel", "confirm", booking="b")
    await desk.start_anew("cancel_late", booking="b")
    own = {**about, "procedure": "cancel_late"}
    await desk.push({"read_booking": {"booking": "b"}, "confirm_with_user": own})
    assert "nothing back" in asked[-1]
    assert (await desk.call("cancel", booking="b")).status is CallStatus.DONE


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
    desk = await open_desk(TWO_QUESTIONS, lambda name, given: {})
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
        await desk.held("send", "`fine` must be true, but is undecided", booking="b")
    else:
        await desk.done("send", booking="b")
        await session.operate(Complete())
        assert errors(desk) == []


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

    desk = await open_desk(handbook, lambda name, given: {})
    asked = answering(desk, "yes")
    given = {"patient": "p", name: "x-ray"}
    await desk.start("book", **given)
    await desk.push(follow=True)
    answer = await desk.call("book", **{**given, name: "surgery"})
    assert answer.status is CallStatus.HELD
    assert (await desk.call("book", **given)).status is CallStatus.DONE
    assert asked[0] == "Is it x-ray?"
    assert asked[1].startswith("p gets x-ray.")
    assert f'{name}: "x-ray"' in asked[1]
    await desk.session.operate(Complete())
    assert errors(desk) == []


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


async def test_a_yes_to_the_words_of_another_handbook_is_none() -> None:
    before = LETTER.replace("A letter will be sent.", "Nothing will be sent.")
    desk = await open_desk(before, lambda *_: {"free": True})
    answering(desk, "yes")
    about = {"action": "send_letter", "booking": "b"}
    await desk.start("send_letter", booking="b")
    await desk.push({"read_booking": {"booking": "b"}, "confirm_with_user": about})
    desk = await resumed(desk, LETTER)
    asked = answering(desk, "yes")
    await desk.start("send_letter", booking="b")
    await desk.push()
    await desk.held("send_letter", "`confirm_with_user(", "not been called", booking="b")
    await desk.start_anew("send_letter", booking="b")
    await desk.push({"confirm_with_user": about})
    await desk.done("send_letter", booking="b")
    assert "A letter will be sent." in asked[0]


CANCEL = """
handbook: x
actions:
  cancel: {input: {booking: string}, irreversible: true, confirm: It will be gone.}
  note: {input: {text: string}, read_only: true}
procedures:
  cancel: {}
"""


@pytest.mark.parametrize("last", ["first", "second"])
@pytest.mark.parametrize("settled", [True, False])
async def test_of_two_questions_at_once_the_later_word_counts(last: str, settled: bool) -> None:
    """The user says yes to one question and then no to the other, or the other way round;
    the results come in any order, or one of them does not come."""

    desk = await open_desk(CANCEL, lambda name, given: {"ok": True})
    words = {"first": "no", "second": "yes"} if last == "first" else {}
    words = words or {"first": "yes", "second": "no"}
    waiting = {one: asyncio.Event() for one in words}
    turn = iter(words)

    async def ask(question: str, about: str, closed: bool) -> UserAnswer:
        mine = next(turn)
        if mine != last:
            outcome = await desk.session.user_said(words[mine])
            spoken.set()
            await waiting[mine].wait()
        else:
            await spoken.wait()
            outcome = await desk.session.user_said(words[mine])
            await waiting[mine].wait()
        return UserAnswer(words[mine], outcome.events[0].seq)

    spoken = asyncio.Event()
    desk.session.asker = ask
    await desk.start("cancel", booking="b")
    asked = {
        name: asyncio.create_task(
            desk.session.call_tool(
                "confirm_with_user", {"action": "cancel", "booking": "b"}, f"q-{name}"
            )
        )
        for name in words
    }
    await spoken.wait()
    other = "second" if last == "first" else "first"
    # The word that came last is answered first; the yes that came before it arrives late.
    waiting[last].set()
    await asked[last]
    if settled:
        waiting[other].set()
        await asked[other]
    await desk.push()
    await desk.held("cancel", "cancel_is_confirmed", booking="b")
    waiting[other].set()
    await asyncio.gather(*asked.values())
