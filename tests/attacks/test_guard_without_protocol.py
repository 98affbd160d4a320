"""Attacks on sessions without a protocol. The judges are the shop's state and the audit."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from small_desks import AnsweringTools, programs_of
from sopilot.audit.audit import audit_trace
from sopilot.handbook.expressions import judge
from sopilot.machine.automation import Automation
from sopilot.program.model import Act
from sopilot.protocols import ToolResult
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.session.questions import UserAnswer
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import DomainCall, Start
from sopilot.values.json import JSON
from sopilot.values.text import quote_value
from sopilot.views.step_answers import CallStatus

BOOK = """
handbook: payments
actions:
  login: {input: {customer: string, password: {type: string, secret: true}}}
  read_balance: {input: {customer: string}, read_only: true, requires: logged_in(customer)}
  pay: {input: {customer: string, amount: number, note: {type: string, required: false}},
        irreversible: true, confirm: false}
  close: {input: {customer: string}, irreversible: true, confirm: "The account will be closed."}
predicates:
  logged_in(customer):
    says: The customer {customer} has logged in.
    established_by: login(customer, password)
  covered(customer, amount):
    says: The account of {customer} covers {amount}.
    verify: read_balance(customer)
    verdict: result.balance >= amount
procedures:
  pay: {requires: covered(customer, amount)}
  close: {requires: logged_in(customer)}
"""


class Bank(AnsweringTools):
    def __init__(self) -> None:
        super().__init__(self.answer)

    @property
    def done(self) -> list[tuple[str, dict[str, JSON]]]:
        return [made for made in self.made if made[0] in ("pay", "close")]

    def answer(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        if name == "login":
            return ToolResult(arguments["password"] == "sesame", "hello")
        return ToolResult(True, {"balance": 417})


async def opened(bank: Bank, guard: str = "ask", book: str = BOOK) -> Session:
    settings = Settings(automation=Automation(complete=True), guard=guard)
    return await open_session(MemoryStore(), programs_of(book), tools=bank, settings=settings)


async def call(session: Session, name: str, **arguments: JSON) -> str:
    return (await session.call_tool(name, arguments)).text


async def log_in(session: Session) -> None:
    await call(session, "login", customer="anna", password="sesame")
    await call(session, "read_balance", customer="anna")


def findings(session: Session) -> list[str]:
    programs = session.programs.programs
    report = audit_trace(programs, session.events, judge=judge, ended=False)
    return [f"{one.code}: {one.explanation}" for one in report.findings]


@pytest.mark.parametrize(
    "again",
    [
        {"amount": 50, "customer": "anna"},
        {"customer": "anna", "amount": 50.0},
        {"customer": "anna", "amount": 50, "note": None},
        {"customer": "anna ", "amount": 50},
        {"customer": "an\u200bna", "amount": 50},
    ],
)
@pytest.mark.parametrize("guard", ["ask", "auto"])
async def test_one_request_is_carried_out_once_however_it_is_spelled(
    guard: str, again: dict[str, JSON]
) -> None:
    bank = Bank()
    session = await opened(bank, guard)
    await log_in(session)
    await call(session, "pay", customer="anna", amount=50)
    await log_in(session)
    await session.call_tool("pay", again)
    assert len(bank.done) == 1
    await session.user_said("The same once more, please.")
    await log_in(session)
    await call(session, "pay", customer="anna", amount=50)
    assert len(bank.done) == 2
    assert findings(session) == []


@pytest.mark.parametrize("guard", ["ask", "auto"])
async def test_an_amendment_does_not_repeat_an_act(guard: str) -> None:
    bank = Bank()
    book = BOOK.replace("irreversible: true, confirm: false", "approval: supervisor")
    session = await opened(bank, guard, book)
    await log_in(session)
    for amount, decision, arguments in (
        (50, "approve", None),
        (60, "amend", {"customer": "anna", "amount": 50}),
    ):
        await log_in(session)
        held = await session.call_tool("pay", {"customer": "anna", "amount": amount})
        await session.decide(
            decision, held.call_id, by="ann", role="supervisor", arguments=arguments
        )
        await session.run_held(held.call_id)
    assert [arguments["amount"] for _, arguments in bank.done] == [50]
    assert findings(session) == []


FREIGHT = """
handbook: freight
actions:
  look_up: {input: {load: string}, read_only: true}
  book_slot: {input: {load: string}, irreversible: true, approval: dispatcher, changes: []}
  weigh: {input: {load: string}, irreversible: true, confirm: false, changes: []}
  send: {input: {load: string}, irreversible: true, confirm: false, recheck: true}
predicates:
  booked(load):
    says: A slot is booked for {load}.
    established_by: book_slot(load)
  light(load):
    says: The load {load} is light.
    verify: weigh(load)
    verdict: result.kg < 100
  insured(load):
    says: The load {load} is insured.
    verify: look_up(load)
    verdict: result.insured
procedures:
  send: {requires: [booked(load), light(load)]}
  book_slot: {requires: insured(load)}
  weigh: {requires: insured(load)}
