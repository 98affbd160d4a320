"""Plain functions that odd values, threads and event loops reach. The judge is what was done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import refund_shop
import sopilot
from refund_shop import Shop

CONFIRMED = refund_shop.BOOK.replace("CONFIRM", '"Paid back."')
PLAIN = refund_shop.BOOK.replace("CONFIRM", "false")


def guarded(tmp_path: Path, text: str, *functions: Callable[..., Any], **options: Any) -> Any:
    book = tmp_path / "book.yaml"
    book.write_text(text, "utf-8")
    return sopilot.guard(book, *functions, **options)


def refunds(tmp_path: Path, shop: Shop, text: str = PLAIN, **options: Any) -> Any:
    return guarded(tmp_path, text, shop.login, shop.find_order, shop.refund, **options)


@pytest.mark.parametrize("password", ["guess", "guess\ud800", "\udfffsesame"])
def test_a_wrong_password_opens_no_gate_however_it_is_written(
    tmp_path: Path, password: str
) -> None:
    """A lone surrogate is no text: the function is given the password that was recorded."""
    shop = Shop()
    login, find_order, refund = refunds(tmp_path, shop)
    with sopilot.conversation("c-1"):
        with pytest.raises(sopilot.ToolFailed, match="wrong password"):
            login("anna", password)
        find_order("anna", "o-1")
        with pytest.raises(sopilot.Refused, match="logged in"):
            refund("anna", "o-1", 50)
    assert shop.paid == []


NO_SUCCESS: list[Any] = [
    None, False, 0, "", [], {}, "Error: wrong password", "Failed: wrong password",
    {"error": "wrong password"}, {"ok": False}, {"success": False}, {"result": None},
    {"result": False}, {"status": "error"}, {"status": 401}, "false", "null", "0", "  ", "None",
    '\n{"ok": false}', "ERROR: wrong password", {"status": "failed"}, [False], [{"error": "no"}],
    ["Error: wrong password", "try again"],
    # Only a verdict knows what these mean.
    "denied", "Access denied", "Fehler: falsches Passwort", "OTP sent", 7, {"authenticated": False},
    {"customer": None}, {"status": "denied"}, {"result": "denied", "id": 1}, ["denied"],
    [{"customer": "anna"}, "denied"], '{"authenticated": false}', {"code": 401},
    "Hello, your account is locked", {"logged_in": False, "known": True}, {"message": "denied"},
    [{"type": "text", "text": "Access denied"}], {"content": [{"type": "text", "text": "denied"}]},
    {"Status": "denied"}, {"code": "401"}, {"error_code": 12}, {"detail": "Wrong password"},
    {"data": {"success": False}}, {"users": []}, "Hello, enter your PIN.", "Found 0 customers",
    "OK: password is bad", "Hello. Password mismatch.", "Verified: 0", "您好，请输入密码",
    {"customer": "anna", "user_exists": False}, {"status": "mfa_required", "customer": "anna"},
]  # fmt: skip


@pytest.mark.parametrize("fails_next", [False, True])
@pytest.mark.parametrize("answer", NO_SUCCESS, ids=repr)
def test_an_answer_that_is_no_clear_success_opens_no_gate(
    tmp_path: Path, answer: Any, fails_next: bool
) -> None:
    """Although the login that answers it doesn't raise. A later failure doesn't hide the answer."""
    shop, answers = Shop(), [answer, {"customer": "anna"}]

    def login(customer: str, password: str) -> Any:
        if not answers:
            raise sopilot.ToolFailed("busy")
        return answers.pop(0)

    login, find_order, refund = guarded(tmp_path, PLAIN, login, shop.find_order, shop.refund)
    with sopilot.conversation("c-1"):
        login("anna", "guess")
        if fails_next:
            answers.clear()
            with pytest.raises(sopilot.ToolFailed):
                login("anna", "guess")
            answers.append(True)
        find_order("anna", "o-1")
        with pytest.raises(sopilot.NotCarriedOut, match=r"busy|clearly say"):
            refund("anna", "o-1", 50)
        assert shop.paid == []
        login("anna", "guess")
        find_order("anna", "o-1")
        refund("anna", "o-1", 50)
    assert shop.paid == [("anna", "o-1", 50)]


BASKETS = """
handbook: baskets
actions:
  find: {input: {tags: array}, read_only: true}
  order: {input: {prices: object}, irreversible: true, confirm: false}
  label: {input: {tags: array}, irreversible: true, confirm: false}
