"""Approvals: who gives them, how many it takes, for what, until when; all of it in the trace."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counter_desk import ERRANDS, HANDBOOK, HandClock, go_on, walk
from counter_sessions import (
    attempt,
    claim_every_check,
    clock_of,
    opened,
    programs_of,
    ready_for,
    tools_of,
    waiting_wire,
)
from refund_shop import ONE_CHECK
from sopilot.agent.resume import recover
from sopilot.audit.audit import audit_trace
from sopilot.machine.call_ledger import HeldCall, HeldState, count_approvals
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import UserMistake
from sopilot.records.reminders import due_calls
from sopilot.records.store import Settings
from sopilot.session import admission
from sopilot.session.opening import resume_session
from sopilot.session.orphans import waiting_in
from sopilot.session.queued_decisions import decide_or_queue
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Amend, Fail, Start
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallAnswer, CallStatus

WIRE = ERRANDS["wire"]
HOUR = 3600.0


async def approve(session: Session, *roles: str, call_id: str = "w") -> None:
    for number, role in enumerate(roles):
        await session.decide("approve", call_id, by=f"person {number}", role=role)


def moved(session: Session, action: str = "wire") -> list[object]:
    """The arguments of the calls that were really carried out."""
    return [arguments for name, arguments, _ in tools_of(session).calls if name == action]


# --- how many, and who ----------------------------------------------------------------


async def test_no_request_is_made_before_the_root_accepts() -> None:
    session = await opened()
    await session.operate(Start("wire", WIRE))
    assert (await attempt(session, "wire", "w")).status is CallStatus.HELD
    assert session.held_calls == ()


async def test_two_of_three_roles_by_two_people() -> None:
    session = await waiting_wire()
    answer = await attempt(session, "wire", "w", amount=100.0)
    assert (answer.status, answer.call_id, [*session.ledger.held]) == (CallStatus.HELD, "w", ["w"])
    assert "0 of 2 from supervisor, auditor, officer" in answer.text
    held = await session.decide("approve", "w", by="ann", role="supervisor")
    assert (held.approvals, held.state) == (1, HeldState.WAITING)
    held = await session.decide("approve", "w", by="ann", role="auditor")
    assert (held.approvals, held.state) == (1, HeldState.WAITING)
    early = await session.run_held("w")
    assert (early.status, "1 of 2" in early.problem) == (CallStatus.HELD, True)
    held = await session.decide("approve", "w", by="bo", role="supervisor")
    assert (held.approvals, held.state) == (2, HeldState.APPROVED)
    assert moved(session) == []
    done = await attempt(session, "wire", "again")
    assert (done.status, done.call_id) == (CallStatus.DONE, "w")
    assert done.seq == session.ledger.answered["w"]
    assert session.ledger.held["w"].state is HeldState.USED
    assert session.held_calls == ()
    assert [one.event.kind for one in session.events].count("decision") == 3
    await go_on(session)
    assert session.configuration.processes["p1"].status == "completed"
    assert moved(session) == [WIRE]


async def test_one_rejection_ends_it_for_this_process() -> None:
    session = await waiting_wire()
    await approve(session, "supervisor", "auditor")
    held = await session.decide("reject", "w", by="cy", role="officer", reason="odd payee")
    assert held.state is HeldState.REJECTED
    for answer in (await attempt(session, "wire", "w"), await session.run_held("w")):
        assert answer.status is CallStatus.HELD
        assert "was rejected by officer" in answer.text
    with pytest.raises(UserMistake, match="is already rejected"):
        await session.decide("approve", "w", by="di", role="officer")
    with pytest.raises(UserMistake):
        await session.run_held("x")
    with pytest.raises(UserMistake):
        await session.retry("w")
    assert moved(session) == []


@pytest.mark.parametrize(
    ("decision", "by", "role", "says"),
    [
        ("approve", "ann", "superviser", "did you mean `supervisor`"),
        ("approve", " ", "supervisor", "your name is required"),
        ("permit", "ann", "supervisor", "`permit` is not a decision"),
        ("amend", "ann", "supervisor", "`amend` needs arguments"),
    ],
)
async def test_decisions_that_do_not_count_are_refused(
    decision: str, by: str, role: str, says: str
) -> None:
    session = await waiting_wire()
    events = len(session.events)
    with pytest.raises(UserMistake, match=says):
        await session.decide(decision, "w", by=by, role=role)
    with pytest.raises(UserMistake, match="no such call `v`"):
        await session.decide("approve", "v", by="ann", role="supervisor")
    assert len(session.events) == events


async def test_an_amendment_has_the_arguments_that_the_action_takes() -> None:
    session = await waiting_wire()

    async def amend(**arguments: JSON) -> HeldCall:
        changed = {**WIRE, **arguments}
        return await session.decide("amend", "w", by="ann", role="supervisor", arguments=changed)

    with pytest.raises(UserMistake, match="`wire` takes no `amuont`"):
        await amend(amuont=7)
    assert (await amend(amount=7)).arguments["amount"] == 7


ROLES = ("r0", "r1", "r2")
APPROVED = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(ROLES)), max_size=7)


@given(APPROVED, st.integers(1, 3))
@settings(deadline=None)
def test_the_count_is_the_largest_set_of_distinct_people_and_roles(
    approved: list[tuple[str, str]], needed: int
) -> None:
    best = 0
    for size in range(len(approved), 0, -1):
        for chosen in itertools.combinations(approved, size):
            people, roles = map(set, zip(*chosen, strict=True))
            if len(people) == len(roles) == size:
                best = max(best, size)
    assert count_approvals(approved, ROLES, needed) == best


@pytest.mark.parametrize(("roles", "needed", "counted"), [("ab", 2, 1), ("a", 1, 1), ("a", 2, 2)])
def test_where_roles_are_too_few_people_are_counted(roles: str, needed: int, counted: int) -> None:
    given = [(by, "a") for by in ("ann", "bo", "ANN")]
    assert count_approvals(given, tuple(roles), needed) == counted


# --- for which arguments --------------------------------------------------------------


async def test_an_amendment_that_is_proven_runs_as_amended() -> None:
    session = await waiting_wire()
    await session.decide("approve", "w", by="ann", role="supervisor")
    amended = {**WIRE, "amount": 40}
    held = await session.decide("amend", "w", by="bo", role="auditor", arguments=amended)
    assert (held.approvals, held.state, held.amended) == (1, HeldState.WAITING, True)
    held = await session.decide("approve", "w", by="ann", role="supervisor")
    assert held.state is HeldState.APPROVED
    assert (await attempt(session, "wire", "w2")).status is CallStatus.HELD
    assert moved(session) == []
    assert (await session.run_held("w")).status is CallStatus.DONE
    assert moved(session) == [amended]


@pytest.mark.parametrize("amount", [40, 9000])
async def test_an_amended_approval_takes_effect_when_the_run_goes_on(
    amount: int, store: MemoryStore
) -> None:
    """If it is proven, it is made as amended; if not, people are asked anew, and it is made."""
    session = await waiting_wire(store)
    tools = tools_of(session)
    amended = {**WIRE, "amount": amount}
    await session.decide("amend", "w", by="bo", role="auditor", arguments=amended)
    await session.decide("approve", "w", by="ann", role="supervisor")
    await session.release()
    session = await resume_session(store, session.id, tools=tools, clock=HandClock())
    await recover(session)
    if amount == 9000:
        assert moved(session) == []
        [held] = [one for one in session.held_calls if one.state is HeldState.WAITING]
        assert held.arguments == amended
        assert "small" in held.why
        await approve(session, "auditor", "supervisor", call_id=held.call_id)
        await session.release()
        session = await resume_session(store, session.id, tools=tools, clock=HandClock())
        await recover(session)
    assert moved(session) == [amended]


# --- for which facts ------------------------------------------------------------------

Again = Callable[[Session, str], Awaitable[CallAnswer]]


async def call_again(session: Session, call_id: str) -> CallAnswer:
    return await attempt(session, "transfer", "again")


async def run_held(session: Session, call_id: str) -> CallAnswer:
    return await session.run_held(call_id)


async def run_held_after_a_restart(session: Session, call_id: str) -> CallAnswer:
    await session.release()
    later = await resume_session(
        session._store, session.id, tools=session.tools, clock=session.clock
    )
    answer = await later.run_held(call_id)
    await later.release()
    await session.reacquire()
    return answer


async def read(session: Session, balance: int) -> None:
    tools_of(session).balance = balance
    await session.call_tool("read_balance", {"username": "una"}, "look")


async def approved_all_the_same(balance: int, *, private: bool = False) -> tuple[Session, str]:
    """The transfer was proven; then the balance was read again, and somebody approves it still."""
    session = await ready_for("transfer", settings=Settings(private=private))
    await read(session, balance)
    answer = await attempt(session, "transfer", "t")
    assert answer.status is CallStatus.HELD
    await session.decide("approve", answer.call_id, by="ann", role="operator")
    return session, answer.call_id


@pytest.mark.parametrize("again", [call_again, run_held, run_held_after_a_restart])
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("balance", [90, 0])
async def test_an_approval_is_for_the_answer_that_people_saw(
    balance: int, private: bool, again: Again
) -> None:
    """The same answer read again is the same fact; another balance is another one."""
    session, call_id = await approved_all_the_same(90, private=private)
    await read(session, balance)
    answer = await again(session, call_id)
    if balance == 0:
        assert (answer.status, moved(session, "transfer")) == (CallStatus.HELD, [])
        assert answer.call_id != call_id, "people are asked anew"
        await session.decide("approve", answer.call_id, by="ann", role="operator")
        await attempt(session, "transfer", "again")
    assert len(moved(session, "transfer")) == 1, "approved for what is so now"


async def test_a_false_check_that_is_undecided_now_is_another_fact() -> None:
    session, call_id = await approved_all_the_same(90)
    tools_of(session).refusing.add("read_balance")
    await read(session, 90)
    answer = await session.run_held(call_id)
    assert (answer.status, moved(session, "transfer")) == (CallStatus.HELD, [])


@pytest.mark.parametrize(("balance", "blamed"), [(90, False), (0, True)])
async def test_the_audit_compares_for_itself(
    balance: int, blamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guard that takes every approval is blamed where the facts have changed."""
    monkeypatch.setattr(admission, "_same_facts", lambda *_: True)
    session, call_id = await approved_all_the_same(90)
    await read(session, balance)
    await session.run_held(call_id)
    assert len(moved(session, "transfer")) == 1
    events = [sealed.event for sealed in session.events]
    report = audit_trace(
        session.programs.programs, events, session_id=session.id, judge=session.judge
    )
    assert any("ran unproven" in one.explanation for one in report.findings) is blamed