"""


class Depot(Bank):
    insured = False

    @property
    def done(self) -> list[tuple[str, dict[str, JSON]]]:
        return [made for made in self.made if made[0] != "look_up"]

    def answer(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        return ToolResult(True, {"insured": self.insured} if name == "look_up" else {"kg": 20})


@pytest.mark.parametrize("guard", ["ask", "auto"])
async def test_the_runtime_makes_no_guarded_call_by_itself(guard: str) -> None:
    """Neither to open a gate, nor as evidence, nor to read it once more before the act."""
    depot = Depot()
    session = await opened(depot, guard, FREIGHT)
    assert "First call `book_slot" in await call(session, "send", load="l-1")
    await call(session, "weigh", load="l-1")
    assert depot.done == []
    depot.insured = True
    await call(session, "look_up", load="l-1")
    await call(session, "weigh", load="l-1")
    held = await session.call_tool("book_slot", {"load": "l-1"})
    assert "First call `book_slot" in await call(session, "send", load="l-1")
    assert [name for name, _ in depot.done] == ["weigh"]
    await call(session, "book_slot", load="l-1")
    await session.decide("approve", held.call_id, by="ann", role="dispatcher")
    await call(session, "book_slot", load="l-1")
    await call(session, "send", load="l-1")
    assert [name for name, _ in depot.done] == ["weigh", "book_slot", "send"]
    assert findings(session) == []


async def test_a_value_that_an_answer_shortened_is_whole_again() -> None:
    """An agent copies it from the answer that names the missing calls."""
    bank, customer = Bank(), "anna " + "x" * 400
    session = await opened(bank)
    missing = await call(session, "pay", customer=customer, amount=50)
    shown = json.loads(quote_value(customer))
    assert shown in missing
    await call(session, "login", customer=shown, password="sesame")
    await call(session, "read_balance", customer=shown)
    await call(session, "pay", customer=shown, amount=50)
    assert bank.done == [("pay", {"customer": customer, "amount": 50})]
    assert findings(session) == []


async def test_a_reply_to_a_question_is_no_new_request() -> None:
    bank = Bank()
    session = await opened(bank)

    async def ask(question: str, about: str, closed: bool) -> UserAnswer:
        said = await session.user_said("no")
        return UserAnswer("no", said.events[0].seq)

    session.asker = ask
    await log_in(session)
    await call(session, "pay", customer="anna", amount=50)
    await call(session, "close", customer="anna")  # the user is asked, and says no
    await log_in(session)
    answer = await session.call_tool("pay", {"customer": "anna", "amount": 50})
    assert answer.status is CallStatus.HELD
    assert bank.done == [("pay", {"customer": "anna", "amount": 50})]


async def test_the_audit_finds_an_act_that_nobody_asked_for_again() -> None:
    bank = Bank()
    session = await opened(bank)
    await log_in(session)
    await call(session, "pay", customer="anna", amount=50)
    await log_in(session)
    arguments: dict[str, JSON] = {"customer": "anna", "amount": 50}
    await _forge(session, "pay", arguments)
    assert any("nobody asked for it again" in one for one in findings(session))


@pytest.mark.parametrize("logged_in", [False, True])
async def test_the_audit_finds_a_forged_start_at_the_act(logged_in: bool) -> None:
    session = await opened(Bank())
    if logged_in:
        await log_in(session)
    await _forge(session, "pay", {"customer": "anna", "amount": 900})
    assert any("ran unproven" in one for one in findings(session))


async def _forge(session: Session, action: str, arguments: dict[str, JSON]) -> None:
    """A start at the act, and the act, as if the guard had let it through."""
    steps = session.machine.programs.layouts[action].entry.steps.values()
    act = next(step.label for step in steps if isinstance(step, Act) and step.goal)
    async with session.writing():
        await session.step(Start(action, arguments, act))
        await session.step(DomainCall("forged", action, arguments, {"grade": "proven"}))


@pytest.mark.parametrize("guard", ["ask", "auto"])
async def test_a_customer_who_is_not_identified_learns_nothing(guard: str) -> None:
    bank = Bank()
    session = await opened(bank, guard)
    unknown = await call(session, "pay", customer="anna", amount=900)
    await call(session, "login", customer="anna", password="guess")
    failed = await call(session, "pay", customer="anna", amount=900)
    for text in (unknown, failed):
        assert "417" not in text
        assert "covers" not in text
    assert bank.given("read_balance") == []
    assert bank.done == []


@pytest.mark.parametrize("guard", ["ask", "auto"])
async def test_no_secret_shows_in_an_answer_or_in_the_trace(guard: str) -> None:
    bank = Bank()
    session = await opened(bank, guard)
    session.supplied["password"] = "sesame"
    texts = [await call(session, "pay", customer="anna", amount=amount) for amount in (900, 50)]
    texts.append(await call(session, "login", customer="anna", password="sesame"))
    texts += [await call(session, "pay", customer="anna", amount=amount) for amount in (900, 50)]
    texts.append(await call(session, "pay", customer="sesame", amount=50))
    assert not any("sesame" in text for text in texts[:-1])
    shown = [repr(sealed.event.payload) for sealed in session.events]
    assert not any("sesame" in text for text in shown[:-3])
