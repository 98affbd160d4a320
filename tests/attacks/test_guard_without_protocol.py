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
            return ToolResult(arguments["password"] == "sesame", {"hello": arguments["customer"]})
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


PRIVATE = """
handbook: private
actions:
  login: {input: {user: string, password: {type: string, secret: true}}, changes: []}
  ring: {input: {user: string, code: {type: string, secret: true}}, changes: []}
  logout: {input: {user: string}, changes: []}
  list_cards: {input: {user: string}, read_only: true}
  read_card: {input: {user: string, card: string}, read_only: true, requires: logged_in(user)}
  read_account: {input: {user: string}, read_only: true, requires: logged_in(user)}
  pay: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  logged_in(user):
    says: "{user} has logged in."
    established_by: login(user, password)
    closed_by: logout(user)
  rang(user): {says: "{user} rang.", established_by: "ring(user, code)"}
  solvent(user): {says: Solvent., verify: read_account(user), verdict: result.balance > 0}
  cards_valid(user):
    says: Every card is valid.
    verify:
      all:
        - list_cards(user)
        - {call: "read_card(user, card)", for_each: list_cards.cards as card}
    verdict: results.read_card.all(it, it.valid)
procedures:
  pay: {requires: REQUIRES}
"""


class PrivateBank(AnsweringTools):
    """``leaks`` are the reads that it answered to somebody who wasn't logged in."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.logged_in: set[JSON] = set()
        self.leaks: list[str] = []
        self.paid = 0

    def answer(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        user = arguments["user"]
        if name == "login":
            if arguments["password"] != "sesame":
                return ToolResult(False, {"error": "wrong password"})
            self.logged_in.add(user)
        elif name == "logout":
            self.logged_in.discard(user)
        elif name.startswith("read_") and user not in self.logged_in:
            self.leaks.append(name)
        self.paid += name == "pay"
        value = {"balance": 9, "valid": True, "cards": ["k-1", "k-2"]}
        return ToolResult(True, True if name in ("login", "ring", "logout") else value)


_READ_BEFORE_ITS_GATE = [
    "{first: [logged_in(user), solvent(user)]}",
    "{any: [logged_in(user), solvent(user)]}",
    "{any: [logged_in(user), {not: solvent(user)}]}",
    "{any: [logged_in(user), {all: [rang(user), cards_valid(user)]}]}",
    "[solvent(user)]",
    "{in_order: [cards_valid(user), logged_in(user)]}",
]


@pytest.mark.parametrize("requires", _READ_BEFORE_ITS_GATE)
async def test_the_runtime_reads_nothing_whose_own_gate_is_shut(requires: str) -> None:
    bank = PrivateBank()
    session = await opened(bank, "auto", PRIVATE.replace("REQUIRES", requires))
    text = await call(session, "pay", user="anna")
    assert (bank.leaks, bank.paid) == ([], 0)
    assert 'login(user="anna"' in text
    assert "read_" not in text.partition("login")[0]
    session.supplied["password"] = "sesame"
    await call(session, "pay", user="anna")
    assert (bank.leaks, bank.paid) == ([], 1)
    assert findings(session) == []


@pytest.mark.parametrize("requires", _READ_BEFORE_ITS_GATE)
async def test_a_login_that_fails_opens_no_read(requires: str) -> None:
    bank = PrivateBank()
    session = await opened(bank, "auto", PRIVATE.replace("REQUIRES", requires))
    session.supplied["password"] = "wrong"
    await call(session, "pay", user="anna")
    await call(session, "pay", user="anna")
    assert (bank.leaks, bank.paid) == ([], 0)
    assert findings(session) == []


@pytest.mark.parametrize("requires", _READ_BEFORE_ITS_GATE)
async def test_an_agent_is_told_of_the_gate_before_the_read_behind_it(requires: str) -> None:
    bank = PrivateBank()
    session = await opened(bank, "ask", PRIVATE.replace("REQUIRES", requires))
    for _ in range(4):
        answer = await session.call_tool("pay", {"user": "anna"})
        if answer.status is CallStatus.DONE:
            break
        assert answer.plan is not None
        for need in answer.plan.needs:
            for wanted in need.calls:
                secrets = dict.fromkeys(wanted.open, "sesame")
                await session.call_tool(wanted.act.action, {**wanted.arguments, **secrets})
    assert (bank.leaks, bank.paid) == ([], 1)
    assert findings(session) == []


async def test_the_runtime_reads_only_behind_one_of_several_gates() -> None:
    """A requirement with options isn't a gate that the compiler hoists."""
    book = PRIVATE.replace("REQUIRES", "[any: [logged_in(user), rang(user)], solvent(user)]")
    book = book.replace(
        "read_account: {input: {user: string}, read_only: true, requires: logged_in(user)}",
        "read_account: {input: {user: string}, read_only: true,"
        " requires: {any: [logged_in(user), rang(user)]}}",
    )
    bank = PrivateBank()
    session = await opened(bank, "auto", book)
    await call(session, "pay", user="anna")
    assert bank.given("read_account") == []
    await call(session, "login", user="bob", password="sesame")
    await call(session, "pay", user="anna")
    assert bank.given("read_account") == []
    await call(session, "ring", user="anna", code="1")
    await call(session, "pay", user="anna")
    assert bank.given("read_account") == [{"user": "anna"}]
    assert bank.paid == 1
    assert findings(session) == []


async def test_nothing_is_read_again_behind_a_gate_that_was_closed() -> None:
    bank = PrivateBank()
    book = PRIVATE.replace("REQUIRES", "{first: [logged_in(user), solvent(user)]}")
    book = book.replace("irreversible: true,", "irreversible: true, recheck: true,")
    session = await opened(bank, "ask", book)
    await call(session, "login", user="anna", password="sesame")
    await call(session, "read_account", user="anna")
    await call(session, "logout", user="anna")
    text = await call(session, "pay", user="anna")
    assert (bank.leaks, bank.paid) == ([], 0), text
    assert findings(session) == []
    await call(session, "login", user="anna", password="sesame")
    await call(session, "pay", user="anna")
    assert (bank.leaks, bank.paid) == ([], 1)
    assert findings(session) == []
