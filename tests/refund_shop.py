"""A shop that pays orders back, behind a handbook. ``paid`` is the truth that tests judge by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import sopilot

BOOK = """
handbook: refunds
parameters: {largest: 200}
actions:
  login: {input: {customer: string, password: {type: string, secret: true}}}
  find_order: {input: {customer: string, order: string}, read_only: true,
               requires: logged_in(customer)}
  refund: {input: {customer: string, order: string, amount: number}, irreversible: true,
           confirm: CONFIRM}
predicates:
  logged_in(customer):
    says: The customer {customer} has logged in.
    established_by: login(customer, password)
  delivered(customer, order):
    says: The order {order} was delivered.
    verify: find_order(customer, order)
    verdict: result.state == 'delivered'
    remedy: Wait for the delivery.
  small(amount):
    says: The amount {amount} is at most {largest}.
    verify: arguments
    verdict: amount <= largest
procedures:
  refund: {requires: [small(amount), delivered(customer, order)]}
"""

ONE_CHECK = """
handbook: refunds
actions:
  find_order: {input: {order: string}, read_only: true}
  refund: {input: {order: string, amount: number}, irreversible: true, confirm: false}
predicates:
  delivered(order):
    says: The order {order} was delivered.
    verify: find_order(order)
    verdict: result.state == 'delivered'
procedures:
  refund: {requires: delivered(order)}
"""


class Shop:
    def __init__(self) -> None:
        self.states = {"o-1": "delivered", "o-2": "on its way"}
        self.paid: list[tuple[str, str, float]] = []
        self.reads = 0

    def login(self, customer: str, password: str) -> dict[str, str]:
        if password != "sesame":
            raise sopilot.ToolFailed("wrong password")
        return {"customer": customer}

    def find_order(self, customer: str, order: str) -> dict[str, str]:
        """Look an order up."""
        self.reads += 1
        return {"state": self.states[order]}

    def refund(self, customer: str, order: str, amount: float) -> str:
        self.paid.append((customer, order, amount))
        return f"paid {amount:g}"

    def functions(
        self, waits: Mapping[str, asyncio.Event] | None = None
    ) -> list[Callable[..., Any]]:
        """Asynchronous ones. ``waits``: what a function waits for before it answers."""

        async def pause(name: str) -> None:
            event = (waits or {}).get(name)
            await (event.wait() if event is not None else asyncio.sleep(0))

        async def login(customer: str, password: str) -> dict[str, str]:
            """Log a customer in."""
            await pause("login")
            return self.login(customer, password)

        async def find_order(customer: str, order: str) -> dict[str, str]:
            """Look an order up."""
            await pause("find_order")
            return self.find_order(customer, order)

        async def refund(customer: str, order: str, amount: float) -> str:
            """Pay an order back."""
            await pause("refund")
            return self.refund(customer, order, amount)

        return [login, find_order, refund]
