"""The cost of a guarded call, in function calls: a busy machine doesn't change their number."""

from __future__ import annotations

import cProfile
from pathlib import Path
from typing import Literal

import pytest

import sopilot
from refund_shop import ONE_CHECK


@pytest.mark.parametrize(("verify", "most"), [("ask", 3_000), ("auto", 5_000)])
async def test_a_guarded_call_costs_the_same_beside_any_number_of_answers(
    tmp_path: Path, verify: Literal["ask", "auto"], most: int
) -> None:
    book = tmp_path / "refunds.yaml"
    book.write_text(ONE_CHECK, "utf-8")

    async def find_order(order: str) -> dict[str, str]:
        return {"state": "delivered"}

    async def refund(order: str, amount: float) -> str:
        return "paid"

    find, pay = sopilot.guard(book, find_order, refund, verify=verify)

    async def cost(order: str) -> int:
        if verify == "ask":
            await find(order)
        with cProfile.Profile() as profile:
            assert await pay(order, 5) == "paid"
        return sum(entry.callcount for entry in profile.getstats())

    async with sopilot.conversation("c-1"):
        await cost("first")
        few = await cost("second")
        for number in range(300):
            await find(f"o-{number}")
        many = await cost("third")
    assert many <= 1.05 * few < most