# --- under which rules ----------------------------------------------------------------


async def changed(session: Session, programs: ProgramSet) -> Session:
    """Resume the session with other programs."""
    await session.release()
    return await resume_session(
        session._store,
        session.id,
        tools=session.tools,
        clock=session.clock,
        programs=programs,
        accept_changed=True,
    )


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("limit: 500", "limit: 400", True),
        ("needed: 2", "needed: 1", False),
        ("auditor, officer]", "auditor, clerk]", False),
        ("expires: 1h", "expires: 2h", False),
    ],
)
async def test_an_approval_counts_while_the_rules_of_approval_stay(
    before: str, after: str, counts: bool
) -> None:
    session = await waiting_wire()
    await approve(session, "supervisor", "auditor")
    session = await changed(session, programs_of(HANDBOOK.replace(before, after)))
    await walk(session, "wire", stop_at_action="wire")
    answer = await attempt(session, "wire", "again")
    assert (answer.status is CallStatus.DONE) is counts
    assert moved(session) == [WIRE] * counts


@pytest.mark.parametrize(("limit", "counts"), [(500, True), (400, False)])
async def test_a_doubt_that_people_let_through_is_another_one_in_changed_programs(
    limit: int, counts: bool
) -> None:
    session = await opened()
    await claim_every_check(session, "transfer")
    await attempt(session, "transfer", "t")
    await session.decide("amend", "t", by="ann", role="operator", arguments=ERRANDS["transfer"])
    text = HANDBOOK.replace("limit: 500", f"limit: {limit}")
    session = await changed(session, programs_of(text))
    if session.configuration.active is None:
        await claim_every_check(session, "transfer")
    answer = await session.run_held("t")
    assert (answer.status is CallStatus.DONE) is counts
    assert len(moved(session, "transfer")) == counts