predicates:
  cheap(prices):
    says: The basket is cheap.
    verify: arguments
    verdict: lookup(prices, 'usd', 0) + lookup(prices, '1', 0) <= 100
  known(tags): {says: The tags are known., verify: find(tags), verdict: result.known}
procedures:
  order: {requires: cheap(prices)}
  label: {requires: known(tags)}
"""


PHARMACY = """
handbook: pharmacy
actions:
  identify_card: {input: {card: string}, changes: []}
  identify_birth: {input: {surname: string, born: string}, changes: []}
  leave: {input: {patient: string}, changes: []}
  read_script: {input: {script: string}, reads: [scripts]}
  read_drug: {input: {drug: string}, reads: []}
  read_stock: {input: {drug: string}, reads: [scripts]}
  read_allergies: {input: {patient: string}, reads: []}
  inspect: {input: {drug: string}, changes: []}
  dispense:
    input: {patient: string, script: string, drug: string, count: integer}
    irreversible: true
    confirm: false
    changes: [scripts]
predicates:
  by_card(patient):
    says: The patient {patient} has shown a card.
    established_by: identify_card(card)
    closed_by: leave(patient)
    verdict: result.patient == patient
    principal: true
  by_birth(patient):
    says: The patient {patient} has told name and birthday.
    established_by: identify_birth(surname, born)
    closed_by: leave(patient)
    verdict: result.patient == patient
    principal: true
  prescribed(patient, script, count):
    says: "{script} is for {count} packs for {patient}."
    verify: read_script(script)
    verdict: result.patient == patient && count > 0 && count <= result.left
  controlled(drug): {says: "{drug} is controlled.", verify: read_drug(drug), verdict: result.controlled}
  signed(script): {says: "Two signed {script}.", verify: read_script(script), verdict: result.signed >= 2}
  stocked(drug, count): {says: "{drug} is there.", verify: read_stock(drug), verdict: result.count >= count}
  tolerated(patient): {says: "{patient} has no allergy.", verify: read_allergies(patient), verdict: result.none}
  inspected(drug): {says: "{drug} was inspected.", done: inspect(drug)}
requirements:
  known(patient): {first: [by_card(patient), by_birth(patient)]}
procedures:
  dispense:
    requires:
      in_order:
        - known(patient)
        - prescribed(patient, script, count)
        - {when: controlled(drug), then: "signed(script)"}
        - stocked(drug, count)
        - tolerated(patient)
        - inspected(drug)
