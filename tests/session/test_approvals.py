"""Approvals: who, how many, for what, until when; all of it in the trace."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, go_on, walk
from sopilot.agent.resume import recover
from sopilot.machine.approvals import HeldState, Ruling, count_approvals
from sopilot.messages.errors import UserMistake
from sopilot.session.opening import attach_session, open_session, resume_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Start
from sopilot.views.answers import CallAnswer, CallStatus

WIRE = ERRANDS["wire"]


async def at_wire(store: MemoryStore | None = None) -> tuple[Session, CountingTools, CallAnswer]:
    """A session whose root accepts the wire, and its first attempt at it."""
    tools = CountingTools()
    session = await open_session(store or MemoryStore(), COUNTER, tools=tools, clock=HandClock())
    await walk(session, "wire", stop_at_action="wire")
    return session, tools, await session.call_tool("wire", WIRE, "w")


async def test_no_request_is_made_before_the_root_accepts() -> None:
    session = await open_session(MemoryStore(), COUNTER, tools=CountingTools(), clock=HandClock())
    await session.operate(Start("wire", WIRE))
    assert (await session.call_tool("wire", WIRE, "w")).status is CallStatus.HELD
    assert session.held_calls == ()


async def test_two_of_three_roles_by_two_people() -> None:
    session, tools, answer = await at_wire()
    assert answer.status is CallStatus.HELD
    assert "0 of 2 from supervisor, auditor, officer" in answer.text
    held = await session.decide("approve", "w", by="ann", role="supervisor")
    assert (held.approvals, held.state) == (1, HeldState.WAITING)
    held = await session.decide("approve", "w", by="ann", role="auditor")
    assert (held.approvals, held.state) == (1, HeldState.WAITING)
    held = await session.decide("approve", "w", by="bo", role="supervisor")
    assert (held.approvals, held.state) == (2, HeldState.APPROVED)
    assert tools.made("wire") == 0
    done = await session.call_tool("wire", WIRE, "again")
    assert (done.status, done.call_id) == (CallStatus.DONE, "w")
    assert session.ledger.held["w"].state is HeldState.USED
    kinds = [one.event.kind for one in session.events]
    assert kinds.count("decision") == 3
    await go_on(session)
    assert session.configuration.processes["p1"].status == "completed"


async def test_asking_again_makes_no_second_request() -> None:
    session, tools, _ = await at_wire()
    again = await session.call_tool("wire", {**WIRE, "amount": 100.0}, "w")
    assert again.call_id == "w"
    assert list(session.ledger.held) == ["w"]
    assert tools.made("wire") == 0


async def test_one_rejection_ends_it_for_this_process() -> None:
    session, tools, _ = await at_wire()
    await session.decide("approve", "w", by="ann", role="supervisor")
    await session.decide("approve", "w", by="bo", role="auditor")
    held = await session.decide("reject", "w", by="cy", role="officer", reason="odd payee")
    assert held.state is HeldState.REJECTED
    answer = await session.call_tool("wire", WIRE, "w")
    assert answer.status is CallStatus.HELD
    assert "was rejected by officer" in answer.text
    assert (await session.run_held("w")).status is CallStatus.HELD
    with pytest.raises(UserMistake, match="is rejected already"):
        await session.decide("approve", "w", by="di", role="officer")
    assert tools.made("wire") == 0


async def test_an_amendment_that_is_proven_runs_as_amended() -> None:
    session, tools, _ = await at_wire()
    await session.decide("approve", "w", by="ann", role="supervisor")
    amended = {**WIRE, "amount": 40}
    held = await session.decide("amend", "w", by="bo", role="auditor", arguments=amended)
    assert (held.approvals, held.state) == (1, HeldState.WAITING)
    held = await session.decide("approve", "w", by="ann", role="supervisor")
    assert held.state is HeldState.APPROVED
    original = await session.call_tool("wire", WIRE, "w2")
    assert original.status is CallStatus.HELD
    assert tools.made("wire") == 0
    answer = await session.run_held("w")
    assert answer.status is CallStatus.DONE
    assert tools.calls[-1][1] == amended


async def test_an_amendment_is_proven_anew() -> None:
    """What people amend to is theirs; that it holds is the machine's to find out."""

    session, tools, _ = await at_wire()
    amended = {**WIRE, "amount": 9000}
    await session.decide("amend", "w", by="bo", role="auditor", arguments=amended)
    await session.decide("approve", "w", by="ann", role="supervisor")
    answer = await session.run_held("w")
    assert answer.status is CallStatus.HELD
    assert "`small` must be true and is false" in answer.problem
    assert tools.made("wire") == 0


