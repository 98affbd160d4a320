"""P9: a yes is a closed choice about exactly the arguments shown, and serves one call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from attack_desk import VIEWS_WITH_A_MACHINE, AttackDesk, errors, open_desk

from counter_desk import HandClock
from sopilot.machine.proof.licence import Licence
from sopilot.session import admission as _admission
from sopilot.session.opening import resume_session
from sopilot.session.questions import MOST_ATTEMPTS, UserAnswer
from sopilot.trace.events import Complete
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus

CORRECTIONS = [
    "Yes, 2 adults and 3 rooms.",
    "Please confirm the amount to me.",
    "ok is this from savings",
    "Yes, 50 to carol please.",
]
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


def answering(desk: AttackDesk, words: Sequence[str]) -> list[str]:
    """The user says these in turn, and the last of them for ever. What was asked."""
    left, questions = list(words), []

    async def ask(question: str, about: str, closed: bool) -> UserAnswer:
        assert closed
        questions.append(question)
        await desk.session.assistant_said(question)
        said = left.pop(0) if len(left) > 1 else left[0]
        outcome = await desk.session.user_said(said)
        return UserAnswer(said, outcome.events[0].seq)

    desk.session.asker = ask
    return questions


def unproven(desk: AttackDesk) -> set[str]:
    """What the audit says against a call that was carried out; how the executor moved is
    another matter."""
    return {"gate-shut", "evidence-stale", "guard-disagrees"}.intersection(errors(desk.session))


@pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)
@pytest.mark.parametrize("said", CORRECTIONS)
async def test_a_correction_is_no_consent(said: str, view: str) -> None:
    """Although the model has written the user's words into an argument that is shown."""

    desk = await open_desk(BOOKING, lambda name, given: {}, view)
    values: dict[str, JSON] = {"adults": 3, "rooms": 2, "note": said}
    for first in (said, "yes"):  # corrects the question, or the call
        desk.session.asker = None
        questions = answering(desk, [first, *[said] * 9])
        await desk.start_anew("book", **values)
        about = {"action": "book", **values}
        asked = {"question": "wanted", "note": said}
        await desk.push({"ask_user": asked, "confirm_with_user": about})
        await desk.held("book", "must be true and is undecided", **values)
        assert len(questions) <= 2 * MOST_ATTEMPTS + 1
    assert desk.made("book") == []


async def test_it_is_asked_again_and_a_plain_yes_counts() -> None:
    desk = await open_desk(BOOKING, lambda name, given: {}, "pg")
    values: dict[str, JSON] = {"adults": 3, "rooms": 2, "note": "x"}
    questions = answering(desk, ["Yes, 2 adults.", "Yes.", "Why?", "well", "Yes please"])
    await desk.start("book", **values)
    about = {"action": "book", **values}
    await desk.push({"ask_user": {"question": "wanted", "note": "x"}, "confirm_with_user": about})
    await desk.done("book", **values)
    assert desk.made("book") == [values]
    assert len(questions) == 5
    await desk.session.operate(Complete())
    assert unproven(desk) == set()


async def test_an_undecided_answer_is_asked_a_bounded_number_of_times() -> None:
    desk = await open_desk(BOOKING, lambda name, given: {}, "pg")
    questions = answering(desk, ["maybe"])
    await desk.start("book", adults=1, rooms=1, note="x")
    await desk.push({"ask_user": {"question": "wanted", "note": "x"}})
    assert len(questions) == MOST_ATTEMPTS
    assert "yes or no" in questions[1]


REFUEL = """
handbook: tanks
actions:
  refuel: {input: {tank: string}, irreversible: true, confirm: false, changes: []}
predicates:
  full(tank): {says: wanted, verify: user, question: "Shall {tank} be filled?"REUSABLE}
procedures:
  refuel: {requires: full(tank)}
"""
ABOUT = {"ask_user": {"question": "full", "tank": "t"}}


@pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)
@pytest.mark.parametrize("reusable", [False, True])
async def test_an_answer_serves_one_call(reusable: bool, view: str) -> None:
    text = REFUEL.replace("REUSABLE", ", reusable: true" if reusable else "")
    desk = await open_desk(text, lambda name, given: {}, view)
    questions = answering(desk, ["yes"])
    await desk.start("refuel", tank="t")
    await desk.push(ABOUT)
    await desk.done("refuel", tank="t")
    await desk.session.operate(Complete())
    await desk.start("refuel", tank="t")
    await desk.push()
    if not reusable:
        await desk.held("refuel", "serves one call", tank="t")
        assert len(desk.made("refuel")) == 1
        await desk.call("ask_user", **ABOUT["ask_user"])
        await desk.start_anew("refuel", tank="t")
        await desk.push()
    await desk.done("refuel", tank="t")
    assert (len(desk.made("refuel")), len(questions)) == (2, 1 if reusable else 2)
    await desk.session.operate(Complete())
    assert unproven(desk) == set()