async def test_an_approved_call_is_not_made_in_programs_that_do_not_have_it() -> None:
    session = await waiting_wire()
    await approve(session, "supervisor", "auditor")
    session = await changed(session, programs_of(ONE_CHECK))
    with pytest.raises(UserMistake, match="`wire` is not an action"):
        await session.run_held("w")
    assert moved(session) == []


TWO_ERRANDS = programs_of("""
handbook: desk
actions:
  pay: {input: {user: string, amount: number}, irreversible: true, approval: boss}
predicates:
  known(user): {says: K., verify: arguments, verdict: user != ''}
  owns(customer): {says: O., verify: arguments, verdict: customer != ''}
procedures:
  pay: {requires: known(user)}
  tip: {action: pay, inputs: {customer: string}, requires: {all: [known(user), owns(customer)]}}
""")
PAY: dict[str, JSON] = {"user": "ann", "amount": 5}


@pytest.mark.parametrize(
    ("goal", "customer", "amended", "counts"),
    [
        ("tip", "una", "", True),
        ("tip", "bob", "", False),
        ("pay", None, "", False),
        ("tip", "una", "there and back", False),
        ("tip", "una", "once it is approved", False),
    ],
)
async def test_an_approval_is_for_one_procedure_and_the_values_of_its_inputs(
    goal: str, customer: str | None, amended: str, counts: bool
) -> None:
    session = await opened(programs=TWO_ERRANDS)

    async def ask(goal: str, values: dict[str, JSON]) -> CallAnswer:
        await session.operate(Start(goal, values))
        await go_on(session, stop_at_action="pay")
        return await session.call_tool("pay", PAY, "p")

    first: dict[str, JSON] = {**PAY, "customer": "una"}
    assert (await ask("tip", first)).held is not None
    if amended == "there and back":
        await session.operate(Amend({"customer": "ida"}))
        await session.operate(Amend({"customer": "una"}))
    await session.decide("approve", "p", by="kim", role="boss")
    if amended == "once it is approved":
        await session.operate(Amend({"customer": "ida"}))
        await go_on(session, stop_at_action="pay")
        answer = await session.call_tool("pay", PAY, "p")
    else:
        await session.operate(Fail("once more"))
        answer = await ask(goal, PAY if customer is None else {**PAY, "customer": customer})
    assert (answer.status is CallStatus.DONE) is counts
    assert moved(session, "pay") == [PAY] * counts