async def test_an_approval_expires_and_serves_one_call() -> None:
    session, tools, _ = await at_wire()
    clock = session.clock
    assert isinstance(clock, HandClock)
    await session.decide("approve", "w", by="ann", role="supervisor")
    await session.decide("approve", "w", by="bo", role="auditor")
    clock.advance(3601)
    answer = await session.call_tool("wire", WIRE, "w")
    assert answer.status is CallStatus.HELD
    assert answer.call_id == "w.2"
    assert session.ledger.held["w"].state is HeldState.EXPIRED
    with pytest.raises(UserMistake, match="is expired already"):
        await session.decide("approve", "w", by="cy", role="officer")
    await session.decide("approve", "w.2", by="ann", role="supervisor")
    await session.decide("approve", "w.2", by="bo", role="auditor")
    tools.refusing.add("wire")
    refused = await session.run_held("w.2")
    assert refused.result is not None
    assert not refused.result.ok
    assert (await session.call_tool("wire", WIRE, "w")).status is CallStatus.HELD
    assert tools.made("wire") == 1


@pytest.mark.parametrize(
    ("decision", "by", "role", "says"),
    [
        ("approve", "ann", "superviser", "did you mean `supervisor`"),
        ("approve", " ", "supervisor", "needs the name"),
        ("permit", "ann", "supervisor", "`permit` is not a decision"),
        ("amend", "ann", "supervisor", "`amend` needs arguments"),
    ],
)
async def test_decisions_that_do_not_count_are_refused(
    decision: str, by: str, role: str, says: str
) -> None:
    session, _, _ = await at_wire()
    events = len(session.events)
    with pytest.raises(UserMistake, match=says):
        await session.decide(decision, "w", by=by, role=role)
    with pytest.raises(UserMistake, match="no such call `v`"):
        await session.decide("approve", "v", by="ann", role="supervisor")
    assert len(session.events) == events


@pytest.mark.parametrize("again", ["Ann", " ann ", "ANN", "\uff21nn", "a\u200bnn", "ann\ufeff"])
async def test_another_spelling_is_the_same_person(again: str) -> None:
    session, tools, _ = await at_wire()
    await session.decide("approve", "w", by="ann", role="supervisor")
    with pytest.raises(UserMistake, match="approved as supervisor already"):
        await session.decide("approve", "w", by=again, role="supervisor")
    held = await session.decide("approve", "w", by=again, role="auditor")
    assert (held.approvals, held.state) == (1, HeldState.WAITING)
    assert "wire" not in [name for name, *_ in tools.calls]


async def test_the_same_approval_twice_is_refused() -> None:
    session, _, _ = await at_wire()
    await session.decide("approve", "w", by="ann", role="supervisor")
    with pytest.raises(UserMistake, match="has approved as supervisor already"):
        await session.decide("approve", "w", by="ann", role="supervisor")


async def test_waiting_gives_the_session_to_whoever_decides() -> None:
    store = MemoryStore()
    session, tools, _ = await at_wire(store)
    people = iter([("ann", "supervisor"), ("bo", "auditor")])

    async def somebody_decides(seconds: float) -> None:
        by, role = next(people)
        async with await attach_session(store, session.id, clock=session.clock) as other:
            await other.decide("approve", "w", by=by, role=role)

    held = await session.wait_for_decision("w", sleep=somebody_decides)
    assert held.state is HeldState.APPROVED
    assert (await session.run_held("w")).status is CallStatus.DONE
    assert tools.made("wire") == 1


async def test_waiting_ends_with_the_time_for_it() -> None:
    session, _, _ = await at_wire()
    clock = session.clock
    assert isinstance(clock, HandClock)

    async def time_passes(seconds: float) -> None:
        clock.advance(600)

    held = await session.wait_for_decision("w", timeout_seconds=1200, sleep=time_passes)
    assert held.state is HeldState.WAITING
    held = await session.wait_for_decision("w", sleep=time_passes)
    assert held.state is HeldState.EXPIRED


