"""Plain functions under a guard. The judge is the shop's own state: what was paid out."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_serializer

import refund_shop
import sopilot
from refund_shop import Shop
from sopilot.protocols import SystemClock
from sopilot.records.people import change_people
from sopilot.session.opening import attach_session
from sopilot.session.orphans import waiting_in
from sopilot.stores.memory import MemoryStore

BOOK = refund_shop.BOOK.replace("CONFIRM", "false")


def tools_of(shop: Shop, book: Path, **options: Any) -> tuple[Callable[..., Any], ...]:
    return sopilot.guard(book, shop.login, shop.find_order, shop.refund, **options)


@contextmanager
def ready(
    login: Callable[..., Any], find_order: Callable[..., Any], order: str = "o-1"
) -> Iterator[sopilot.Conversation]:
    """A conversation in which Anna has logged in and her order was looked up."""
    with sopilot.conversation("c-1") as talk:
        login("anna", "sesame")
        find_order("anna", order)
        yield talk


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "refunds.yaml"
    path.write_text(BOOK, "utf-8")
    return path


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_a_call_is_blocked_then_proven_then_carried_out(book: Path, shop: Shop) -> None:
    login, find_order, refund = tools_of(shop, book)
    with sopilot.conversation("c-1"):
        with pytest.raises(sopilot.Missing) as missing:
            refund("anna", "o-1", 50)
        assert missing.value.agenda == (
            'login(customer="anna", password=…)',
            'find_order(customer="anna", order="o-1")',
        )
        login("anna", "sesame")
        assert find_order("anna", "o-1") == {"state": "delivered"}
        assert shop.paid == []
        assert refund("anna", "o-1", 50) == "paid 50"
    assert shop.paid == [("anna", "o-1", 50)]


@pytest.mark.parametrize("secret", [", secret: true", ""])
def test_a_store_that_requires_privacy_hides_no_value_from_the_agent(
    tmp_path: Path, shop: Shop, secret: str
) -> None:
    store, book = MemoryStore(), tmp_path / "refunds.yaml"
    book.write_text(BOOK.replace(", secret: true", secret), "utf-8")
    demand = {"what": "privacy", "on": True}
    asyncio.run(change_people(store, "demanded", demand, who=None, clock=SystemClock()))
    _, _, refund = tools_of(shop, book, store=store)
    with sopilot.conversation("c-1"), pytest.raises(sopilot.Missing) as missing:
        refund("anna", "o-1", 50)
    assert missing.value.agenda == (
        'login(customer="anna", password=…)',
        'find_order(customer="anna", order="o-1")',
    )
    assert all(call in str(missing.value) for call in missing.value.agenda)


def test_what_a_login_allows_is_listed_as_waiting_for_it(tmp_path: Path, shop: Shop) -> None:
    """An agent may make calls of one list at once: none may read although a login failed."""
    more = """  confirm: {input: {customer: string, code: string}}
predicates:
  confirmed(customer, code): {says: Confirmed., established_by: "confirm(customer, code)"}"""
    text = BOOK.replace("predicates:", more)
    text = text.replace("amount: number", "amount: number, code: string")
    text = text.replace("[small(", "[logged_in(customer), 'confirmed(customer, code)', small(")
    book = tmp_path / "refunds.yaml"
    book.write_text(text, "utf-8")

    def refund(customer: str, order: str, amount: float, code: str) -> str:
        raise AssertionError(f"paid {amount} to {customer}")

    with sopilot.conversation("c-1"), pytest.raises(sopilot.Missing) as missing:
        sopilot.guard(book, refund)("anna", "o-1", 50, "12")
    lists = str(missing.value).split("; if that succeeds, ")
    names = ("login", "confirm", "find_order")
    listed = [[name for name in names if f"`{name}(" in calls] for calls in lists]
    assert listed == [["login"], ["confirm"], ["find_order"]], missing.value


def test_a_refusal_says_what_is_not_so_and_its_remedy(book: Path, shop: Shop) -> None:
    login, find_order, refund = tools_of(shop, book)
    unmet = pytest.raises(sopilot.Refused, match="The order o-2 was delivered")
    with ready(login, find_order, "o-2"), unmet as refused:
        refund("anna", "o-2", 50)
    assert refused.value.remedy == "Wait for the delivery."
    assert [reason.rule for reason in refused.value.reasons] == ["delivered"]
    assert shop.paid == []


def test_nothing_is_refused_to_somebody_who_is_not_identified(book: Path, shop: Shop) -> None:
    _, _, refund = tools_of(shop, book)
    with sopilot.conversation("c-1"), pytest.raises(sopilot.Missing) as missing:
        refund("anna", "o-1", 900)  # too large, but first they must log in
    assert missing.value.agenda == ('login(customer="anna", password=…)',)


def test_a_failed_login_is_refused_until_it_succeeds(book: Path, shop: Shop) -> None:
    login, find_order, refund = tools_of(shop, book)
    with sopilot.conversation("c-1"):
        with pytest.raises(sopilot.ToolFailed):
            login("anna", "guess")
        with pytest.raises(sopilot.Refused, match="wrong password"):
            refund("anna", "o-1", 50)
        login("anna", "sesame")
        find_order("anna", "o-1")
        refund("anna", "o-1", 50)
    assert shop.paid == [("anna", "o-1", 50)]


def test_an_answer_from_before_the_act_is_read_again_and_the_guard_says_why(
    book: Path, shop: Shop
) -> None:
    login, find_order, refund = tools_of(shop, book)
    with ready(login, find_order):
        refund("anna", "o-1", 50)
        again = (
            r"First call `find_order\(.*\)` again, because `refund` \(#\d+\) may have changed it"
        )
        with pytest.raises(sopilot.Missing, match=again) as missing:
            refund("anna", "o-1", 20)
        assert missing.value.agenda == ('find_order(customer="anna", order="o-1")',)
        find_order("anna", "o-1")
        refund("anna", "o-1", 20)
    assert shop.paid == [("anna", "o-1", 50), ("anna", "o-1", 20)]


@pytest.mark.parametrize("slow", ["login", "find_order"])
async def test_a_call_waits_while_what_it_rests_on_is_under_way(
    book: Path, shop: Shop, slow: str
) -> None:
    answered = asyncio.Event()
    waits = {"find_order": answered, slow: answered}
    login, find_order, refund = sopilot.guard(book, *shop.functions(waits))
    async with sopilot.conversation("c-1"):
        opening = asyncio.create_task(login("anna", "sesame"))
        await asyncio.sleep(0.01)
        reading = asyncio.create_task(find_order("anna", "o-1"))
        await asyncio.sleep(0.01)
        with pytest.raises(sopilot.Missing, match=f"wait for the answer to `{slow}`") as missing:
            await refund("anna", "o-1", 50)
        assert missing.value.agenda == ()
        answered.set()
        await asyncio.gather(opening, reading)
        if slow == "login":
            await find_order("anna", "o-1")
        await refund("anna", "o-1", 50)
    assert shop.paid == [("anna", "o-1", 50)]


def test_auto_makes_the_missing_reads_itself(book: Path, shop: Shop) -> None:
    _, _, refund = tools_of(shop, book, verify="auto")
    with sopilot.conversation("c-1") as talk:
        talk.tell(password="sesame")
        assert refund("anna", "o-1", 50) == "paid 50"
        for _ in range(3):  # evidence is fresh again each time, and still nothing is paid twice
            with pytest.raises(sopilot.Refused, match="carried out"):
                refund("anna", "o-1", 50)
        with pytest.raises(sopilot.Refused, match="on its way"):
            refund("anna", "o-2", 50)
    assert shop.paid == [("anna", "o-1", 50)]
    assert shop.reads == 2


NESTED = """
handbook: hotel
actions:
  find_lines: {input: {folio: string}, read_only: true}
  find_balance: {input: {folio: string}, read_only: true}
  find_debts: {input: {folio: string}, read_only: true}
  check_out: {input: {folio: string}, irreversible: true, confirm: false, recheck: true}