# --- until when -----------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "counts"), [(HOUR - 1, True), (HOUR, True), (HOUR + 1, False)])
async def test_a_request_lasts_as_long_as_the_handbook_says(
    seconds: float, counts: bool, store: MemoryStore
) -> None:
    session = await waiting_wire(store)
    clock_of(session).advance(seconds)
    waiting = await waiting_in(store, session.id, clock=session.clock)
    assert [held.call_id for held in waiting.held] == (["w"] if counts else [])
    if counts:
        await session.decide("approve", "w", by="ann", role="supervisor")
    else:
        with pytest.raises(UserMistake, match="is already expired"):
            await session.decide("approve", "w", by="ann", role="supervisor")
        assert session.ledger.held["w"].state is HeldState.EXPIRED


async def test_an_approval_expires_and_serves_one_call() -> None:
    session = await waiting_wire()
    tools = tools_of(session)
    await approve(session, "supervisor", "auditor")
    clock_of(session).advance(HOUR + 1)
    answer = await attempt(session, "wire", "w")
    assert (answer.status, answer.call_id) == (CallStatus.HELD, "w.2")
    assert session.ledger.held["w"].state is HeldState.EXPIRED
    await approve(session, "supervisor", "auditor", call_id="w.2")
    tools.refusing.add("wire")
    refused = await session.run_held("w.2")
    assert refused.result is not None
    assert not refused.result.ok
    assert (await attempt(session, "wire", "w")).status is CallStatus.HELD
    assert tools.made("wire") == 1


@pytest.mark.parametrize(
    ("minutes", "later", "due"),
    [(None, 0.0, True), (60, 0.0, True), (59, 0.0, False), (59, 60.0, True), (0, HOUR, True)],
)
async def test_a_call_that_expires_within_so_many_minutes_is_due(
    minutes: float | None, later: float, due: bool, store: MemoryStore
) -> None:
    session = await waiting_wire(store)
    clock = clock_of(session)
    clock.advance(later)
    calls = await due_calls(store, minutes, clock=clock)
    assert [(call.session, call.call_id) for call in calls] == [(session.id, "w")] * due


@pytest.mark.parametrize("running", [True, False])
async def test_a_decision_about_a_call_that_does_not_wait_is_refused(
    running: bool, store: MemoryStore
) -> None:
    session = await waiting_wire(store)
    if not running:
        await session.release()
    with pytest.raises(UserMistake, match="no such call `v`"):
        await decide_or_queue(
            store, session.id, "approve", "v", by="ann", role="auditor", clock=session.clock
        )
    assert await store.pending_decisions(session.id) == []
