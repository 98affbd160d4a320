"""The register of actions, in every store: kept up with the trace, and made anew from it."""

from __future__ import annotations

import random

import pytest

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, walk, wander
from counter_sessions import opened
from sopilot.records.actions import ActionEntry
from sopilot.records.loading import Traces, rebuild_register, register
from sopilot.records.selection import Wanted, read_condition
from sopilot.records.store import Settings, Store
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.events import Start

ABOUT = {"handbook": "counter", "model": "m", "view": "pg"}


async def rows_of(store: Store, **wanted: object) -> list[ActionEntry]:
    found = await register(store, Wanted(**wanted))  # type: ignore[arg-type]
    return found.entries()


async def agree(store: Store) -> None:
    """Every row is the one that its trace makes, and no trace makes another."""
    traces = Traces(store)
    kept: dict[str, list[object]] = {}
    for session_id, row in await store.records.actions(Wanted()):
        kept.setdefault(session_id, []).append(row)
    for head in await store.records.heads():
        _, made = await traces.rows(head.session_id)
        assert sorted(kept.get(head.session_id, []), key=str) == sorted(made, key=str)


async def test_a_proven_call_is_one_row_with_everything_about_it(store: Store) -> None:
    session = await opened(store, **ABOUT)
    await walk(session, "transfer")
    [row] = await rows_of(store, action="transfer")
    assert (row.outcome, row.grade, row.goal) == ("carried out", "proven", "transfer")
    assert row.arguments == ERRANDS["transfer"]
    assert (row.handbook, row.model, row.view) == ("counter", "m", "pg")
    assert row.program == COUNTER.hashes["transfer"]
    assert row.session_id == session.id
    assert session.events[row.seq].event.kind == "domain_call"
    assert not await rows_of(store, action="read_balance")
    await agree(store)


async def test_words_that_are_kept_beside_the_trace_are_marked_in_the_register(
    store: Store,
) -> None:
    """Its rows outlive the contents: they have neither the words nor the text of a digest."""

    session = await opened(store, settings=Settings(private=True))
    await walk(session, "transfer", stop_at_action="read_balance")
    await session.call_tool("transfer", ERRANDS["transfer"], "unproven")
    await walk(session, "wire", stop_at_action="wire")
    held = (await session.call_tool("wire", ERRANDS["wire"])).call_id
    await session.decide("expire", held, reason="too late")
    [doubted], [expired] = [await rows_of(store, action=one) for one in ("transfer", "wire")]
    assert (doubted.outcome, doubted.why) == ("held", "withheld")
    assert (expired.outcome, expired.why) == ("expired", "withheld")
    shown = [held.why for held in session.ledger.held.values() if held.why]
    assert not any("$ref" in one for one in shown)
    await agree(store)


async def test_people_amend_approve_reject_and_let_time_run_out(store: Store) -> None:
    clock = HandClock()
    session = await opened(store, clock=clock)
    await walk(session, "wire", stop_at_action="wire")
    held = (await session.call_tool("wire", ERRANDS["wire"])).call_id
    again = await session.call_tool("wire", ERRANDS["wire"])
    assert again.call_id == held
    [row] = await rows_of(store, outcome="held", now=clock.now())
    assert (row.awaits, row.needed, row.repeats, row.approvers) == ("approval", 2, 1, ())
    assert await rows_of(store, outcome="expired", now=clock.now() + 3601)
    await session.decide("approve", held, by="Eve", role="officer")
    other = {**ERRANDS["wire"], "amount": 90}
    await session.decide("amend", held, by="Ann", role="supervisor", arguments=other)
    await session.decide("approve", held, by="Bob", role="auditor", reason="seen")
    await session.run_held(held)
    [row] = await rows_of(store, action="wire")
    assert (row.outcome, row.arguments, row.requested) == ("carried out", other, ERRANDS["wire"])
    assert row.approvers == (
        "Ann (supervisor, unauthenticated)",
        "Bob (auditor, unauthenticated)",
    )
    assert [one["by"] for one in row.decisions] == ["Eve", "Ann", "Bob"]
    await walk(session, "wire", stop_at_action="wire")
    second = (await session.call_tool("wire", ERRANDS["wire"])).call_id
    await session.decide("reject", second, by="Ann", role="supervisor", reason="no")
    assert [one.call_id for one in await rows_of(store, outcome="rejected")] == [second]
    await agree(store)


