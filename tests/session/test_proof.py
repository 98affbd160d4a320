"""Irreversible calls wait for proof: the model's word is not enough."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from counter_desk import (
    COUNTER,
    ERRANDS,
    HANDBOOK,
    CountingTools,
    HandClock,
    go_on,
    next_move,
    walk,
)
from sopilot.agent.approvers import RoleApprovers, ScriptedUser
from sopilot.agent.calls import MOST_INSISTENCE, Waiting
from sopilot.agent.driver import Driver
from sopilot.agent.loop import open_run, run_session
from sopilot.agent.reference.executor import Reference
from sopilot.audit.audit import audit_trace
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.machine.approvals import HeldState
from sopilot.machine.proof import guard as guards
from sopilot.protocols import ToolCall, ToolResult, ToolSchema
from sopilot.records.store import Settings
from sopilot.runner.sources import compile_source
from sopilot.session.opening import open_session, resume_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import bundled_names, load_example
from sopilot.tasks.examples.judge import example_judge
from sopilot.tasks.examples.task import ExampleTask
from sopilot.trace.events import Call, Fail, Return, SelectBranch, Start
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named

CHECKED = ERRANDS["transfer"]


async def fresh(store: MemoryStore, tools: CountingTools, **settings: object) -> Session:
    chosen = replace(Settings(), **settings)  # type: ignore[arg-type]  # named by the test
    return await open_session(store, COUNTER, tools=tools, clock=HandClock(), settings=chosen)


async def say_yes(session: Session, goal: str, *, begin: bool = True) -> None:
    """Every check is answered with true, and nothing is ever looked up."""
    if begin:
        await session.operate(Start(goal, ERRANDS[goal]))
    for _ in range(100):
        move = next_move(session.machine, session.configuration)
        frame = session.configuration.frame
        assert frame is not None
        if isinstance(move, tuple):
            if move[0] == goal:
                return
            await session.operate(Return(True))
        else:
            assert isinstance(move, Call | Return | SelectBranch)
            await session.operate(move)


async def test_a_verdict_without_evidence_is_no_proof() -> None:
    tools = CountingTools()
    session = await fresh(MemoryStore(), tools)
    await say_yes(session, "transfer")
    answer = await session.call_tool("transfer", CHECKED, "c")
    assert answer.status is CallStatus.HELD
    assert answer.held is None
    assert "`logged_in` must be true and is false" in answer.text
    assert "an operator may also decide" in answer.text
    again = await session.call_tool("transfer", CHECKED, "c")
    assert again.status is CallStatus.HELD
    assert len(session.held_calls) == 1
    assert tools.made("transfer") == 0


async def test_evidence_against_the_verdict_is_no_proof() -> None:
    tools = CountingTools(balance=1)
    session = await fresh(MemoryStore(), tools)
    await walk(session, "transfer", stop_at_action="transfer")
    answer = await session.call_tool("transfer", CHECKED, "c")
    assert "`funds_cover` must be true and is false by #" in answer.problem
    assert tools.made("transfer") == 0


async def test_proven_by_starting_again_it_runs_and_the_question_is_closed() -> None:
    tools = CountingTools()
    session = await fresh(MemoryStore(), tools)
    await say_yes(session, "transfer")
    await session.call_tool("transfer", CHECKED, "c")
    await session.operate(Fail("not proven"))
    await walk(session, "transfer")
    assert tools.made("transfer") == 1
    assert session.ledger.held["c"].state is HeldState.EXPIRED
    assert session.configuration.processes["p2"].status == "completed"


async def test_a_person_may_decide_without_proof_and_that_is_on_record() -> None:
    store, tools = MemoryStore(), CountingTools()
    session = await fresh(store, tools)
    await say_yes(session, "transfer")
    await session.call_tool("transfer", CHECKED, "c")
    await session.decide("approve", "c", by="dana", role="operator")
    await session.release()
    later = await resume_session(store, session.id, tools=tools, clock=HandClock(2000.0))
    assert later.held_calls[0].why == session.held_calls[0].why != ""
    assert (await later.run_held("c")).status is CallStatus.DONE
    assert tools.made("transfer") == 1
    kinds = [sealed.event.kind for sealed in later.events]
    assert kinds.index("decision") < kinds.index("domain_call")


async def test_an_approval_of_one_process_says_nothing_about_the_proof_of_another() -> None:
    tools = CountingTools()
    session = await fresh(MemoryStore(), tools)
    await say_yes(session, "transfer")
    await session.call_tool("transfer", CHECKED, "c")
    await session.decide("approve", "c", by="dana", role="operator")
    await session.operate(Fail("once more"))
    await say_yes(session, "transfer")
    assert (await session.call_tool("transfer", CHECKED, "d")).status is CallStatus.HELD
    assert tools.made("transfer") == 0


async def test_an_approval_that_knew_of_no_doubt_does_not_dispel_one() -> None:
    """Asked in a proven process, used in another one that proved nothing."""

    tools = CountingTools()
    session = await fresh(MemoryStore(), tools)
    await walk(session, "refund", stop_at_action="refund")
    await session.call_tool("refund", ERRANDS["refund"], "c")
    await session.decide("approve", "c", by="dana", role="supervisor")
    await session.operate(Fail("once more"))
    # What was looked up then may be another since.
    await session.call_tool("rename", ERRANDS["rename"], "r")
    await say_yes(session, "refund")
    answer = await session.call_tool("refund", ERRANDS["refund"], "d")
    assert "`known` must be true and is undecided" in answer.problem
    assert tools.made("refund") == 0


async def test_resumed_it_is_judged_the_same() -> None:
    store, tools = MemoryStore(), CountingTools()
    session = await fresh(store, tools)
    await say_yes(session, "transfer")
    first = await session.call_tool("transfer", CHECKED, "c")
    await session.release()
    later = await resume_session(store, session.id, tools=tools, clock=HandClock(2000.0))
    again = await later.call_tool("transfer", CHECKED, "c")
    assert (again.status, again.problem) == (first.status, first.problem)
    assert tools.made("transfer") == 0


async def test_values_kept_beside_the_trace_prove_as_well() -> None:
    for balance, made in ((1000, 1), (1, 0)):
        tools = CountingTools(balance=balance)
        session = await fresh(MemoryStore(), tools, by_reference=frozenset({"balance"}))
        await walk(session, "transfer", stop_at_action="transfer")
        await session.call_tool("transfer", CHECKED, "c")
        assert tools.made("transfer") == made


async def test_proof_that_cannot_be_judged_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = CountingTools()
    session = await fresh(MemoryStore(), tools)
    await walk(session, "transfer", stop_at_action="transfer")

    def broken(*given: object, **named: object) -> None:
        raise KeyError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(guards, "license_call", broken)
        answer = await session.call_tool("transfer", CHECKED, "c")
    assert answer.status is CallStatus.HELD
    assert "could not be evaluated" in answer.problem
    assert tools.made("transfer") == 0
    await go_on(session)
    assert tools.made("transfer") == 1


@pytest.mark.parametrize("name", bundled_names())
async def test_a_conforming_run_is_never_held_for_proof(name: str) -> None:
    example = load_example(name)
    units = compile_source(name)
    briefing = Briefing(units[0].handbook, {unit.procedure.name: unit.program for unit in units})

    async def play(task: ExampleTask) -> int:
        truth = example_judge(example)
        tools = example.make_tools(task)
        session = await open_run(MemoryStore(), briefing, view_named("pg"), tools=tools)
        user = ScriptedUser(
            task.request, task.inputs, goal=task.goal, late=task.late, follow_ups=task.follow_ups
        )
        await run_session(
            session,
            briefing,
            view=view_named("pg"),
            model=Reference(truth),
            user=user,
            operator=RoleApprovers(task.approvers) if task.approvers else None,
        )
        held = [one for one in session.ledger.held.values() if one.why]
        assert not held, (task.id, held[0].why)
        report = audit_trace(session.programs.programs, session.events, judge=judge)
        assert report.clean, task.id
        calls = [one.event for one in session.events if one.event.kind == "domain_call"]
        return sum(call.payload["action"] in session.programs.guarded for call in calls)

    assert sum([await play(task) for task in example.tasks]) > 0


async def test_who_only_repeats_an_unproven_call_waits_for_a_person() -> None:
    """It is not proven by insisting; something else in between is another try."""
    book = load_handbook(HANDBOOK)
    tools = CountingTools()
    session = await fresh(MemoryStore(), tools)
    await say_yes(session, "transfer")
    known = [ToolSchema("transfer", "", {"type": "object"})]
    briefing = Briefing(book, dict(COUNTER.programs))
    driver = Driver(session, briefing, view_named("pg"), tools=known)
    call = ToolCall("", "transfer", json.dumps(CHECKED))
    look = ToolCall("", "pg_program_step", json.dumps({"operation": "return", "holds": True}))
    for _ in range(MOST_INSISTENCE - 1):
        assert "is blocked" in await driver.call(call)
    await driver.call(look)
    for _ in range(MOST_INSISTENCE - 1):
        assert "is blocked" in await driver.call(call)
    with pytest.raises(Waiting, match="is blocked"):
        await driver.call(call)
    assert [one.action for one in session.held_calls] == ["transfer"]
    assert tools.calls == []


async def test_a_tool_that_fails_with_false_has_not_answered() -> None:
    """Where nothing is guarded, `false` may be a tool's no; here it is a failure."""

    class Failing(CountingTools):
        async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
            await super().call(name, arguments, key=key)
            return ToolResult(name != "find_account", False)

    session = await fresh(MemoryStore(), Failing())
    await session.operate(Start("wire", ERRANDS["wire"]))
    await session.call_tool("find_account", {"username": "una"}, "look")
    await say_yes(session, "wire", begin=False)
    answer = await session.call_tool("wire", ERRANDS["wire"], "c")
    assert answer.status is CallStatus.HELD
    assert "failed when it was called last" in answer.problem