predicates:
  settled(folio): {says: S., verify: find_balance(folio), verdict: result.sum == 0}
  free(folio): {says: F., verify: find_debts(folio), verdict: result.sum == 0}
procedures:
  check_out: {requires: [settled(folio), free(folio)]}
"""


@pytest.mark.parametrize("verify", ["ask", "auto"])
def test_a_read_of_the_runtime_may_call_another_function_of_the_guard(
    tmp_path: Path, verify: Any
) -> None:
    book, store = tmp_path / "hotel.yaml", MemoryStore()
    book.write_text(NESTED, "utf-8")

    def find_lines(folio: str) -> list[int]:
        return [5, -5]

    def find_balance(folio: str) -> dict[str, int]:
        return {"sum": sum(lines(folio))}

    def find_debts(folio: str) -> dict[str, int]:
        return {"sum": sum(lines(folio))}

    def check_out(folio: str) -> str:
        return "out"

    lines, balance, debts, leave = sopilot.guard(
        book, find_lines, find_balance, find_debts, check_out, verify=verify, store=store
    )
    with sopilot.conversation("c-1") as talk:
        balance("f-1")
        debts("f-1")
        assert leave("f-1") == "out"
    runner = sopilot.load(book, store=store)
    assert asyncio.run(runner.audit(talk.session_ids()["hotel"])).findings == ()


def test_a_guarded_call_outside_of_a_conversation_is_an_error(book: Path, shop: Shop) -> None:
    _, find_order, refund = tools_of(shop, book)
    for call in (lambda: refund("anna", "o-1", 50), lambda: find_order("anna", "o-1")):
        with pytest.raises(sopilot.UserMistake, match="outside a conversation"):
            call()


def test_threads_share_the_functions_and_nothing_else(book: Path, shop: Shop) -> None:
    login, find_order, refund = tools_of(shop, book)

    def serve(number: int) -> str:
        with sopilot.conversation(f"c-{number}"):
            login(f"customer-{number}", "sesame")
            find_order(f"customer-{number}", "o-1")
            answer: str = refund(f"customer-{number}", "o-1", number)
            return answer

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(serve, range(1, 25)))
    assert answers == [f"paid {number}" for number in range(1, 25)]
    assert len(shop.paid) == 24


async def test_of_three_calls_at_once_one_is_carried_out(book: Path, shop: Shop) -> None:
    paying = asyncio.Event()
    functions = shop.functions({"refund": paying})
    login, find_order, refund = sopilot.guard(book, *functions, refusals="text")
    async with sopilot.conversation("c-1"):
        await login("anna", "sesame")
        await find_order("anna", "o-1")
        calls = [asyncio.create_task(refund("anna", "o-1", 50)) for _ in range(3)]
        await asyncio.sleep(0.1)
        paying.set()
        answers = await asyncio.gather(*calls)
    assert len(shop.paid) == 1
    assert sorted(answer == "paid 50" for answer in answers) == [False, False, True]


async def test_arguments_that_change_before_the_dispatch_are_not_carried_out(book: Path) -> None:
    guard = sopilot.guard(book.with_name("lists.yaml"), refusals="text")
    paid: list[list[str]] = []
    orders = ["o-1"]

    @guard
    async def check(orders: list[str]) -> dict[str, bool]:
        return {"ok": True}

    @guard
    async def pay(orders: list[str]) -> str:
        paid.append(list(orders))
        return "paid"

    def add_an_order(question: str) -> str:
        orders.append("o-9")
        return "yes"

    async with sopilot.conversation("c-1", user=add_an_order):
        await check(orders)
        await pay(orders)
    assert orders == ["o-1", "o-9"]
    assert paid == [["o-1"]]


@pytest.fixture(autouse=True)
def lists(tmp_path: Path) -> None:
    (tmp_path / "lists.yaml").write_text(
        """
handbook: lists
actions:
  check: {input: {orders: {schema: {type: array, items: {type: string}}}}, read_only: true}
  pay: {input: {orders: {schema: {type: array, items: {type: string}}}}, irreversible: true,
        confirm: Paid.}
predicates:
  fine(orders):
    says: The orders {orders} are in order.
    verify: check(orders)
    verdict: result.ok
procedures:
  pay: {requires: fine(orders)}
