"""The parts of `benchmarks/day_in_an_hour.py`: conversations with a real gateway, and a judge
that finds what is wrong."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sopilot.stores.sqlite import SQLiteStore

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
KINDS = ("reads", "small", "undelivered", "much", "hasty", "given")


@pytest.fixture(autouse=True)
def _beside_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


async def test_conversations_are_judged_by_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from day_clients import Client, Heard
    from day_judge import Judge
    from day_parts import Host, Shop
    from day_people import People

    async def at_once(self: Any, least: float = 0, most: float = 0) -> None:
        return None

    monkeypatch.setattr(Client, "_think", at_once)
    monkeypatch.setattr("day_people.random.random", lambda: 1.0)

    store = SQLiteStore(tmp_path / "day.db")
    shop, heard = Shop(tmp_path), Heard()
    spec = f"sqlite:{tmp_path / 'day.db'}"
    host = Host(1, BENCHMARKS / "day_desk.yaml", shop.url, spec, tmp_path)
    people = People(store, shop, 2.0, lambda what, where: None)
    await shop.up()
    try:
        await host.up()
        deciding = asyncio.create_task(people.decide_all())
        async with httpx2.AsyncClient(timeout=30) as http:
            clients = [Client(http, [host], heard, kind, 2.0) for kind in KINDS]
            await asyncio.wait_for(asyncio.gather(*(one.converse() for one in clients)), 60)
        deciding.cancel()
    finally:
        await host.stop()
        await shop.stop()
    assert dict(heard.endings) == {
        "reads: read": 1, "small: complete": 1, "undelivered: fail": 1, "much: fail": 1,
        "hasty: complete": 1, "given: complete": 1,
    }  # fmt: skip
    ledger = shop.entries()
    judge = Judge(store, [])
    figures = await judge.judge(heard, ledger)
    assert judge.faults == []
    assert (figures["sessions"], figures["really_done"]) == (6, 3)
    assert figures["audit_findings"].pop("premature-goal") == 1  # by who was hasty
    for wrong, found in _wrong(ledger, heard):
        judge = Judge(store, [])
        figures = await judge.judge(*wrong)
        assert [name for name in found if not figures[name]] == []
        assert len(judge.faults) >= len(found)
    await store.close()


def _wrong(ledger: list[dict[str, Any]], heard: Any) -> list[tuple[tuple[Any, Any], list[str]]]:
    """Days that went wrong, each in one way, and the figures that must say so."""
    small = next(one for one in ledger if one["order"].startswith("small"))
    of_others = copy.deepcopy(heard)
    of_others.answers.append((small["key"].split(":")[0], 4711, "find_order", small["order"]))
    phantom = copy.deepcopy(heard)
    phantom.answers.append((*heard.answers[0][:2], "refund", "never-made"))
    return [
        ((heard, [*ledger, small]), ["done_twice"]),
        ((heard, [*ledger, {**small, "order": "undelivered-1"}]), ["done_without_proof"]),
        ((heard, [*ledger, {**small, "order": "o", "key": "x:y:0"}]),
         ["done_without_proof", "unknown_and_never_listed"]),
        ((heard, [{**one, "amount": 300} for one in ledger]), ["done_without_approval"]),
        ((of_others, ledger), ["acknowledged_but_not_in_the_trace"]),
        ((phantom, ledger), ["told_as_done_and_not_done"]),
    ]  # fmt: skip