"""  # noqa: E501


class Pharmacy:
    """Knows who is at the counter. ``lost``: calls whose answers don't arrive."""

    def __init__(self, *lost: tuple[str, str]) -> None:
        self.lost = lost
        self.patient: str | None = None
        self.calls: list[str] = []
        self.dispensed: list[tuple[str | None, str]] = []

    def _answer(self, name: str, value: str, answer: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(name)
        if (name, value) in self.lost:
            raise RuntimeError("no answer")
        return answer

    def identify_card(self, card: str) -> dict[str, Any]:
        self.patient = {"c-1": "ann", "c-2": "bob"}[card]
        return self._answer("identify_card", card, {"patient": self.patient})

    def identify_birth(self, surname: str, born: str) -> dict[str, Any]:
        self.patient = {"Ann": "ann", "Bob": "bob"}[surname]
        return self._answer("identify_birth", surname, {"patient": self.patient})

    def leave(self, patient: str) -> dict[str, Any]:
        self.patient = None
        return self._answer("leave", patient, {})

    def read_script(self, script: str) -> dict[str, Any]:
        return self._answer("read_script", script, {"patient": "ann", "left": 3, "signed": 2})

    def read_drug(self, drug: str) -> dict[str, Any]:
        return self._answer("read_drug", drug, {"controlled": True})

    def read_stock(self, drug: str) -> dict[str, Any]:
        return self._answer("read_stock", drug, {"count": 9})

    def read_allergies(self, patient: str) -> dict[str, Any]:
        return self._answer("read_allergies", patient, {"none": True})

    def inspect(self, drug: str) -> dict[str, Any]:
        return self._answer("inspect", drug, {})

    def dispense(self, patient: str, script: str, drug: str, count: int) -> None:
        self.dispensed.append((self.patient, patient))

    def guarded(self, tmp_path: Path) -> dict[str, Callable[..., Any]]:
        functions = [
            self.identify_card, self.identify_birth, self.leave, self.read_script,
            self.read_drug, self.read_stock, self.read_allergies, self.inspect, self.dispense,
        ]  # fmt: skip
        wrapped = guarded(tmp_path, PHARMACY, *functions)
        return {function.__name__: function for function in wrapped}


ANN = ("ann", "s-1", "ibu", 1)


def calls_in(missing: sopilot.Missing) -> list[tuple[str, dict[str, Any]]]:
    """The calls to make first, as an agent reads them. It has no card of Ann's."""
    read = []
    for text in missing.agenda:
        name, _, arguments = text.rstrip(")").partition("(")
        pairs = [each.split("=") for each in arguments.split(", ")]
        read.append((name, {key: value.strip('"') for key, value in pairs}))
    return read


def test_a_customer_who_is_identified_is_not_asked_for_another_proof(tmp_path: Path) -> None:
    """However many checks are open, an agent that makes the missing calls reaches its goal."""
    house = Pharmacy()
    by = house.guarded(tmp_path)
    with sopilot.conversation("c-1"):
        by["inspect"]("ibu")
        with pytest.raises(sopilot.Missing, match=r"Or instead.*identify_birth"):
            by["dispense"](*ANN)
        by["identify_card"]("c-2")
        by["identify_birth"]("Ann", "1990-01-02")
        with pytest.raises(sopilot.Missing) as missing:
            by["dispense"](*ANN)
        for name, arguments in calls_in(missing.value):
            by[name](**arguments)
        by["dispense"](*ANN)
    assert house.calls.count("identify_card") == 1
    assert house.dispensed == [("ann", "ann")]


@pytest.mark.parametrize(
    ("name", "value"), [("identify_card", "c-2"), ("leave", "ann"), ("inspect", "ibu")]
)
def test_no_call_is_advised_while_an_unanswered_one_makes_it_useless(
    tmp_path: Path, name: str, value: str
) -> None:
    house = Pharmacy((name, value))
    by = house.guarded(tmp_path)
    with sopilot.conversation("c-1"):
        if name != "inspect":
            by["inspect"]("ibu")
        by["identify_birth"]("Ann", "1990-01-02")
        with pytest.raises(RuntimeError):
            by[name](value)
        by["read_script"]("s-1")
        by["read_drug"]("ibu")
        by["read_stock"]("ibu")
        by["read_allergies"]("ann")
        with pytest.raises(sopilot.Missing) as missing:
            by["dispense"](*ANN)
        assert missing.value.agenda == ()
        assert f"wait for the answer to `{name}`" in str(missing.value)
        assert "Or instead" not in str(missing.value)
    assert house.dispensed == []


class Currency(str, Enum):  # noqa: UP042  # a `StrEnum` is written as its text
    """Equal to its text, also as a key."""

    USD = "usd"


class Warehouse:
    def __init__(self) -> None:
        self.done: list[object] = []

    def find(self, tags: object) -> dict[str, bool]:
        return {"known": True}

    def order(self, prices: dict[Any, int]) -> None:
        self.done.append(prices.get("usd", 0) + prices.get(1, 0))

    def label(self, tags: object) -> None:
        self.done.append(tags)


def baskets(tmp_path: Path) -> tuple[Any, Any, Any, Warehouse]:
    house = Warehouse()
    return (*guarded(tmp_path, BASKETS, house.find, house.order, house.label), house)


@pytest.mark.parametrize(
    ("prices", "done"),
    [
        ({Currency.USD: 900}, []),
        ({Currency.USD: 90}, [90]),
        ({1: 900, "1": 5}, []),
        ({1: 90}, [90]),
        ({"usd": float("nan")}, []),
    ],
)
def test_keys_are_judged_as_the_function_finds_them(
    tmp_path: Path, prices: dict[Any, Any], done: list[int]
) -> None:
    _, order, _, house = baskets(tmp_path)
    with sopilot.conversation("c-1"):
        try:
            order(prices)
        except sopilot.Refused:
            assert done == []
    assert house.done == done


def test_a_set_is_the_same_in_any_order(tmp_path: Path) -> None:
    find, _, label, house = baskets(tmp_path)
    with sopilot.conversation("c-1"):
        find({1, 9})
        label({9, 1})
        find({1, 9})
        with pytest.raises(sopilot.Refused, match="already"):
            label({1, 9})
    assert house.done == [{1, 9}]


def test_a_question_that_waits_for_its_user_holds_nobody_else_up(tmp_path: Path) -> None:
    shop, asked, paid = Shop(), threading.Event(), threading.Event()
    login, find_order, refund = refunds(tmp_path, shop, CONFIRMED)

    def buy(conversation: str, user: Callable[[str], str]) -> None:
        with sopilot.conversation(conversation, user=user):
            login("anna", "sesame")
            find_order("anna", "o-1")
            refund("anna", "o-1", 50)

    def waits(question: str) -> str:
        find_order("anna", "o-1")  # a function of the same guard
        asked.set()
        return "yes" if paid.wait(10) else "no"

    with ThreadPoolExecutor() as threads:
        slow = threads.submit(buy, "c-1", waits)
        assert asked.wait(10)
        buy("c-2", lambda question: "yes")
        paid.set()
        slow.result()
    assert len(shop.paid) == 2


def test_a_function_that_would_wait_for_its_own_loop_fails(tmp_path: Path) -> None:
    """The runtime reads by itself; the reader calls a guarded function that isn't asynchronous."""
    shop = Shop()

    async def find_order(customer: str, order: str) -> dict[str, str]:
        login("anna", "sesame")
        return shop.find_order(customer, order)

    login, _, refund = guarded(tmp_path, PLAIN, shop.login, find_order, shop.refund, verify="auto")

    def buy() -> None:
        with sopilot.conversation("c-1"):
            login("anna", "sesame")
            with pytest.raises(sopilot.Refused, match="failed"):
                refund("anna", "o-1", 50)
        ended.set()

    ended = threading.Event()
    threading.Thread(target=buy, daemon=True).start()
    assert ended.wait(20)
    assert shop.paid == []


def test_two_threads_in_one_conversation(tmp_path: Path) -> None:
    shop, both = Shop(), threading.Barrier(2)
    login, find_order, refund = refunds(tmp_path, shop)
    talk = sopilot.conversation("c-1")

    def read(order: str) -> None:
        with talk:
            both.wait(10)
            login("anna", "sesame")
            both.wait(10)  # a login may change what was read before it
            find_order("anna", order)
            both.wait(10)

    with ThreadPoolExecutor() as threads:
        list(threads.map(read, ("o-1", "o-2")))
    with pytest.raises(sopilot.UserMistake, match="no-conversation"):
        refund("anna", "o-1", 50)
    with talk:
        refund("anna", "o-1", 50)
    assert shop.paid == [("anna", "o-1", 50)]