""",
        "utf-8",
    )


@pytest.mark.parametrize("problem", [StopIteration, SystemExit, KeyboardInterrupt])
def test_an_exception_that_would_stop_the_loop_leaves_the_outcome_unknown(
    book: Path, shop: Shop, problem: type[BaseException]
) -> None:
    def refund(customer: str, order: str, amount: float) -> str:
        shop.refund(customer, order, amount)
        raise problem("late")

    login, find_order, refund = sopilot.guard(book, shop.login, shop.find_order, refund)
    with ready(login, find_order):
        with pytest.raises(problem, match="late"):
            refund("anna", "o-1", 50)
        find_order("anna", "o-1")
        with pytest.raises(sopilot.Missing, match=r"outcome of call .* is unknown"):
            refund("anna", "o-1", 60)
    assert shop.paid == [("anna", "o-1", 50)]


@pytest.mark.parametrize("problem", [StopIteration, SystemExit])
def test_a_read_that_breaks_off_in_any_way_proves_nothing(
    book: Path, shop: Shop, problem: type[BaseException]
) -> None:
    def find_order(customer: str, order: str) -> dict[str, str]:
        raise problem("nothing found")

    functions = (shop.login, find_order, shop.refund)
    login, _, refund = sopilot.guard(book, *functions, verify="auto")
    with sopilot.conversation("c-1"):
        login("anna", "sesame")
        for _ in range(2):
            with pytest.raises(sopilot.NotCarriedOut):
                refund("anna", "o-1", 50)
    assert shop.paid == []


def test_wrapped_functions_keep_their_signature(book: Path, shop: Shop) -> None:
    _, find_order, refund = tools_of(shop, book)
    assert find_order.__doc__ == "Look an order up."
    assert find_order.__name__ == "find_order"
    assert list(inspect.signature(refund).parameters) == ["customer", "order", "amount"]


def test_an_approval_is_waited_for_and_bound_to_its_call(book: Path, shop: Shop) -> None:
    book.write_text(
        BOOK.replace("confirm: false}", "confirm: false, approval: {roles: [boss]}}"), "utf-8"
    )
    store = MemoryStore()
    login, find_order, refund = tools_of(shop, book, store=store)
    with ready(login, find_order), pytest.raises(sopilot.Waiting) as waiting:
        refund("anna", "o-1", 50)
    runner = sopilot.load(book, store=store)
    runner.decide_sync(waiting.value.session, by="Mia", role="boss")
    with sopilot.conversation("c-1"):
        with pytest.raises(sopilot.NotCarriedOut):
            refund("anna", "o-1", 51)  # another call than the one that was approved
        assert shop.paid == []
        refund("anna", "o-1", 50)
    assert shop.paid == [("anna", "o-1", 50)]


async def test_fifty_conversations_at_once_in_one_process_are_not_mixed(
    book: Path, shop: Shop
) -> None:
    """Half of the customers log in themselves; the others rely on somebody else's login."""
    login, find_order, refund = sopilot.guard(book, *shop.functions(), refusals="text")

    async def serve(number: int) -> str:
        async with sopilot.conversation(f"c-{number}"):
            if number % 2:
                await login(f"customer-{number}", "sesame")
            await find_order(f"customer-{number}", "o-1")
            answer: str = await refund(f"customer-{number}", "o-1", number)
            return answer

    answers = await asyncio.gather(*(serve(number) for number in range(50)))
    odd = range(1, 50, 2)
    assert answers[1::2] == [f"paid {number}" for number in odd]
    assert all(answer.startswith("Not called yet: ") for answer in answers[::2])
    assert sorted(shop.paid) == sorted((f"customer-{number}", "o-1", number) for number in odd)


def test_a_call_that_only_adds_a_value_is_another_attempt(book: Path) -> None:
    text = BOOK.replace("amount: number}", "amount: number, note: {type: string, required: false}}")
    book.write_text(text, "utf-8")
    paid = []

    def login(customer: str, password: str) -> dict[str, str]:
        return {"customer": customer}

    def find_order(customer: str, order: str) -> dict[str, str]:
        return {"state": "delivered"}

    def refund(customer: str, order: str, amount: float | None = None, note: str = "") -> str:
        paid.append((order, amount, note))
        return "paid"

    for verify in ("ask", "auto"):
        log_in, find, pay = sopilot.guard(book, login, find_order, refund, verify=verify)
        with sopilot.conversation(verify):
            log_in("anna", "sesame")
            with pytest.raises(sopilot.NotCarriedOut, match="amount"):
                pay("anna", "o-1")
            if verify == "ask":
                with pytest.raises(sopilot.Missing):
                    pay("anna", "o-1", 50)
                with pytest.raises(sopilot.Missing):
                    pay("anna", "o-1", 50, "with a note")
                find("anna", "o-1")
            assert pay("anna", "o-1", 50, "with a note") == "paid"
    assert paid == [("o-1", 50, "with a note")] * 2


def test_defaults_that_the_handbook_does_not_know_keep_no_proof_away(
    book: Path, shop: Shop
) -> None:
    def login(customer: str, password: str, remember: bool = False) -> dict[str, str]:
        return shop.login(customer, password)

    def find_order(customer: str, order: str, *, fields: str = "all") -> dict[str, str]:
        return shop.find_order(customer, order)

    def refund(customer: str, order: str, amount: float, currency: str = "EUR") -> str:
        return shop.refund(customer, order, amount)

    log_in, find, pay = sopilot.guard(book, login, find_order, refund)
    with ready(log_in, find):
        with pytest.raises(sopilot.NotCarriedOut, match="currency"):
            pay("anna", "o-1", 50, currency="BTC")
        assert pay("anna", "o-1", 50) == "paid 50"
    assert shop.paid == [("anna", "o-1", 50)]