async def test_the_audit_finds_an_answer_that_served_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = await open_desk(REFUEL.replace("REUSABLE", ""), lambda name, given: {}, "pg")
    answering(desk, ["yes"])
    await desk.start("refuel", tank="t")
    await desk.push(ABOUT)
    await desk.done("refuel", tank="t")
    await desk.session.operate(Complete())
    assert unproven(desk) == set()
    await desk.start("refuel", tank="t")
    await desk.push()
    monkeypatch.setattr(_admission, "_license", lambda session, arguments: Licence())
    await desk.done("refuel", tank="t")
    assert "evidence-stale" in errors(desk.session)


async def test_an_answer_about_another_tank_is_not_used_up() -> None:
    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {}

    desk = await open_desk(REFUEL.replace("REUSABLE", ""), answers, "pg")
    questions = answering(desk, ["yes"])
    for tank in ("t", "u"):
        await desk.start_anew("refuel", tank=tank)
        await desk.push({"ask_user": {"question": "full", "tank": tank}})
    await desk.done("refuel", tank="u")
    await desk.start_anew("refuel", tank="t")
    await desk.push()
    await desk.done("refuel", tank="t")
    assert len(questions) == 2


TWO_ACTIONS = """
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


async def _refuel_left_open(in_flight: bool) -> tuple[AttackDesk, asyncio.Event]:
    """A refuel that rests on the user's yes, and has no answer yet."""
    answered = asyncio.Event()

    async def late() -> JSON:
        await answered.wait()
        return {}

    def tank_farm(name: str, given: Mapping[str, JSON]) -> Any:
        if name == "refuel" and in_flight:
            return late()
        if name == "refuel":
            raise TimeoutError("no answer in time")
        return {}

    desk = await open_desk(TWO_ACTIONS, tank_farm, "pg")
    answering(desk, ["yes"])
    await desk.start("refuel", tank="t")
    await desk.push(ABOUT)
    return desk, answered


@pytest.mark.parametrize("resumed", [False, True], ids=["same", "resumed"])
@pytest.mark.parametrize("carried_out", [True, False])
async def test_an_open_call_has_used_its_answers(resumed: bool, carried_out: bool) -> None:
    """The second action changes nothing that the first rests on, so only P9 holds it."""

    desk, _ = await _refuel_left_open(in_flight=False)
    lost = await desk.call("refuel", tank="t")
    assert lost.status is CallStatus.UNKNOWN
    if resumed:
        await desk.session.release()
        again = await resume_session(
            desk.session._store, desk.session.id, tools=desk.tools, clock=HandClock()
        )
        desk = AttackDesk(again, desk.tools)
        answering(desk, ["no"])
    await desk.start_anew("drain", tank="t")
    await desk.push()
    await desk.held("drain", "serves one call", tank="t")
    await desk.session.resolve_outcome(lost.call_id, ok=carried_out, by="dana")
    if carried_out:
        await desk.held("drain", "serves one call", tank="t")
    else:
        await desk.done("drain", tank="t")
    assert len(desk.made("drain")) == (not carried_out)
    assert unproven(desk) == set()


async def test_a_call_in_flight_has_used_its_answers() -> None:
    desk, answered = await _refuel_left_open(in_flight=True)
    first = asyncio.create_task(desk.call("refuel", tank="t"))
    while not desk.made("refuel"):
        await asyncio.sleep(0)
    await desk.start_anew("drain", tank="t")
    await desk.push()
    await desk.held("drain", "serves one call", tank="t")
    answered.set()
    assert (await first).status is CallStatus.DONE
    await desk.held("drain", "serves one call", tank="t")
    assert not desk.made("drain")


async def test_the_audit_finds_an_answer_that_an_open_call_has_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk, _ = await _refuel_left_open(in_flight=False)
    await desk.call("refuel", tank="t")
    await desk.start_anew("drain", tank="t")
    await desk.push()
    monkeypatch.setattr(_admission, "_license", lambda session, arguments: Licence())
    await desk.done("drain", tank="t")
    assert "evidence-stale" in errors(desk.session)
