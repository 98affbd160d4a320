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