def test_values_of_a_function_with_any_names_are_judged_by_name(book: Path, shop: Shop) -> None:
    def plainly(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            return function(*values, **named)

        call.__name__ = function.__name__
        return call

    functions = [plainly(each) for each in (shop.login, shop.find_order, shop.refund)]
    login, find_order, refund = sopilot.guard(book, *functions)
    with sopilot.conversation("c-1"):
        login(customer="anna", password="sesame")
        find_order(customer="anna", order="o-1")
        with pytest.raises(sopilot.UserMistake, match="unnamed-arguments"):
            refund("anna", "o-1", 50)
        with pytest.raises(sopilot.Refused):
            refund(customer="anna", order="o-1", amount=500)
        assert refund(customer="anna", order="o-1", amount=50) == "paid 50"
    assert shop.paid == [("anna", "o-1", 50)]


def test_an_amount_with_more_digits_than_a_float_is_not_rounded_for_the_guard(
    book: Path, shop: Shop
) -> None:
    login, find_order, refund = tools_of(shop, book)
    with ready(login, find_order):
        with pytest.raises(sopilot.NotCarriedOut, match="number"):
            refund("anna", "o-1", Decimal("200.0000000000000000001"))
        with pytest.raises(sopilot.NotCarriedOut, match="number"):
            refund("anna", "o-1", Decimal("1E+99999999"))  # as a whole number it takes hours
        refund("anna", "o-1", Decimal("19.99"))
    assert shop.paid == [("anna", "o-1", Decimal("19.99"))]


async def test_an_asynchronous_wrapper_of_a_function_is_asynchronous(
    book: Path, shop: Shop
) -> None:
    @functools.wraps(shop.login)
    async def login(*values: Any) -> Any:
        return shop.login(*values)

    guarded = sopilot.guard(book)(login)
    async with sopilot.conversation("c-1"):
        assert await guarded("anna", "sesame") == {"customer": "anna"}


@pytest.mark.parametrize("pays_before", [False, True])
@pytest.mark.parametrize("verify", ["ask", "auto"])
def test_the_outcome_of_a_plain_function_that_returns_a_coroutine_is_unknown(
    book: Path, shop: Shop, pays_before: bool, verify: Any
) -> None:
    """The coroutine isn't run after the proof. The function may have done its work before."""

    async def pay(customer: str, order: str, amount: float) -> None:
        shop.refund(customer, order, amount)

    def refund(customer: str, order: str, amount: float) -> object:
        if pays_before:
            shop.refund(customer, order, amount)
        return pay(customer, order, amount)

    functions = shop.login, shop.find_order, refund
    login, find_order, guarded = sopilot.guard(book, *functions, verify=verify)
    with ready(login, find_order):
        with pytest.raises(RuntimeError, match="async def"):
            guarded("anna", "o-1", 120)
        for _ in range(2):
            with pytest.raises(sopilot.Missing, match="outcome"):
                guarded("anna", "o-1", 120)
    assert shop.paid == [("anna", "o-1", 120)] * pays_before


@pytest.mark.parametrize("kind", ["map", "starmap", "zip", "future", "generator"])
def test_work_that_its_reader_would_do_later_is_not_let_through(
    book: Path, shop: Shop, kind: str
) -> None:
    """The proof is for this moment, and nobody knows when a generator is read."""
    asynchronous = kind == "generator"

    def refund(customer: str, order: str, amount: float) -> object:
        values = (customer, order, amount)
        if kind == "future":
            return Future[None]()  # nobody has begun with it
        if kind == "starmap":
            return itertools.starmap(shop.refund, [values])
        later = map(shop.refund, *zip(values, strict=True))
        return zip(later, strict=True) if kind == "zip" else later

    async def refund_later(customer: str, order: str, amount: float) -> object:
        return (shop.refund(*values) for values in [(customer, order, amount)])

    refund_later.__name__ = "refund"
    later = refund_later if asynchronous else refund
    login, find_order, guarded = sopilot.guard(book, shop.login, shop.find_order, later)
    with ready(login, find_order):
        call = functools.partial(guarded, "anna", "o-1", 120)
        pay = (lambda: asyncio.run(call())) if asynchronous else call
        with pytest.raises(RuntimeError, match="later"):
            pay()
        with pytest.raises(sopilot.Missing, match="outcome"):
            pay()
    assert shop.paid == []


def test_a_generator_is_an_error_at_once(book: Path, shop: Shop) -> None:
    def refund(customer: str, order: str, amount: float) -> Iterator[str]:
        yield shop.refund(customer, order, amount)

    with pytest.raises(sopilot.UserMistake, match="tool-signature"):
        sopilot.guard(book, refund)


def test_the_name_of_a_user_is_not_taken_for_a_function() -> None:
    name: Any = "anna"
    with pytest.raises(sopilot.UserMistake, match="pass a function"):
        sopilot.conversation("c-1", user=name)


class Order(BaseModel):
    """It doesn't show all that its reader sees."""

    id: str
    amount: float
    rush: bool = Field(False, exclude=True)

    @field_serializer("amount")
    def shown(self, amount: float) -> float:
        return 100


@dataclasses.dataclass
class Basket:
    order: Order


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_model_is_judged_by_its_values_not_by_what_it_shows(
    tmp_path: Path, wrapped: bool
) -> None:
    at = "basket.order" if wrapped else "basket"
    book = tmp_path / "orders.yaml"
    book.write_text(
        f"""
handbook: orders
actions:
  buy: {{input: {{basket: object}}, irreversible: true, confirm: false}}
predicates:
  small(basket):
    says: The order is small.
    verify: arguments
    verdict: {at}.amount <= 200 && !{at}.rush
procedures:
  buy: {{requires: small(basket)}}
""",
        "utf-8",
    )
    bought: list[float] = []

    def buy(basket: Any) -> None:
        bought.append((basket.order if wrapped else basket).amount)

    guarded = sopilot.guard(book, buy)

    def ordered(**values: Any) -> object:
        order = Order(id="o-1", **values)
        return Basket(order) if wrapped else order

    with sopilot.conversation("c-1"):
        for values in ({"amount": 900}, {"amount": 90, "rush": True}):
            with pytest.raises(sopilot.Refused):
                guarded(ordered(**values))
        guarded(ordered(amount=90))
    assert bought == [90]


def test_the_same_request_in_a_list_or_an_object_is_carried_out_once(tmp_path: Path) -> None:
    book = tmp_path / "stock.yaml"
    book.write_text(
        """
handbook: stock
actions:
  ship: {input: {parcel: object}, irreversible: true, confirm: false}
predicates:
  few(parcel): {says: Few., verify: arguments, verdict: size(parcel.items) < 5}
procedures:
  ship: {requires: few(parcel)}
""",
        "utf-8",
    )
    shipped: list[object] = []

    def ship(parcel: dict[str, Any]) -> None:
        shipped.append(parcel)

    guarded = sopilot.guard(book, ship)
    first: dict[str, Any] = {"to": "José", "items": ["a", {"n": 1}]}
    with sopilot.conversation("c-1"):
        guarded(first)
        for again in (
            {**first, "to": "Jose\u0301"},
            {**first, "items": ["a ", {"n": 1.0}]},
            {**first, "items": ["a", {"n\u200b": 1}]},
            {**first, "note": None},
        ):
            with pytest.raises(sopilot.NotCarriedOut, match="already"):
                guarded(again)
        guarded({**first, "items": ["b"]})
    assert len(shipped) == 2


def test_a_function_that_does_not_fit_is_an_error_at_once(book: Path, shop: Shop) -> None:
    def refund(customer: str, parcel: str, amount: float) -> None: ...

    def refnud(customer: str) -> None: ...

    with pytest.raises(sopilot.UserMistake, match="tool-signature"):
        sopilot.guard(book, refund)
    with pytest.raises(sopilot.UserMistake, match="`refund`"):
        sopilot.guard(book, refnud)
    with pytest.raises(sopilot.UserMistake, match="unnamed-function"):
        sopilot.guard(book, functools.partial(shop.refund, "anna"))


def test_a_guarded_action_without_a_function_is_an_error_at_once(book: Path, shop: Shop) -> None:
    with pytest.raises(sopilot.UserMistake, match=r"missing-tool[\s\S]*guards `refund`[\s\S]*pass"):
        sopilot.guard(book, shop.login, shop.find_order)
    offered = "refund: {offered: false, input"
    book.write_text(book.read_text("utf-8").replace("refund: {input", offered), "utf-8")
    assert len(sopilot.guard(book, shop.login, shop.find_order)) == 2


def test_an_agenda_has_no_call_that_only_the_runtime_can_make(book: Path, shop: Shop) -> None:
    book.write_text(refund_shop.BOOK.replace("CONFIRM", '"Paid back."'), "utf-8")
    functions = {each.__name__: each for each in tools_of(shop, book)}
    with sopilot.conversation("c-1"):
        functions["login"]("anna", "sesame")
        with pytest.raises(sopilot.Missing, match="the user must answer: Paid back") as missing:
            functions["refund"]("anna", "o-1", 50)
        assert missing.value.agenda == ('find_order(customer="anna", order="o-1")',)
        functions["find_order"]("anna", "o-1")
        with pytest.raises(sopilot.Missing, match="the user must answer") as missing:
            functions["refund"]("anna", "o-1", 50)
        assert missing.value.agenda == ()


def test_a_rejected_call_is_refused_and_does_not_wait(book: Path, shop: Shop) -> None:
    book.write_text(BOOK.replace("confirm: false", "approval: {roles: [boss]}"), "utf-8")
    store = MemoryStore()
    login, find_order, refund = tools_of(shop, book, store=store)
    with ready(login, find_order) as talk, pytest.raises(sopilot.Waiting):
        refund("anna", "o-1", 50)
    runner = sopilot.load(book, store=store)
    asyncio.run(runner.decide(talk.session_ids()["refunds"], "reject", by="Mia", role="boss"))
    with talk, pytest.raises(sopilot.Refused, match="rejected"):
        refund("anna", "o-1", 50)
    assert shop.paid == []


def test_a_no_stands_until_the_user_writes_again(book: Path, shop: Shop) -> None:
    book.write_text(BOOK.replace("confirm: false", "confirm: 'Pay {amount}?'"), "utf-8")
    login, find_order, refund = tools_of(shop, book)
    replies = iter(["no", "no", "yes"])
    asked: list[str] = []

    def user(question: str) -> str:
        asked.append(question.partition("\n")[0])
        return next(replies)

    with sopilot.conversation("c-1", user=user) as talk:
        login("anna", "sesame")
        for _ in range(3):
            find_order("anna", "o-1")
            with pytest.raises(sopilot.Refused, match="no"):
                refund("anna", "o-1", 50)
        with pytest.raises(sopilot.Refused, match="no"):
            refund("anna", "o-1", 20)
        assert asked == ["Pay 50?", "Pay 20?"]
        talk.user_said("I changed my mind: pay me the 50.")
        refund("anna", "o-1", 50)
    assert asked[2:] == ["Pay 50?"]
    assert shop.paid == [("anna", "o-1", 50)]


@pytest.mark.parametrize("happened", [True, False])
def test_a_call_that_broke_off_is_not_made_in_another_conversation(
    book: Path, shop: Shop, happened: bool
) -> None:
    def refund(customer: str, order: str, amount: float) -> str:
        shop.refund(customer, order, amount)
        if len(shop.paid) == 1:
            raise ConnectionError("the line broke")
        return "paid"

    store = MemoryStore()
    login, find_order, pay = sopilot.guard(book, shop.login, shop.find_order, refund, store=store)

    def proven(name: str) -> sopilot.Conversation:
        with sopilot.conversation(name) as talk:
            login("anna", "sesame")
            find_order("anna", "o-1")
        return talk

    with proven("c-1") as first, pytest.raises(ConnectionError):
        pay("anna", "o-1", 50)
    with proven("c-2") as second, pytest.raises(sopilot.Missing, match="unknown outcome"):
        pay("anna", "o-1", 50)
    with second:
        pay("anna", "o-1", 20)  # another act
    assert shop.paid == [("anna", "o-1", 50), ("anna", "o-1", 20)]

    async def resolve() -> None:
        async with await attach_session(store, first.session_ids()["refunds"]) as session:
            (call_id,) = session.unknown_outcomes
            await session.resolve_outcome(call_id, ok=happened, by="Mia")

    asyncio.run(resolve())
    with proven("c-3"):
        pay("anna", "o-1", 50)  # as after any call that another session has carried out
    assert len(shop.paid) == 3


@pytest.mark.parametrize("problem", [sopilot.ToolFailed("busy"), ConnectionError("down")])
def test_a_read_of_the_runtime_that_failed_is_made_again_with_the_next_attempt(
    book: Path, shop: Shop, problem: Exception
) -> None:
    """Once in each attempt: the agent can't make it in the runtime's place."""
    failing = 2

    def find_order(customer: str, order: str) -> dict[str, str]:
        answer = shop.find_order(customer, order)
        if shop.reads <= failing:
            raise problem
        return answer

    login, _, refund = sopilot.guard(book, shop.login, find_order, shop.refund, verify="auto")
    with sopilot.conversation("c-1"):
        login("anna", "sesame")
        for attempt in range(failing):
            with pytest.raises(sopilot.Refused, match="failed the last time it was called"):
                refund("anna", "o-1", 50)
            assert shop.reads == attempt + 1
        assert refund("anna", "o-1", 50) == "paid 50"
    assert shop.paid == [("anna", "o-1", 50)]


def test_a_read_of_the_agent_that_failed_is_listed_once_more_per_attempt(tmp_path: Path) -> None:
    book, down = tmp_path / "refunds.yaml", [True]
    book.write_text(refund_shop.ONE_CHECK, "utf-8")

    def find_order(order: str) -> dict[str, str]:
        if down:
            raise sopilot.ToolFailed("the database timed out")
        return {"state": "delivered"}

    def refund(order: str, amount: float) -> str:
        return "paid"

    find, pay = sopilot.guard(book, find_order, refund)
    with sopilot.conversation("c-1"):
        for problem in (sopilot.Missing, sopilot.Refused) * 2:
            with pytest.raises(sopilot.ToolFailed):
                find("o-1")
            with pytest.raises(problem, match="failed the last time"):
                pay("o-1", 5)
        down.clear()
        find("o-1")
        assert pay("o-1", 5) == "paid"


@pytest.mark.parametrize("verify", ["ask", "auto"])
async def test_a_read_that_was_given_up_has_failed(book: Path, shop: Shop, verify: Any) -> None:
    waits = {"find_order": asyncio.Event()}
    functions = shop.functions(waits)
    login, find_order, refund = sopilot.guard(book, *functions, verify=verify)
    async with sopilot.conversation("c-1"):
        await login("anna", "sesame")
        slow = refund if verify == "auto" else find_order
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(slow(*("anna", "o-1", 5)[: 3 if verify == "auto" else 2]), 0.3)
        waits["find_order"].set()
        if verify == "ask":
            with pytest.raises(sopilot.Missing) as missing:
                await refund("anna", "o-1", 5)
            assert missing.value.agenda == ('find_order(customer="anna", order="o-1")',)
            await find_order("anna", "o-1")
        assert await refund("anna", "o-1", 5) == "paid 5"


CARDS = """
handbook: library
actions:
  by_card: {input: {card: string}, read_only: true}
  by_mail: {input: {mail: string}, read_only: true}
  lend: {input: {member: string}, irreversible: true, confirm: false}
predicates:
  card_ok(member):
    says: "{member} has this card."
    established_by: by_card(card)
    verdict: result.member == member
  mail_ok(member):
    says: "{member} has this address."
    established_by: by_mail(mail)
    verdict: result.member == member
procedures:
  lend: {requires: {first: [card_ok(member), mail_ok(member)]}}
"""


def test_a_gate_that_was_tried_and_opened_nothing_is_not_listed_again(tmp_path: Path) -> None:
    book = tmp_path / "library.yaml"
    book.write_text(CARDS, "utf-8")

    def by_card(card: str) -> dict[str, str]:
        return {"member": "bob"}

    def by_mail(mail: str) -> dict[str, str]:
        return {"member": mail}

    def lend(member: str) -> str:
        return "lent"

    card, mail, act = sopilot.guard(book, by_card, by_mail, lend)
    with sopilot.conversation("c-1"):
        card("k-1")
        with pytest.raises(sopilot.Missing) as missing:
            act("ann")
        assert missing.value.agenda == ("by_mail(mail=…)",)
        mail("bob")
        with pytest.raises(sopilot.Refused):
            act("ann")
        mail("ann")
        assert act("ann") == "lent"


BLOOD = """
handbook: blood-bank
actions:
  crossmatch: {input: {unit: string}, changes: []}
  issue: {input: {unit: string, urgent: {type: boolean, required: false}}, irreversible: true,
          confirm: false}
predicates:
  matched(unit): {says: Matched., done: crossmatch(unit)}
  is_urgent(urgent): {says: Urgent., verify: arguments, verdict: urgent == true}
procedures:
  issue: {requires: {any: [is_urgent(urgent), matched(unit)]}}
"""


@pytest.mark.parametrize("follow", ["first", "instead"])
def test_an_agenda_names_an_argument_to_add_and_what_could_be_done_instead(
    tmp_path: Path, follow: str
) -> None:
    book = tmp_path / "blood.yaml"
    book.write_text(BLOOD, "utf-8")

    def crossmatch(unit: str) -> str:
        return "done"

    def issue(unit: str, urgent: bool | None = None) -> str:
        return "issued"

    match, act = sopilot.guard(book, crossmatch, issue)
    with sopilot.conversation("c-1"):
        with pytest.raises(sopilot.Missing) as missing:
            act("U1")
        assert "with the same arguments and `urgent`. Or instead: " in str(missing.value)
        assert 'call `crossmatch(unit="U1")`' in str(missing.value)
        assert "give_values" not in str(missing.value)
        if follow == "instead":
            match("U1")
        assert act("U1", *[True] * (follow == "first")) == "issued"


def test_a_tool_may_raise_one_failure_twice(book: Path, shop: Shop) -> None:
    wrong = sopilot.ToolFailed("wrong password")

    def login(customer: str, password: str) -> dict[str, str]:
        if password != "sesame":
            raise wrong
        return {"customer": customer}

    enter, read, pay = sopilot.guard(book, login, shop.find_order, shop.refund)
    with sopilot.conversation("c-1"):
        for password in ("a", "b"):
            with pytest.raises(sopilot.ToolFailed):
                enter("anna", password)
        enter("anna", "sesame")
        read("anna", "o-1")
        assert pay("anna", "o-1", 50) == "paid 50"


def test_a_call_inside_of_a_guarded_one_that_fails_leaves_the_outcome_unknown(
    book: Path, shop: Shop
) -> None:
    def find_order(customer: str, order: str) -> dict[str, str]:
        if shop.paid and not answered:
            raise sopilot.ToolFailed("busy")
        return shop.find_order(customer, order)

    def refund(customer: str, order: str, amount: float) -> None:
        shop.refund(customer, order, amount)
        read(customer, order)  # for the receipt

    answered = False
    login, read, guarded = sopilot.guard(book, shop.login, find_order, refund, verify="auto")
    with sopilot.conversation("c-1"):
        login("anna", "sesame")
        with pytest.raises(sopilot.ToolFailed, match="busy"):
            guarded("anna", "o-1", 50)
        for _ in range(2):
            answered = True
            with pytest.raises(sopilot.NotCarriedOut):
                guarded("anna", "o-1", 50)
    assert shop.paid == [("anna", "o-1", 50)]


@pytest.mark.parametrize("known", [True, False])
def test_an_amended_call_is_made_when_the_agent_calls_again(
    book: Path, shop: Shop, known: bool
) -> None:
    """With the arguments that were asked for, or with those that the agent has heard of."""
    book.write_text(BOOK.replace("confirm: false", "approval: {roles: [boss]}"), "utf-8")
    store = MemoryStore()
    login, find_order, refund = tools_of(shop, book, store=store)
    runner = sopilot.load(book, store=store)
    with ready(login, find_order) as talk, pytest.raises(sopilot.Waiting):
        refund("anna", "o-1", 120)
    session = talk.session_ids()["refunds"]
    amended = {"customer": "anna", "order": "o-1", "amount": 20}
    asyncio.run(runner.decide(session, "amend", by="Mia", role="boss", arguments=amended))
    with talk:
        assert refund("anna", "o-1", 20 if known else 120) == "paid 20"
        find_order("anna", "o-1")
        for amount in (20, 120):
            with pytest.raises(sopilot.NotCarriedOut):
                refund("anna", "o-1", amount)
    assert shop.paid == [("anna", "o-1", 20)]
    assert asyncio.run(runner.audit(session)).findings == ()


def test_an_amended_call_is_made_at_once_after_another_procedure(book: Path, shop: Shop) -> None:
    more = """procedures:
  close: {requires: small(amount)}"""
    text = BOOK.replace("confirm: false", "approval: {roles: [boss]}").replace("procedures:", more)
    closing = "  close: {input: {amount: number}, irreversible: true, confirm: false, changes: []}"
    book.write_text(text.replace("predicates:", f"{closing}\npredicates:"), "utf-8")
    store, closed = MemoryStore(), []

    def close(amount: float) -> str:
        closed.append(amount)
        return "closed"

    functions = (shop.login, shop.find_order, shop.refund, close)
    login, find_order, refund, close = sopilot.guard(book, *functions, store=store)
    with ready(login, find_order) as talk, pytest.raises(sopilot.Waiting):
        refund("anna", "o-1", 120)
    session = talk.session_ids()["refunds"]
    amended = {"customer": "anna", "order": "o-1", "amount": 20}
    runner = sopilot.load(book, store=store)
    asyncio.run(runner.decide(session, "amend", by="Mia", role="boss", arguments=amended))
    with talk:
        close(3)
        assert refund("anna", "o-1", 120) == "paid 20"
    assert (shop.paid, closed) == ([("anna", "o-1", 20)], [3])
    assert asyncio.run(runner.audit(session)).findings == ()


def test_a_call_has_one_request_also_after_an_amendment(book: Path, shop: Shop) -> None:
    book.write_text(BOOK.replace("confirm: false", "approval: {roles: [boss]}"), "utf-8")
    store = MemoryStore()
    login, find_order, refund = tools_of(shop, book, store=store)
    runner = sopilot.load(book, store=store)
    with ready(login, find_order) as talk:
        waiting = []
        for amount in (120, 20):
            with pytest.raises(sopilot.Waiting) as raised:
                refund("anna", "o-1", amount)
            waiting.append(raised.value.call_id)
    session, amended = talk.session_ids()["refunds"], {"customer": "anna", "order": "o-1"}
    decide = functools.partial(runner.decide, session, by="Mia", role="boss")
    asyncio.run(decide("amend", call_id=waiting[0], arguments={**amended, "amount": 20}))
    assert asyncio.run(waiting_in(store, session)).held[0].call_id == waiting[0]
    assert len(asyncio.run(waiting_in(store, session)).held) == 1
    with talk:
        refund("anna", "o-1", 20)
    assert shop.paid == [("anna", "o-1", 20)]
    assert asyncio.run(waiting_in(store, session)).held == ()


DOORS = """
handbook: doors
actions:
  unlock:
    input: {door: string, fee: {type: number, required: false}}
    approval: {roles: [boss]}
predicates:
  slight(fee): {says: "The fee is slight.", verify: arguments, verdict: fee == null || fee < 5}
procedures:
  unlock: {requires: slight(fee)}
"""


def test_an_amendment_is_judged_with_what_the_function_fills_in(tmp_path: Path) -> None:
    (tmp_path / "doors.yaml").write_text(DOORS, "utf-8")
    opened = []

    def unlock(door: str, fee: float = 9) -> None:
        opened.append((door, fee))

    store = MemoryStore()
    guarded = sopilot.guard(tmp_path / "doors.yaml", unlock, store=store)
    runner = sopilot.load(tmp_path / "doors.yaml", store=store)
    with sopilot.conversation("d-1") as talk, pytest.raises(sopilot.Waiting):
        guarded("A", fee=1)
    session = talk.session_ids()["doors"]
    asyncio.run(runner.decide(session, "amend", by="Mia", role="boss", arguments={"door": "B"}))
    with talk, pytest.raises(sopilot.ToolFailed, match="would receive other arguments"):
        guarded("A", fee=1)
    assert opened == []


PAYMENTS = """
handbook: payments
actions:
  find_box: {input: {box: string}, read_only: true}
  pay:
    input: {box: string, amount: number}
    irreversible: true
    confirm: false
    approval: {roles: [boss], when: amount > 100, expires: 1s}
predicates:
  rents(tenant, box):
    says: The box {box} is rented by {tenant}.
    verify: find_box(box)
    verdict: tenant in result
procedures:
  pay: {inputs: {customer: string}, requires: rents(customer, box)}
"""


async def test_an_approval_counts_for_the_claimed_values_that_it_was_asked_for(
    tmp_path: Path,
) -> None:
    def find_box(box: str) -> list[str]:
        return ["anna", "bob"]

    def pay(box: str, amount: float) -> None:
        paid.append((box, amount))

    async def attempt(claimed: str, **supplied: Any) -> None:
        async with sopilot.conversation("c-1") as talk:
            talk.tell(**supplied)
            talk.give_values(customer=claimed)
            await asyncio.to_thread(guarded, "b-1", 500)

    async def approve() -> None:
        (session,) = await store.sessions()
        await sopilot.load(book, store=store).decide(session.id, by="Mia", role="boss")

    book, store, paid = tmp_path / "payments.yaml", MemoryStore(), list[tuple[str, float]]()
    book.write_text(PAYMENTS.replace("1s", "1h"), "utf-8")
    _, guarded = sopilot.guard(book, find_box, pay, store=store, verify="auto")
    with pytest.raises(sopilot.Missing, match="find out `customer`"):
        await attempt("anna")  # no call waits for the value yet
    with pytest.raises(sopilot.Waiting):
        await attempt("anna")
    await approve()
    with pytest.raises(sopilot.Waiting):
        await attempt("bob")
    with pytest.raises(sopilot.Refused, match="rented by carl"):
        await attempt("bob", customer="carl")  # the application knows better
    assert paid == []
    with pytest.raises(sopilot.Missing):
        await attempt("bob")
    with pytest.raises(sopilot.Waiting):
        await attempt("bob")
    await approve()
    await attempt("bob")
    assert paid == [("b-1", 500)]


@pytest.mark.parametrize("later", ["in time", "for somebody else", "too late"])
def test_an_amendment_below_the_limit_counts_once_in_time_and_for_the_same_customer(
    tmp_path: Path, later: str
) -> None:
    paid = []

    def find_box(box: str) -> list[str]:
        return ["anna", "bob"]

    def pay(box: str, amount: float) -> None:
        paid.append((box, amount))

    book, store = tmp_path / "payments.yaml", MemoryStore()
    book.write_text(PAYMENTS, "utf-8")
    _, guarded = sopilot.guard(book, find_box, pay, store=store, verify="auto")
    runner = sopilot.load(book, store=store)
    with sopilot.conversation("p-1") as talk:
        talk.tell(customer="anna")
        with pytest.raises(sopilot.Waiting):
            guarded("b-1", 500)
    session = talk.session_ids()["payments"]
    amended = {"box": "b-1", "amount": 50}
    asyncio.run(runner.decide(session, "amend", by="Mia", role="boss", arguments=amended))
    if later == "too late":
        time.sleep(1.1)
    with talk:
        if later == "in time":
            guarded("b-1", 500)
        talk.tell(customer="bob" if later == "for somebody else" else "anna")
        for _ in range(2):
            talk.user_said("Now pay the 500 of the next bill.")
            with pytest.raises(sopilot.Waiting):
                guarded("b-1", 500)
    assert paid == ([("b-1", 50)] if later == "in time" else [])
    assert asyncio.run(runner.audit(session)).findings == ()


def test_a_call_that_nothing_guards_is_no_deviation_before_the_first_guarded_one(
    book: Path, shop: Shop, tmp_path: Path
) -> None:
    text = BOOK.replace("predicates:", "  write_note: {input: {text: string}}\npredicates:")
    book.write_text(text, "utf-8")

    def write_note(text: str) -> None: ...

    kept = f"sqlite:{tmp_path}/sessions.db"
    functions = (shop.login, shop.find_order, shop.refund, write_note)
    login, find_order, refund, note = sopilot.guard(book, *functions, store=kept)
    with sopilot.conversation("c-1") as conversation:
        note("The customer is in a hurry.")
        login("anna", "sesame")
        find_order("anna", "o-1")
        refund("anna", "o-1", 50)
    runner = sopilot.load(book, store=kept)
    report = runner.audit_sync(conversation.session_ids()["refunds"])
    assert report.clean, report.findings


def test_a_no_is_final_although_another_way_is_open(tmp_path: Path) -> None:
    """The customer was found in one of two ways: nobody has to be found in the other one, too."""
    path = tmp_path / "orders.yaml"
    path.write_text(
        """
handbook: orders
actions:
  by_email: {input: {email: string}, read_only: true}
  by_name: {input: {name: string}, read_only: true}
  cancel: {input: {user: string}, irreversible: true, confirm: "The order of {user} goes."}
predicates:
  mailed(user):
    {says: F., established_by: by_email(email), verdict: result == user, principal: true}
  named(user): {says: N., established_by: by_name(name), verdict: result == user, principal: true}
procedures:
  cancel: {requires: {first: [mailed(user), named(user)]}}
""",
        "utf-8",
    )
    cancelled: list[str] = []
    asked: list[str] = []

    def by_email(email: str) -> str:
        return "ann"

    def by_name(name: str) -> str:
        return "ann"

    def cancel(user: str) -> None:
        cancelled.append(user)

    def answer(question: str) -> str:
        asked.append(question)
        return "No." if len(asked) == 1 else "Yes."

    _, found_by_name, guarded = sopilot.guard(path, by_email, by_name, cancel)
    with sopilot.conversation("c-1", user=answer):
        found_by_name("Ann")
        with pytest.raises(sopilot.Refused):
            guarded("ann")
    assert (cancelled, len(asked)) == ([], 1)


PARCELS = """
handbook: parcels
actions:
  sign_in: {input: {clerk: string}}
  look: {input: {box: string}, read_only: true}
  ship: {input: {clerk: string, first: string, second: string}, irreversible: true, confirm: false}
predicates:
  sound(box): {says: "Box {box} is sound.", verify: look(box), judged_by: model}
  on_duty(clerk): {says: "{clerk} is on duty.", established_by: sign_in(clerk)}
procedures:
  ship: {requires: [sound(first), sound(second), on_duty(clerk)]}
"""


def test_a_judgement_counts_for_the_values_that_it_was_asked_for(tmp_path: Path) -> None:
    """A model names only the predicate, so two judgements of one are asked one after the other."""
    (tmp_path / "parcels.yaml").write_text(PARCELS, "utf-8")
    damaged, shipped = {"B"}, []

    def sign_in(clerk: str) -> bool:
        return True

    def look(box: str) -> str:
        return "damaged" if box in damaged else "whole"

    def ship(clerk: str, first: str, second: str) -> None:
        shipped.append((first, second))

    guarded = sopilot.guard(tmp_path / "parcels.yaml", sign_in, look, ship)
    sign_in, look, ship = guarded
    with sopilot.conversation("p-1") as talk:
        with pytest.raises(sopilot.Missing) as first:
            ship("Kim", "A", "B")
        # A call that may change what others read comes first.
        assert [step.split("(")[0] for step in first.value.agenda] == ["sign_in", "look", "look"]
        sign_in("Kim")
        seen = {box: look(box) for box in "AB"}
        judged = []
        while "B" not in judged:
            with pytest.raises(sopilot.Missing) as missing:
                ship("Kim", "A", "B")
            asked = str(missing.value)
            assert 'judge_check(check="sound", holds=…)' in asked
            (box,) = [item for item in "AB" if f'`sound(box="{item}")`' in asked]
            judged.append(box)
            talk.judge("sound", seen[box] == "whole")
        with pytest.raises(sopilot.Refused, match="Box B is sound"):
            ship("Kim", "A", "B")
    assert judged == ["A", "B"]
    assert shipped == []


GIFTS = """
handbook: gifts
actions:
  status: {input: {user: string}, read_only: true}
  redeem:
    input: {user: string, voucher: string, to: {type: string, required: false}}
    irreversible: true
    confirm: false
predicates:
  invited(user): {says: "{user} is invited.", verify: status(user), verdict: result == 'invited'}
procedures:
  redeem_own: {action: "redeem(user=friend, to=friend)", requires: invited(friend)}
"""


@pytest.mark.parametrize("sabotaged", [False, True])
def test_inputs_with_one_value_are_all_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sabotaged: bool
) -> None:
    """A function may do something else without an input that the procedure fills. The audit
    blames a call that a broken guard lets through."""
    (tmp_path / "gifts.yaml").write_text(GIFTS, "utf-8")
    redeemed = []

    def status(user: str) -> str:
        return "invited"

    def redeem(user: str, voucher: str, to: str | None = None) -> None:
        redeemed.append((user, voucher, to or "the shop"))

    store = MemoryStore()
    status, redeem = sopilot.guard(tmp_path / "gifts.yaml", status, redeem, store=store)
    with sopilot.conversation("g-1") as talk:
        status("Ann")
        if sabotaged:
            monkeypatch.setattr("sopilot.proof.licence.same", lambda *_: True)
            redeem("Ann", "V-1")
        else:
            with pytest.raises(sopilot.NotCarriedOut):
                redeem("Ann", "V-1")
            redeem("Ann", "V-1", "Ann")
    assert redeemed == [("Ann", "V-1", "the shop" if sabotaged else "Ann")]
    audit = asyncio.run(
        sopilot.load(tmp_path / "gifts.yaml", store=store).audit(talk.session_ids()["gifts"])
    )
    assert bool(audit.findings) is sabotaged