async def test_what_is_let_through_without_proof_says_so(store: Store) -> None:
    session = await opened(store)
    await session.operate(Start("refund", ERRANDS["refund"]))
    await session.call_tool("refund", ERRANDS["refund"])
    [early] = await rows_of(store, action="refund")
    assert (early.outcome, early.awaits) == ("held", "root")
    assert early.why
    await agree(store)


async def test_failed_and_unknown_and_settled(store: Store) -> None:
    tools = CountingTools()
    session = await opened(store, tools=tools)
    tools.refusing.add("rename")
    await walk(session, "rename", limit=8)
    assert {row.outcome for row in await rows_of(store, action="rename")} == {"failed"}
    tools.failing.add("transfer")
    session = await opened(store, tools=tools)
    await walk(session, "transfer", limit=30)
    [row] = await rows_of(store, outcome="unknown")
    await session.resolve_outcome(row.call_id, ok=True, by="Ann")
    [row] = await rows_of(store, action="transfer", outcome="carried out")
    assert row.decisions[-1]["by"] == "Ann"
    assert row.decisions[-1]["decision"] == "resolve"
    await agree(store)


@pytest.mark.parametrize("seed", range(4))
async def test_rebuilt_from_the_traces_it_is_the_same(store: Store, seed: int) -> None:
    for number in range(3):
        session = await opened(store)
        await wander(session, random.Random(10 * seed + number), 40)
        await session.release()
    before = await store.records.actions(Wanted())
    assert before
    read, problems = await rebuild_register(store)
    assert (read, problems) == (3, {})
    assert await store.records.actions(Wanted()) == before


async def test_what_the_trace_withholds_the_register_withholds(store: Store) -> None:
    settings = Settings(by_reference=frozenset({"to"}))
    session = await opened(store, settings=settings)
    await walk(session, "transfer")
    [row] = await rows_of(store, action="transfer")
    assert row.arguments["amount"] == 100
    assert "bob" not in str(await store.records.actions(Wanted()))
    found = await register(store, Wanted(), [read_condition("to=bob")])
    assert (len(found.rows), found.withheld) == (0, 1)
    await agree(store)


async def test_names_that_columns_cannot_hold(store: Store) -> None:
    session = await opened(store)
    await session.call_tool("no\x00such", {"a": "\x00"}, "c\x00\ud800")
    [row] = await rows_of(store, action="no\x00such")
    assert row.call_id.startswith("c\x00")


@pytest.mark.parametrize(
    ("condition", "amounts"),
    [
        ("amount>1000", [5000, "2500"]),
        ("amount >= 1000", [1000, 5000, "2500"]),
        ("amount=2500", ["2500"]),
        ('amount="2500"', ["2500"]),
        ("amount!=1000", [5, 5000, "2500", None]),
        ("customer.id = c7", [5]),
        ("amount<abc", ["2500"]),
    ],
)
async def test_conditions_compare_numbers_as_numbers(
    file_store: SQLiteStore, condition: str, amounts: list[object]
) -> None:
    session = await opened(file_store)
    for amount in (5, 1000, 5000, "2500", None):
        arguments = {"amount": amount, "customer": {"id": "c7" if amount == 5 else "x"}}
        await session.call_tool("pay", arguments)
    found = await register(file_store, Wanted(), [read_condition(condition)], columns=["amount"])
    wanted = [one.arguments["amount"] for one in found.entries()]
    assert sorted(map(str, wanted)) == sorted(map(str, amounts))
    assert found.total == 5
    assert found.sums.get("amount", 0) == sum(float(str(one)) for one in amounts if one)
