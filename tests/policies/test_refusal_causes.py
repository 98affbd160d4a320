"""Customers found by an answer, in one way or another; refusals rest on what could have changed
them, and name nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import sopilot

SHOP = """
handbook: shop
actions:
  find_by_email: {input: {email: string}}
  find_by_name: {input: {name: string}}
  read_order: {input: {order: string}}
  cancel: {input: {order: string}, irreversible: true, confirm: false}
predicates:
  by_email(user):
    says: The customer {user} was found by email.
    established_by: find_by_email(email)
    verdict: result == user
  by_name(user):
    says: The customer {user} was found by name.
    established_by: find_by_name(name)
    verdict: result == user
  open(order): {says: 'Order {order} is open.', verify: read_order(order), verdict: result.open}
  paid(order): {says: 'Order {order} is paid.', verify: read_order(order), verdict: result.paid}
  late(order): {says: 'Order {order} is late.', verify: read_order(order), verdict: result.late}
procedures:
  cancel:
    inputs: {user: string}
    requires:
      in_order:
        - first: [by_email(user), by_name(user)]
        - any: [paid(order), late(order)]
        - open(order)
"""
PEOPLE = {"ann@example.com": "ann", "Ann": "ann", "eve@example.com": "eve", "Eve": "eve"}


def served(
    folder: Path, order: Mapping[str, Any], inputs: Mapping[str, Any]
) -> tuple[sopilot.Result, list[str]]:
    (folder / "shop.yaml").write_text(SHOP, encoding="utf-8")
    cancelled: list[str] = []

    def find(given: str) -> str:
        if given not in PEOPLE:
            raise sopilot.ToolFailed({"error": "no such customer"})
        return PEOPLE[given]

    tools = {
        "find_by_email": lambda email: find(email),
        "find_by_name": lambda name: find(name),
        "read_order": lambda order_id=None, **_: dict(order),
        "cancel": lambda order: cancelled.append(order),
    }
    runner = sopilot.load(str(folder / "shop.yaml"))
    said = {"user": "ann", "order": "o-1", **inputs}
    result = asyncio.run(runner.run("Cancel my order.", tools=tools, inputs=said))
    return result, cancelled


FINE = {"open": True, "paid": True, "late": False}


@pytest.mark.parametrize("who", [{"email": "ann@example.com"}, {"name": "Ann"}])
def test_whoever_is_found_in_one_of_two_ways_is_served(
    tmp_path: Path, who: Mapping[str, str]
) -> None:
    result, cancelled = served(tmp_path, FINE, who)
    assert result.executed
    assert cancelled == ["o-1"]
    assert result.audit.clean


@pytest.mark.parametrize(
    "who",
    [
        {"email": "eve@example.com"},
        {"name": "Eve"},
        {"email": "eve@example.com", "name": "Eve"},
        {"name": "nobody"},
        {},
    ],
)
def test_who_is_found_as_somebody_else_opens_nothing(
    tmp_path: Path, who: Mapping[str, str]
) -> None:
    result, cancelled = served(tmp_path, FINE, who)
    assert result.refused
    assert cancelled == []
    assert {one.rule for one in result.refusals} <= {"by_email", "by_name"}


@pytest.mark.parametrize(
    ("order", "causes"),
    [
        ({**FINE, "open": False}, ["open"]),
        ({**FINE, "paid": False}, ["late", "paid"]),
        ({**FINE, "paid": False, "late": True, "open": False}, ["open"]),
    ],
)
def test_an_option_that_another_made_up_for_is_no_cause(
    tmp_path: Path, order: Mapping[str, Any], causes: list[str]
) -> None:
    result, cancelled = served(tmp_path, order, {"name": "Ann"})
    assert result.refused
    assert cancelled == []
    assert sorted(one.rule for one in result.refusals) == causes
    audited = [cause["predicate"] for one in result.audit.refusals for cause in one.causes]
    assert sorted(audited) == causes
    assert all(name not in result.reason for name in ("by_email", "by_name"))