FEES = """
handbook: fees
actions:
  charge: {input: {ticket: string}, irreversible: true, confirm: false, changes: []}
  read_credit: {input: {user: string}, read_only: true}
  pay: {input: {user: string}, irreversible: true, confirm: false, recheck: true, changes: []}
predicates:
  solvent(user): {says: "{user} can pay.", verify: read_credit(user), verdict: result.balance > 0}
  named(ticket): {says: A ticket., verify: arguments, verdict: "ticket != ''"}
procedures:
  charge: {requires: named(ticket)}
  pay: {requires: solvent(user)}
"""


def test_a_read_that_makes_its_own_answer_old_is_not_repeated_without_end(tmp_path: Path) -> None:
    (tmp_path / "fees.yaml").write_text(FEES)
    charged: list[str] = []
    paid: list[str] = []

    def charge(ticket: str) -> bool:
        charged.append(ticket)
        return True

    def read_credit(user: str) -> dict[str, int]:
        assert len(charged) < 20
        guarded_charge(f"t-{len(charged)}")
        return {"balance": 1}

    def pay(user: str) -> None:
        paid.append(user)

    functions = sopilot.guard(str(tmp_path / "fees.yaml"), charge, read_credit, pay)
    guarded_charge, guarded_read, guarded_pay = functions
    with sopilot.conversation("fees"):
        guarded_read("anna")
        with pytest.raises(sopilot.NotCarriedOut, match="call again when they have ended"):
            guarded_pay("anna")
    assert paid == []
    assert len(charged) < 6


async def test_a_question_that_was_given_up_is_put_again(tmp_path: Path) -> None:
    (tmp_path / "pay.yaml").write_text(
        "handbook: pay\n"
        "actions:\n"
        "  pay: {input: {amount: number}, irreversible: true, confirm: 'Pay {amount}?'}\n"
        "predicates:\n"
        "  small(amount): {says: Small., verify: arguments, verdict: amount <= 10}\n"
        "procedures:\n"
        "  pay: {requires: small(amount)}\n"
    )
    asked: list[str] = []
    paid: list[float] = []

    async def slow() -> str:
        await asyncio.sleep(60)
        return "yes"

    def user(question: str) -> Any:
        asked.append(question)
        return slow() if len(asked) == 1 else "yes"

    async def pay(amount: float) -> None:
        paid.append(amount)

    guarded = sopilot.guard(tmp_path / "pay.yaml", pay)
    async with sopilot.conversation("pay") as conversation:
        conversation.user = user
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(guarded(5), 0.2)
        for amount in (5, 6):
            conversation.user_said("Please pay.")
            await guarded(amount)
    assert paid == [5, 6]
    assert len(asked) == 3