async def test_held_calls_survive_a_crash() -> None:
    store = MemoryStore()
    session, _, _ = await at_wire(store)
    await session.decide("approve", "w", by="ann", role="supervisor")
    tools = CountingTools()
    again = await resume_session(
        store, session.id, tools=tools, clock=session.clock, take_over=True
    )
    assert [held.call_id for held in again.held_calls] == ["w"]
    assert (await store.record(session.id)).summary["status"] == "waiting"
    await again.decide("approve", "w", by="bo", role="auditor")
    assert (await again.run_held("w")).status is CallStatus.DONE


ROLES = ("r0", "r1", "r2")
RULINGS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(ROLES)).map(
        lambda pair: Ruling("approve", pair[0], pair[1], "", 0)
    ),
    max_size=7,
)


@given(RULINGS, st.integers(1, 3))
@settings(deadline=None)
def test_the_count_is_the_largest_set_of_distinct_people_and_roles(
    rulings: list[Ruling], needed: int
) -> None:
    best = 0
    for size in range(len(rulings), 0, -1):
        for chosen in itertools.combinations(rulings, size):
            people = {one.by for one in chosen}
            roles = {one.role for one in chosen}
            if len(people) == len(roles) == size:
                best = max(best, size)
    assert count_approvals(rulings, ROLES, needed) == best


def test_more_needed_than_roles_means_distinct_people() -> None:
    rulings = [Ruling("approve", by, "r0", "", 0) for by in "aab"]
    assert count_approvals(rulings, ("r0",), 2) == 2


@pytest.mark.parametrize(
    "other", ["ANN  Smith", " ann smith", "Ann\u00a0Smith", "\uff21nn Smith", "Ann\u200b Smith"]
)
async def test_one_person_in_two_spellings_is_one(other: str) -> None:
    session, tools, _ = await at_wire()
    await session.decide("approve", "w", by="Ann Smith", role="supervisor")
    held = await session.decide("approve", "w", by=other, role="auditor")
    assert (held.approvals, held.state) == (1, HeldState.WAITING)
    with pytest.raises(UserMistake, match="has approved as supervisor already"):
        await session.decide("approve", "w", by=other, role="supervisor")
    assert tools.made("wire") == 0


@pytest.mark.parametrize("party", ["una", "UNA", "gpt-x", "GPT-X", "assistant", "Model", "user"])
@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_neither_the_model_nor_a_party_to_the_call_decides(party: str, decision: str) -> None:
    session = await open_session(
        MemoryStore(), COUNTER, tools=CountingTools(), clock=HandClock(), model="gpt-x"
    )
    await walk(session, "wire", stop_at_action="wire")
    await session.call_tool("wire", WIRE, "w")
    with pytest.raises(UserMistake, match="must decide"):
        await session.decide(decision, "w", by=party, role="supervisor")
    assert session.ledger.held["w"].rulings == ()


@pytest.mark.parametrize("amount", [40, 9000])
async def test_an_amended_approval_takes_effect_when_the_run_goes_on(amount: int) -> None:
    """What is proven is made as amended; what is not is asked anew, and then made."""

    store = MemoryStore()
    session, tools, _ = await at_wire(store)
    amended = {**WIRE, "amount": amount}
    await session.decide("amend", "w", by="bo", role="auditor", arguments=amended)
    await session.decide("approve", "w", by="ann", role="supervisor")
    await session.release()
    session = await resume_session(store, session.id, tools=tools, clock=HandClock())
    await recover(session)
    if amount == 9000:
        assert tools.made("wire") == 0
        [held] = [one for one in session.held_calls if one.state is HeldState.WAITING]
        assert held.arguments == amended
        assert "small" in held.why
        await session.decide("approve", held.call_id, by="bo", role="auditor")
        await session.decide("approve", held.call_id, by="ann", role="supervisor")
        await session.release()
        session = await resume_session(store, session.id, tools=tools, clock=HandClock())
        await recover(session)
    assert [call[1] for call in tools.calls if call[0] == "wire"] == [amended]
